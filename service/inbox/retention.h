/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RETENTION_H
#define PB_RETENTION_H
/* Removes inputs that the service archived or quarantined and that are older than
 * service.retention allows, oldest first. Ages are service time (service_time.h), therefore no
 * setting of the wall clock makes an input old. Each input has a row in the job store
 * (service/jobs/kept.h), a quarantined one also the record next to it (input_store.h); a record
 * without a row gets a row, whose age begins then. Archived files of a set that other files may
 * join (service/jobs/set_parts.h) stay until no file may join any more. An input is removed only
 * if every file in it was delivered with it and is unchanged; otherwise all of it stays, and the
 * log names one file. Names are resolved in the open directory, and no link is followed. Thread:
 * pool, one at a time. */
#include "config/service_config.h"
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
    int archived, quarantined; /* counts of removed inputs */
    struct pb_err err;         /* first error; PB_OK if there was no error */
};

/* now_ms: service time. Logs the removed inputs, and once each input that stays. A retention time
 * of 0 = no limit. */
void pb_retention_run(const struct pb_retention *retention, int64_t now_ms,
                      struct pb_retention_result *out);
#endif
