/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLOUD_EVENT_H
#define PB_CLOUD_EVENT_H
/* Events of the service as CloudEvents 1.0 (JSON, structured mode). Thread: any. */
#include "config/base/json_reader.h"
#include "service/notify/sender.h"

struct pb_json;

/* event: an element of event.list, which must outlive the letter. Writes the body to json (fresh,
 * which must outlive it too). 0; -EINVAL: this is no event; -ENOMEM. */
int pb_cloud_event_write(const struct pb_json_value *event, struct pb_json *json,
                         struct pb_letter *out_letter);
#endif
