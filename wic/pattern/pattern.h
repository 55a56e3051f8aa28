/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PATTERN_H
#define WIC_PATTERN_H
/* Communication patterns: in which direction, in what portions and in which order data goes between
 * two parties D0 and D1 (host and GPU, say), or more, over one channel each way. A pattern is a
 * struct of functions that yield transfer *steps*, and a step is plain data (wic/pattern/step.h).
 * So a host thread and a resident kernel replay the same schedule, and no function pointer ever
 * reaches a device.
 *
 * This header is all that a plugin needs: it links to nothing of the host. A plugin is one file
 *
 *     #include "wic/pattern/pattern.h"
 *     WIC_PATTERN_EXPORT = {.abi = WIC_PATTERN_ABI, .size = sizeof(struct wic_pattern),
 *                           .name = "alternating", .doc = "what it is for",
 *                           .create = create, .next = next, .destroy = destroy};
 *
 * built as alternating.so and loaded by wic/pattern/plugin.h. Patterns built in (wic_pattern_find)
 * are the same struct. What a pattern yields is checked (wic_schedule_next), as a plugin is foreign
 * code.
 *
 * The models of communication, with n and m chunks down (from D0) and up (to D0):
 *   unidirectional  (D0->D1)^n                       built in; all chunks are one step
 *   alternating     (D0->D1, D1->D0)^n               wic/patterns/alternating.c
 *   multiple        ((D0->D1)^n0, (D1->D0)^n1)^N     wic/patterns/multiple.c
 *   probabilistic   the direction and the number of  wic/patterns/probabilistic.c
 *                   chunks anew each time, by chance or by the data
 * With more parties D0 exchanges with each of the others in turn.
 *
 * What is not known beforehand. The total of a way may be WIC_OPEN: the end of the stream decides.
 * A step may be WIC_STEP_TOLD: its sender says how many chunks there were and a value, and `told`
 * gets both before `next` is called again; so counts, directions and the end may be decided by
 * data. A schedule depends on the parameters and on what was told, and on nothing else: every party
 * that is told the same gets the same steps.
 *
 * How this grows. Structs get new members at their end only. `size` says how much of one there is:
 * the host reads of a wic_pattern no more than its size, a plugin reads of wic_pattern_params no
 * more than its size. A step is always 64 bytes; new members come out of `reserved` and unused bits
 * of `flags`, which are 0, so that a host rejects what it does not know. A change that breaks these
 * rules changes WIC_PATTERN_ABI.
 *
 * Threads: a pattern may be used by several threads, one state by one at a time. */
#include "wic/pattern/limits.h"
#include "wic/pattern/step.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_PATTERN_ABI        2u
#define WIC_PATTERN_CHUNKS_MAX (UINT64_C(1) << 40) /* of one way */
#define WIC_OPEN               UINT64_MAX          /* a total that is not known */

/* An argument that a pattern takes: a number. */
struct wic_pattern_arg {
    const char *name; /* as a pattern's; not "pattern" */
    const char *doc;  /* its meaning, a sentence */
    uint64_t min, max, def;
};

/* What a schedule is for. Borrowed during create only. */
struct wic_pattern_params {
    uint32_t size;        /* sizeof(struct wic_pattern_params) of the host */
    uint32_t parties;     /* 2 .. WIC_PARTIES_MAX */
    uint32_t slots;       /* of the ring of each way */
    uint32_t reserved;    /* 0 */
    uint64_t chunk_bytes; /* of a slot */
    uint64_t seed;        /* the only source of randomness */
    const uint64_t *args; /* one for each of the pattern's, in the order of its table, in range */
    uint64_t chunks[WIC_PARTIES_MAX][WIC_PARTIES_MAX]; /* to be moved in all, or WIC_OPEN, by from
                                                          and to */
};

struct wic_pattern {
    uint32_t abi;                       /* WIC_PATTERN_ABI */
    uint32_t size;                      /* sizeof(struct wic_pattern) of the plugin */
    const char *name;                   /* as the file is called */
    const char *doc;                    /* a line or two for people */
    const struct wic_pattern_arg *args; /* that it takes; NULL and 0: none */
    uint64_t arg_count;
    /* Starts a schedule. 0 or negative errno (-EINVAL: this pattern cannot do that). */
    int (*create)(const struct wic_pattern_params *params, void **out_state);
    /* 1 and the next step; 0 when all chunks are moved, or enough of an open way; or negative
     * errno. *out_step is all 0 on entry. Must not block. */
    int (*next)(void *state, struct wic_step *out_step);
    /* What came of a step with WIC_STEP_TOLD, which every step of an open way has. 0 or negative
     * errno. NULL: this pattern has no such steps. */
    int (*told)(void *state, const struct wic_step *step, const struct wic_outcome *outcome);
    /* NULL is fine. */
    void (*destroy)(void *state);
};

/* What a plugin defines, once. */
#define WIC_PATTERN_SYMBOL "wic_pattern_plugin"
#define WIC_PATTERN_EXPORT                                                                         \
    extern const struct wic_pattern wic_pattern_plugin;                                            \
    __attribute__((visibility("default"))) const struct wic_pattern wic_pattern_plugin

#ifdef __cplusplus
}
#endif
#endif
