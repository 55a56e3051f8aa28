/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_ALERT_H
#define PB_JOB_ALERT_H
/* An alert of a running job, for the event alert.raised. Plain memory. */
#include <stdbool.h>
#include <stdint.h>

struct pb_json;

/* most alerts of a run that are events; the product has the others */
#define PB_JOB_ALERTS_MAX   500
#define PB_JOB_ALERT_NUMBER 1000000 /* largest number */
#define PB_JOB_ALERT_NAME   64

struct pb_job_alert {
    char name[PB_JOB_ALERT_NAME]; /* name of the product; "" if absent */
    char band[PB_JOB_ALERT_NAME];
    uint32_t number; /* from 1 for each product: the same when the scene is computed again */
    uint32_t pixels; /* pixels of the line beyond the limit */
    int32_t line, sample;
    float value;    /* finite */
    bool has_place; /* lon and lat, of WGS 84, are known */
    double lon, lat;
    int64_t acquired_ns; /* UTC since 1970; 0 = unknown */
};

/* Prints {name, number, band, value, pixels, line, sample, longitude, latitude, datetime}; null if
 * unknown. */
void pb_job_alert_print(struct pb_json *json, const char *key, const struct pb_job_alert *alert);
/* Prints the alert for the log, without the job. */
void pb_job_alert_words(const struct pb_job_alert *alert, char out[400]);
#endif
