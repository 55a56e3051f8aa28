/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EVENTS_H
#define PB_EVENTS_H
/* The kinds of events that the service records, and their names. Static; any thread. */
#include <stddef.h>

/* The first ones are in the order of enum pb_job_status. */
enum pb_event_kind {
    PB_EVENT_ACCEPTED,
    PB_EVENT_RUNNING,
    PB_EVENT_SUCCESSFUL,
    PB_EVENT_FAILED,
    PB_EVENT_DISMISSED,
    PB_EVENT_QUARANTINED,
    PB_EVENT_PUBLISHED,
    PB_EVENT_ALERT,
    PB_EVENT_KINDS
};

/* "job.successful" */
const char *pb_event_name(enum pb_event_kind kind);
/* Returns the member of the event's data that has its subject: "product" or "alert"; NULL: the
 * subject is the job. */
const char *pb_event_subject(enum pb_event_kind kind);
/* When there is one, in a few words. */
const char *pb_event_meaning(enum pb_event_kind kind);
#endif
