/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_formula.h"
#include "config/pipeline_config.h"
#include "kernels/key.h"
#include "kernels/op.h"

#include <math.h>
#include <stdio.h>

/* pb_number_text is for finite numbers; a nodata value may be NaN. */
void pb_stac_number_text(double value, char out[PB_NUMBER_TEXT])
{
    if (isfinite(value))
        (void)pb_number_text(value, out);
    else
        (void)snprintf(out, PB_NUMBER_TEXT, "%s",
                       isnan(value) ? "NaN"
                       : value < 0  ? "-inf"
                                    : "inf");
}

void pb_stac_input_rule(const struct pb_input_config *input, char *out, size_t bytes)
{
    char scale[PB_NUMBER_TEXT], offset[PB_NUMBER_TEXT];
    pb_stac_number_text(input->scale, scale);
    pb_stac_number_text(fabs(input->offset), offset);
    if (input->scale == 1 && input->offset == 0)
        (void)snprintf(out, bytes, "value = DN");
    else
        (void)snprintf(out, bytes, "value = DN * %s %c %s", scale, input->offset < 0 ? '-' : '+',
                       offset);
}

/* "g * (N - R) / (N + L) with g = 2.5, L = 1" */
void pb_stac_formula_text(const struct pb_formula *formula, char out[PB_STAC_FORMULA_BYTES])
{
    size_t used = (size_t)snprintf(out, PB_STAC_FORMULA_BYTES, "%s", formula->text);
    for (size_t i = 0; i < formula->n_constants && used < PB_STAC_FORMULA_BYTES; i++) {
        char number[PB_NUMBER_TEXT];
        pb_stac_number_text(formula->constant[i].value, number);
        used += (size_t)snprintf(out + used, PB_STAC_FORMULA_BYTES - used, "%s%s = %s",
                                 i ? ", " : " with ", formula->constant[i].name, number);
    }
}

/* Writes the formula of the band that an entry of a key makes; returns false if it has no
 * formula. */
bool pb_stac_formula_of(const struct pb_step_config *step, const struct pb_key *key,
                        const struct pb_item *item, char out[PB_STAC_FORMULA_BYTES])
{
    struct pb_formula formula;
    if (!key->makes_bands || step->op->formula == NULL ||
        !step->op->formula(step->params, item, &formula))
        return false;
    pb_stac_formula_text(&formula, out);
    return true;
}
