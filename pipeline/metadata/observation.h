/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OBSERVATION_H
#define PB_OBSERVATION_H
/* The counted files of a scene (nth) of which metadata or a list were read: in the order that
 * follows from these (input.order: cloud, list), or from their names. Plain data. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_observation {
    const char *file;   /* its path inside the scene; borrowed */
    const char *match;  /* the pattern of input.files that it fits; borrowed */
    int32_t nth;        /* of those that fit, from 1; 0 = the list lacks it */
    double cloud_cover; /* percent; NaN = nothing says it, or it does not count */
    char datetime[40];  /* of the acquisition, RFC 3339 in UTC; "" = nothing says it */
    bool is_used;       /* else no entry of input.files counts so far */
};

struct pb_observations {
    struct pb_observation *one; /* pattern after pattern, in order; owned by who made them */
    size_t n;                   /* 0: nothing was read of them */
    int32_t order;              /* enum pb_file_order */
};

/* As the member "order" of an object; nothing when there are none, or NULL. Thread: any. */
struct pb_json;
void pb_observations_print(const struct pb_observations *observations, struct pb_json *json);
#endif
