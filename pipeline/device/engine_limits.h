/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENGINE_LIMITS_H
#define PB_ENGINE_LIMITS_H
/* The table of the limits of the engines (engine_limits.def). Rows are static; any thread. */

enum pb_engine_name {
    PB_ENGINE_GPU,      /* computing on the GPU */
    PB_ENGINE_RESIDENT, /* a kernel that stays on the GPU */
    PB_ENGINE_DECODER,  /* decoding of blocks on the GPU */
    PB_ENGINE_FILE,     /* decoding of one file's blocks there */
    PB_ENGINE_PRODUCTS, /* products that are made there of the decoded pixels */
    PB_ENGINE_MANAGED,  /* planes of the scene in managed memory */
    PB_ENGINES
};

enum pb_limit_kind { PB_LIMIT_CHOSEN, PB_LIMIT_MACHINE, PB_LIMIT_SCENE, PB_LIMIT_MISSING };

enum pb_limit {
#define PB_LIMIT(id, engine, kind, feature, reason, remedy) PB_LIMIT_##id,
#include "pipeline/device/engine_limits.def"
#undef PB_LIMIT
    PB_LIMITS
};

struct pb_engine_limit {
    enum pb_engine_name engine;
    enum pb_limit_kind kind;
    const char *feature; /* words for the table */
    const char *reason;  /* reason for the user */
    const char *remedy;  /* advice for the user, or "" */
};

const struct pb_engine_limit *pb_engine_limit(enum pb_limit limit);
/* Its reason. */
const char *pb_limit_reason(enum pb_limit limit);
/* First row that has this reason; NULL: none has it. */
const struct pb_engine_limit *pb_engine_limit_of(const char *reason);
/* "chosen", "machine", "scene" or "missing". */
const char *pb_limit_kind_name(enum pb_limit_kind kind);
/* The engine in the words of the dry run: "decoding on the GPU". */
const char *pb_engine_words(enum pb_engine_name engine);
#endif
