/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/job_alert.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"

#include <stdio.h>

void pb_job_alert_print(struct pb_json *json, const char *key, const struct pb_job_alert *alert)
{
    char when[PB_CLOCK_TEXT_BYTES] = "";
    if (alert->acquired_ns > 0)
        pb_clock_text(alert->acquired_ns / 1000000, when);
    pb_json_object(json, key);
    pb_json_string(json, "name", alert->name[0] != '\0' ? alert->name : NULL);
    pb_json_int(json, "number", alert->number);
    pb_json_string(json, "band", alert->band);
    pb_json_float(json, "value", alert->value);
    pb_json_int(json, "pixels", alert->pixels);
    pb_json_int(json, "line", alert->line);
    pb_json_int(json, "sample", alert->sample);
    if (alert->has_place) {
        pb_json_number(json, "longitude", alert->lon);
        pb_json_number(json, "latitude", alert->lat);
    } else {
        pb_json_null(json, "longitude");
        pb_json_null(json, "latitude");
    }
    pb_json_string(json, "datetime", when[0] != '\0' ? when : NULL);
    pb_json_end(json);
}

void pb_job_alert_words(const struct pb_job_alert *alert, char out[400])
{
    char place[64] = "";
    if (alert->has_place)
        (void)snprintf(place, sizeof place, ", longitude %.5f, latitude %.5f", alert->lon,
                       alert->lat);
    (void)snprintf(out, 400, "alert %u%s%s: %s is %g at line %d, sample %d%s; %u such pixels",
                   alert->number, alert->name[0] != '\0' ? " of " : "", alert->name, alert->band,
                   (double)alert->value, (int)alert->line, (int)alert->sample, place,
                   alert->pixels);
}
