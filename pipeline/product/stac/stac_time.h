/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_TIME_H
#define PB_STAC_TIME_H
/* When a scene was taken, by what stac.datetime says. Nothing is guessed: a time that is not known
 * is an error. Pure; any thread. */
#include "pipeline/product/product.h"
#include "pipeline/product/stac/stac.h"

struct pb_stac_when {
    char datetime[40]; /* RFC 3339; "" = what is known is from start to end: a day, or several
                          observations */
    char start[40], end[40];
    const char *source; /* "metadata", "name", "tag", "modification time", "config" */
};

/* input.datetime says what is missing. */
int pb_stac_when(const struct pb_stac_config *config, const struct pb_product_env *env,
                 struct pb_stac_when *out, struct pb_err *err);
#endif
