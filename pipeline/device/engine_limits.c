/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/engine_limits.h"

#include <stddef.h>
#include <string.h>

static const struct pb_engine_limit limits[PB_LIMITS] = {
#define PB_LIMIT(id, engine, kind, feature, reason, remedy)                                        \
    {PB_ENGINE_##engine, PB_LIMIT_##kind, feature, reason, remedy},
#include "pipeline/device/engine_limits.def"
#undef PB_LIMIT
};

const struct pb_engine_limit *pb_engine_limit(enum pb_limit limit)
{
    return &limits[limit];
}

const char *pb_limit_reason(enum pb_limit limit)
{
    return limits[limit].reason;
}

const struct pb_engine_limit *pb_engine_limit_of(const char *reason)
{
    for (int i = 0; i < PB_LIMITS; i++)
        if (strcmp(limits[i].reason, reason) == 0)
            return &limits[i];
    return NULL;
}

const char *pb_limit_kind_name(enum pb_limit_kind kind)
{
    static const char *const names[] = {"chosen", "machine", "scene", "missing"};
    return names[kind];
}

const char *pb_engine_words(enum pb_engine_name engine)
{
    static const char *const words[PB_ENGINES] = {
        "computing on the GPU",     "a kernel that stays on the GPU",
        "decoding on the GPU",      "decoding of a file on the GPU",
        "products made on the GPU", "planes in managed memory"};
    return words[engine];
}
