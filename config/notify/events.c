/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/notify/events.h"

static const struct {
    const char *name, *meaning;
} kinds[PB_EVENT_KINDS] = {
    [PB_EVENT_ACCEPTED] = {"job.accepted", "a job waits: it is new, or was put back or retried"},
    [PB_EVENT_RUNNING] = {"job.running", "a run of a job starts"},
    [PB_EVENT_SUCCESSFUL] = {"job.successful", "a job is done; its products are in place"},
    [PB_EVENT_FAILED] = {"job.failed", "a job failed; its error has the reason"},
    [PB_EVENT_DISMISSED] = {"job.dismissed", "a job was cancelled"},
    [PB_EVENT_QUARANTINED] = {"input.quarantined",
                              "the input of a failed or cancelled job is in quarantine"},
    [PB_EVENT_PUBLISHED] = {"product.published", "a product is in place; one event for each file"},
    [PB_EVENT_ALERT] = {"alert.raised",
                        "a line of a scene has values beyond the limit of an alert; "
                        "its job runs"},
};

const char *pb_event_name(enum pb_event_kind kind)
{
    return kinds[kind].name;
}

const char *pb_event_meaning(enum pb_event_kind kind)
{
    return kinds[kind].meaning;
}

const char *pb_event_subject(enum pb_event_kind kind)
{
    return kind == PB_EVENT_PUBLISHED ? "product" : kind == PB_EVENT_ALERT ? "alert" : NULL;
}
