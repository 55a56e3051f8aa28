/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DIRS_H
#define PB_DIRS_H
/* Directories of the service, absolute and checked. Inputs move between inboxes, work, archive and
 * quarantine by rename, therefore these must be on one filesystem and one mount of it. Thread:
 * main, before the loop runs; pb_dirs_check and pb_dirs_check_apart: any. */
#include "config/base/err.h"
#include "config/service_config.h"
#include "service/base/dir_lock.h"
#include "service/base/files.h"

#define PB_INBOX_NODE_BYTES 64

struct pb_dirs {
    char inbox[PB_INBOXES_MAX][PB_FILES_PATH_BYTES]; /* in the order of service.inboxes */
    size_t n_inboxes;
    /* node that watches the inbox while it reports (service.inboxes.node); "": this one */
    char inbox_node[PB_INBOXES_MAX][PB_INBOX_NODE_BYTES];
    char work[PB_FILES_PATH_BYTES], archive[PB_FILES_PATH_BYTES], quarantine[PB_FILES_PATH_BYTES];
    char products[PB_FILES_PATH_BYTES], state[PB_FILES_PATH_BYTES];
};

/* Creates absent directories and checks all of them; the first error names the directory and the
 * remedy. */
int pb_dirs_prepare(const struct pb_service_config *config, struct pb_err *err,
                    struct pb_dirs *out_dirs);
/* Number of the inbox that a directory (real path) is, or is in; n_inboxes: none. Thread: any. */
size_t pb_dirs_inbox_of(const struct pb_dirs *dirs, const char *directory);
/* Dry run of pb_dirs_prepare: the same checks and errors, creates nothing. */
int pb_dirs_check(const struct pb_service_config *config, struct pb_err *err);
/* All-zero: no lock is held. */
struct pb_dirs_locks {
    int fd[3 + PB_INBOXES_MAX];
    int n;
};
/* Locks state, work and quarantine (see dir_lock.h), so that no second service works on the same
 * jobs, and warns if another process has locked an inbox without a node. After a failure unlock the
 * locks that were taken. */
int pb_dirs_lock(const struct pb_dirs *dirs, struct pb_dirs_locks *locks, struct pb_err *err);
void pb_dirs_unlock(struct pb_dirs_locks *locks);
/* Returns true if several users may write the inbox and move or delete each other's files there:
 * it is not sticky. */
bool pb_dirs_inbox_is_open(const char *inbox);
/* Checks that no directory of the service equals, contains or is inside another; otherwise
 * products would be taken as scenes, or a directory would belong to two owners. The one exception
 * is the default archive, work/done. Paths are as realpath returns them; parts that do not exist
 * yet may follow. socket: as configured, NULL if absent; its directory may contain the others, but
 * must not be inside them. Two paths to one place are found as well: not only the paths but also
 * their places in the file system according to /proc/self/mountinfo are compared, which detects
 * bind mounts. */
int pb_dirs_check_apart(const struct pb_dirs *dirs, const char *socket, struct pb_err *err);
#endif
