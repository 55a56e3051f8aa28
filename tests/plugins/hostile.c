/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plugins that must be refused: built once for each HOSTILE_*, as hostile_*.so. */
#include "wic/pattern/pattern.h"

#include <stdlib.h>

int nobody_has_this(void);
int hostile_entry(void);

static int create(const struct wic_pattern_params *params, void **out_state)
{
    *out_state = NULL;
    return params->size < sizeof(*params) ? -1 : 0;
}

#if defined(HOSTILE_abi)
#define ABI (WIC_PATTERN_ABI + 1)
#elif defined(HOSTILE_old) /* abi and size are where they were in ABI 1 */
#define ABI 1
#else
#define ABI WIC_PATTERN_ABI
#endif
#ifdef HOSTILE_size
#define SIZE 16
#else
#define SIZE sizeof(struct wic_pattern)
#endif
#ifdef HOSTILE_next
#define NEXT NULL
#else
static int next(void *state, struct wic_step *out_step)
{
    (void)state;
    out_step->to = 1;
    out_step->count = UINT64_MAX; /* HOSTILE_liar: all there is, and more */
    out_step->chunk_bytes = 1;
    return 1;
}
#define NEXT next
#endif
#if defined(HOSTILE_misnamed)
#define NAME "alternating"
#elif defined(HOSTILE_liar)
#define NAME "hostile_liar"
#elif defined(HOSTILE_next)
#define NAME "hostile_next"
#else
#define NAME "Not a name"
#endif

#ifdef HOSTILE_unresolved
int hostile_entry(void)
{
    return nobody_has_this();
}
#endif

#ifdef HOSTILE_symbol
#define wic_pattern_plugin hostile_under_another_name
#endif
WIC_PATTERN_EXPORT = {ABI, SIZE, NAME, "hostile", NULL, 0, create, NEXT, NULL, free};
