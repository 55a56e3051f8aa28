/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MASK_VALUES_H
#define PB_MASK_VALUES_H
/* Which pixels of a quality band have values or bits that a list names. During an operator's
 * build() only. */
#include "kernels/expr/mask_presets.h"
#include "kernels/graph/builder.h"

/* 1 where the pixel has one of the values (bits: one of the bits) of a WORDS parameter, else 0.
 * preset: what words stand for; NULL = numbers only. An entry that is neither is reported, and the
 * value is poison. */
pb_value pb_mask_has_any(struct pb_builder *b, pb_value band, const struct pb_mask_preset *preset,
                         bool bits, const struct pb_items *list);
/* 1 where the pixel has one of the meanings that the preset drops. */
pb_value pb_mask_has_usual(struct pb_builder *b, pb_value band,
                           const struct pb_mask_preset *preset);
#endif
