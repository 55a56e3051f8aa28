/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_FORMULA_H
#define PB_STAC_FORMULA_H
/* Text of numbers, rules and formulas in a STAC item. Pure; any thread. */
#include "config/base/number.h"

#include <stdbool.h>

struct pb_formula;
struct pb_input_config;
struct pb_item;
struct pb_key;
struct pb_step_config;

enum { PB_STAC_FORMULA_BYTES = 2048, PB_STAC_RULE_BYTES = 160 };

/* Like pb_number_text, but writes a word for a value that is not finite. */
void pb_stac_number_text(double value, char out[PB_NUMBER_TEXT]);
/* "value = DN * 0.0001 - 0.1" */
void pb_stac_input_rule(const struct pb_input_config *input, char *out, size_t bytes);
/* "g * (N - R) / (N + L) with g = 2.5, L = 1" */
void pb_stac_formula_text(const struct pb_formula *formula, char out[PB_STAC_FORMULA_BYTES]);
/* Writes the formula of the band that an entry of a key makes; returns false if it has no
 * formula. */
bool pb_stac_formula_of(const struct pb_step_config *step, const struct pb_key *key,
                        const struct pb_item *item, char out[PB_STAC_FORMULA_BYTES]);
#endif
