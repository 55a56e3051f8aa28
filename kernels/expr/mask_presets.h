/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MASK_PRESETS_H
#define PB_MASK_PRESETS_H
/* Mask bands that are known by name: what their values and bits mean. The list is
 * mask_presets.def. Static, read-only; any thread. */
#include <stdbool.h>
#include <stddef.h>

/* A pixel has it when its bits from .. from + n - 1 are `value`; n == 0: when it is `value`. */
struct pb_mask_meaning {
    const char *word;
    int from, n, value;
    bool drops; /* unless the step says what is dropped */
};

struct pb_mask_preset {
    const char *name;
    bool is_bits; /* its meanings are bits; else values */
    const char *about;
    const struct pb_mask_meaning *meaning;
    size_t n;
};

size_t pb_mask_preset_count(void);
struct pb_mask_preset pb_mask_preset_at(size_t i);
/* False: there is none of that name. */
bool pb_mask_preset_find(const char *name, struct pb_mask_preset *out);
/* Whether a band of that name is a quality band: its values are classes or bits (SCL, QA_PIXEL). */
bool pb_mask_is_quality_band(const char *name);
/* Whether the name of a file, or a pattern of names, has the name of such a band in it. */
bool pb_mask_is_quality_file(const char *name);
/* The meaning that a word stands for; NULL = none. */
const struct pb_mask_meaning *pb_mask_meaning_find(const struct pb_mask_preset *preset,
                                                   const char *word);
/* What it drops unless a step says otherwise: "drops fill, cloud". */
void pb_mask_preset_usual(const struct pb_mask_preset *preset, char *out, size_t bytes);
#endif
