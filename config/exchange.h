/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXCHANGE_H
#define PB_EXCHANGE_H
/* Which communication pattern (wic/pattern/pattern.h) tiles, their parts or rounds follow, with
 * values for the pattern's arguments. The pattern is static or of a plugin that stays loaded. */
#include "kernels/op.h"
#include "wic/pattern/limits.h"

struct pb_exchange_config {
    char *name; /* of the pattern */
    const struct wic_pattern *pattern;
    uint64_t args[WIC_PATTERN_ARGS_MAX]; /* in the order of the pattern's table */
    enum pb_op_exchange_of of;
};

/* "tiles", "parts" or "rounds". Thread: any. */
const char *pb_exchange_of_name(enum pb_op_exchange_of of);
/* "multiple (n0: 3, n1: 1)". Returns what snprintf would. Thread: any. */
int pb_exchange_print(const struct pb_exchange_config *exchange, char *text, size_t bytes);

/* Room for the keys of an exchange. */
struct pb_exchange_keys {
    struct pb_section section;
    struct pb_key key[1 + WIC_PATTERN_ARGS_MAX];
    char def[WIC_PATTERN_ARGS_MAX][24];
};

/* The keys of struct pb_exchange_config: `pattern`, and the arguments of this pattern. Borrowed
 * from *room. Thread: any. */
const struct pb_section *pb_exchange_section(const struct wic_pattern *pattern,
                                             struct pb_exchange_keys *room);
#endif
