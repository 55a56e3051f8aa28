/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEFLATE_STRINGS_H
#define PB_DEFLATE_STRINGS_H
/* Estimates, from windows of a block, if a search for repeated strings makes it smaller than the
 * encoder of deflate_runs.h does. The result depends on the block's bytes alone; it is
 * integer arithmetic whose parts do not depend on each other's order, so that any device can
 * compute the same. Allocates nothing. Thread: any, one workspace each. */
#include "kernels/codec/strings_pixel.h"

#include <stddef.h>
#include <stdint.h>

struct pb_deflate_strings {
    /* Indexed by hash: first position of a word in the window. */
    uint16_t first[1 << PB_STRINGS_HASH_BITS];
    uint32_t count[4][256]; /* count of literals, by position modulo 4 */
    uint16_t cost[256];     /* cost of a literal, in sixteenths of a bit */
};

enum pb_strings pb_deflate_strings(struct pb_deflate_strings *work, const uint8_t *in,
                                   size_t bytes);
/* The same for samples of one byte: PB_STRINGS_NONE for noise of few values, too, for which the
 * other function returns PB_STRINGS_MANY. */
enum pb_strings pb_deflate_strings_of_bytes(struct pb_deflate_strings *work, const uint8_t *in,
                                            size_t bytes);
#endif
