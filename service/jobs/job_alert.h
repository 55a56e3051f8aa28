/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_ALERT_H
#define PB_JOB_ALERT_H
/* An alert of a running job, for the event alert.raised. Plain memory. */
#include <stdbool.h>
#include <stdint.h>

struct pb_json;

/* most alerts of a run that become events; later ones are only in the product */
#define PB_JOB_ALERTS_MAX   500
#define PB_JOB_ALERT_NUMBER 1000000 /* largest number */
#define PB_JOB_ALERT_NAME   64

struct pb_job_alert {
    char name[PB_JOB_ALERT_NAME]; /* name of the product; "" if absent */
    char band[PB_JOB_ALERT_NAME];
    uint32_t number;      /* count from 1 in each product; a repeated run gives the same number */
    uint32_t pixels;      /* count of pixels of the line beyond the limit */
    int32_t line, sample; /* pixel farthest beyond the limit, from 0 */
    float value;          /* value of that pixel, finite */
    bool has_place;       /* true if lon and lat are known */
    double lon, lat;      /* degrees, WGS 84 */
    int64_t acquired_ns;  /* UTC in ns since 1970; 0 = unknown */
};

/* Prints {name, number, band, value, pixels, line, sample, longitude, latitude, datetime}; unknown
 * members are null. */
void pb_job_alert_print(struct pb_json *json, const char *key, const struct pb_job_alert *alert);
/* Writes the alert as a message for the log, without the job. */
void pb_job_alert_words(const struct pb_job_alert *alert, char out[400]);
#endif
