/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_TIME_H
#define PB_STAC_TIME_H
/* Acquisition time of a scene according to stac.datetime. Nothing is guessed: an unknown time is
 * an error. Pure; any thread. */
#include "pipeline/product/product.h"
#include "pipeline/product/stac/stac.h"

struct pb_stac_when {
    char datetime[40]; /* RFC 3339; "" = a range from start to end (day, observations) */
    char start[40], end[40];
    const char *source; /* "metadata", "lines", "name", "tag", "modification time", "config" */
};

/* The error input.datetime names what is missing. */
int pb_stac_when(const struct pb_stac_config *config, const struct pb_product_env *env,
                 struct pb_stac_when *out, struct pb_err *err);
#endif
