/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RETENTION_H
#define PB_RETENTION_H
/* Removes inputs that the service archived or quarantined and that are older than
 * service.retention allows, oldest first. Ages are service time (service_time.h), so no setting of
 * the wall clock makes an input old. Each input has a row in the job store (service/jobs/kept.h), a
 * quarantined one the record beside it as well (input_store.h); a record without a row gets one,
 * which counts from then on. Archived files of a set that others may join
 * (service/jobs/set_parts.h) stay until none may. An input is removed only when every file in it
 * came with it and is unchanged; else all of it stays, and the log names one file. Names are
 * resolved in the open directory, and no link is followed. Thread: pool, one at a time. */
#include "config/config.h"
#include "service/inbox/dirs.h"
#include "service/jobs/job_store.h"

#include <pthread.h>

struct pb_retention {
    struct pb_job_store *store;
    const struct pb_dirs *dirs;
    pthread_rwlock_t *moves; /* intake.moves; write-locked while an input is deleted */
    struct pb_retention_config config;
};

struct pb_retention_result {
    int archived, quarantined; /* removed */
    struct pb_err err;         /* the first that kept it from going on; PB_OK = none */
};

/* now_ms: service time. Logs what it removed, and once what stays. A time of 0 means for ever. */
void pb_retention_run(const struct pb_retention *retention, int64_t now_ms,
                      struct pb_retention_result *out);
#endif
