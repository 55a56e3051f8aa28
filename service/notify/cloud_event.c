/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/notify/cloud_event.h"

#include "config/base/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOST_BYTES 256

static const char *or_none(const char *text)
{
    return text ? text : "";
}

int pb_cloud_event_write(const struct pb_json_value *event, struct pb_json *json,
                         struct pb_letter *out_letter)
{
    char host[HOST_BYTES] = "", source[HOST_BYTES + 20], type[80], sequence[32];
    int64_t seq = 0;
    const struct pb_json_value *data = pb_json_get(event, "data", NULL);
    const struct pb_json_value *job = pb_json_get(data, "job", NULL);
    struct pb_letter letter = {.id = pb_json_get_text(event, "id"),
                               .event = pb_json_get_text(event, "event"),
                               .job = or_none(pb_json_get_text(job, "id")),
                               .pipeline = or_none(pb_json_get_text(job, "pipeline")),
                               .scene = or_none(pb_json_get_text(job, "scene")),
                               .product = pb_json_get(data, "product", NULL)};
    const char *when = pb_json_get_text(event, "time");
    if (letter.id == NULL || letter.event == NULL || when == NULL ||
        pb_json_get_int(event, "seq", &seq) != 0)
        return -EINVAL;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(source, sizeof source, "//%s/pushbroom", host);
    (void)snprintf(type, sizeof type, "pushbroom.%s", letter.event);
    (void)snprintf(sequence, sizeof sequence, "%" PRId64, seq);
    pb_json_object(json, NULL);
    pb_json_string(json, "specversion", "1.0");
    pb_json_string(json, "id", letter.id);
    pb_json_string(json, "source", source);
    pb_json_string(json, "type", type);
    pb_json_string(json, "subject", letter.job);
    pb_json_string(json, "time", when);
    pb_json_string(json, "sequence", sequence);
    pb_json_string(json, "datacontenttype", "application/json");
    pb_json_raw(json, "data", pb_json_source(data));
    pb_json_end(json);
    letter.body = pb_json_text(json, &letter.bytes);
    if (letter.body == NULL)
        return -ENOMEM;
    *out_letter = letter;
    return 0;
}
