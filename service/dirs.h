/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DIRS_H
#define PB_DIRS_H
/* The directories of the service, absolute and checked. Inputs move between inbox, work, archive
 * and quarantine by rename, so those four must be on one filesystem and one mount; that is tried
 * out at the start, because a bind mount has the same device number and still refuses. */
#include "config/config.h"
#include "config/err.h"
#include "service/files.h"

struct pb_dirs {
    char inbox[PB_FILES_PATH_BYTES], work[PB_FILES_PATH_BYTES], archive[PB_FILES_PATH_BYTES];
    char quarantine[PB_FILES_PATH_BYTES], products[PB_FILES_PATH_BYTES], state[PB_FILES_PATH_BYTES];
};

/* Creates what is missing and checks everything; the first error names directory and remedy. */
int pb_dirs_prepare(const struct pb_service_config *config, struct pb_err *err,
                    struct pb_dirs *out_dirs);
/* Refuses an inbox that is, contains or lies inside the other directory (what): products would come
 * back as scenes. Both as realpath gives them. */
int pb_dirs_check_inbox(const char *inbox, const char *other, const char *what, struct pb_err *err);

#define PB_DIRS_PATIENCE_MS 1000 /* see pb_clock_retry */
/* Creates the state directory and takes its lock (held until the returned descriptor is closed), so
 * that no second service works on the same jobs. */
int pb_dirs_lock_state(const char *state, struct pb_err *err, int *out_fd);
#endif
