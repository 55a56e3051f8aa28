/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REQUEST_KIND_H
#define PB_REQUEST_KIND_H
/* Request of a client that concerns one job. */
#include <stdbool.h>
#include <stdint.h>

enum pb_request_kind { PB_REQUEST_CANCEL, PB_REQUEST_RETRY, PB_REQUEST_DROP, PB_REQUEST_AGAIN };

struct pb_job_request {
    enum pb_request_kind kind;
    uint64_t ticket;
    const char *id;       /* whole id of the job */
    const char *identity; /* identity of a submitted file that was checked again, "" = as before */
    int priority;         /* AGAIN: priority of the new job */
    bool dry_run;         /* AGAIN: no job is stored, the answer is the job itself */
};
#endif
