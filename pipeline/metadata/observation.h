/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OBSERVATION_H
#define PB_OBSERVATION_H
/* Counted files of a scene (nth) whose metadata, or a list of them, were read: in the order
 * derived from these (input.order: cloud, list), or from their names. Plain data. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_observation {
    const char *file;   /* path inside the scene; borrowed */
    const char *match;  /* pattern of input.files that it matches; borrowed */
    int32_t nth;        /* number among the matching files, from 1; 0 = not in the list */
    double cloud_cover; /* percent; NaN = unknown, or not relevant */
    char datetime[40];  /* acquisition time, RFC 3339 in UTC; "" = unknown */
    bool is_used;       /* false: no entry of input.files uses this number */
};

struct pb_observations {
    struct pb_observation *one; /* pattern after pattern, in order; owned by the creator */
    size_t n;                   /* 0: no metadata were read */
    int32_t order;              /* enum pb_file_order */
};

/* Writes them as the member "order" of an object; nothing if empty or NULL. Thread: any. */
struct pb_json;
void pb_observations_print(const struct pb_observations *observations, struct pb_json *json);
#endif
