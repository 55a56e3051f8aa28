/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RETENTION_H
#define PB_RETENTION_H
/* Removes inputs that the service archived or quarantined and that are older than
 * service.retention allows, oldest first. Only its own: an archived one by its row in the job store
 * (service/jobs/kept.h), a quarantined one by the record beside it (input_store.h). Archived files
 * of a set that others may join (service/jobs/set_parts.h) stay until none may. What was changed,
 * replaced or put there since stays, and so does what is no plain file or folder. Names
 * are resolved in the open directory, and no link is followed. Thread: pool, one at a time. */
#include "config/config.h"
#include "service/inbox/dirs.h"
#include "service/jobs/job_store.h"

#include <pthread.h>

struct pb_retention {
    struct pb_job_store *store;
    const struct pb_dirs *dirs;
    pthread_rwlock_t *moves; /* of the intake: held for writing while one input goes */
    struct pb_retention_config config;
};

struct pb_retention_result {
    int archived, quarantined; /* removed */
    struct pb_err err;         /* the first that kept it from going on; PB_OK = none */
};

/* now_ms: wall clock. Logs what it removed. A time of 0 means for ever. */
void pb_retention_run(const struct pb_retention *retention, int64_t now_ms,
                      struct pb_retention_result *out);
#endif
