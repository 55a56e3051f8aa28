/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXCHANGE_H
#define PB_EXCHANGE_H
/* Which communication pattern (wic/pattern/pattern.h) tiles or rounds follow, with values for the
 * pattern's arguments. The pattern is static or of a plugin that stays loaded. */
#include "kernels/key.h"
#include "wic/pattern/pattern.h"

struct pb_exchange_config {
    char *name; /* of the pattern */
    const struct wic_pattern *pattern;
    uint64_t args[WIC_PATTERN_ARGS_MAX]; /* in the order of the pattern's table */
};

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
