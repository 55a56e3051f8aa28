/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/mask_values.h"

#include "kernels/nearest.h"

#include <math.h>

static pb_value number(struct pb_builder *b, double v)
{
    return pb_builder_constant(b, (float)v);
}

/* 1 where the pixel has the meaning. */
static pb_value has(struct pb_builder *b, pb_value band, const struct pb_mask_meaning *meaning)
{
    const pb_value value = number(b, meaning->value);

    if (meaning->n == 0)
        return pb_builder_emit(b, PB_VM_EQ, band, value, -1);
    const pb_value bits =
        pb_builder_emit(b, PB_VM_BITS, band, number(b, meaning->from), number(b, meaning->n));
    return meaning->n == 1 ? bits : pb_builder_emit(b, PB_VM_EQ, bits, value, -1);
}

/* The meaning of an entry; false after a mistake. */
static bool entry_means(struct pb_builder *b, const struct pb_mask_preset *preset, bool bits,
                        const struct pb_item *item, struct pb_mask_meaning *out)
{
    const char *words[32];
    const double most = bits ? 31.0 : 16777216.0;

    if (!isnan(item->num)) {
        *out = (struct pb_mask_meaning){.from = bits ? (int)item->num : 0, .n = bits};
        out->value = bits ? 1 : (int)item->num;
        if (item->num == rint(item->num) && item->num <= most && item->num >= (bits ? 0.0 : -most))
            return true;
        (void)pb_builder_mistake(b, PB_DIAG_VALUE, item, 0, "%s is no %s", item->text,
                                 bits ? "bit; they are numbered from 0 to 31" : "whole number");
        return false;
    }
    const struct pb_mask_meaning *const known =
        preset ? pb_mask_meaning_find(preset, item->text) : NULL;
    if (known) {
        *out = *known;
        return true;
    }
    for (size_t i = 0; preset && i < preset->n; i++)
        words[i] = preset->meaning[i].word;
    const char *const near = preset ? pb_nearest(item->text, words, preset->n) : NULL;
    (void)pb_builder_mistake(
        b, PB_DIAG_VALUE, item, 0, "'%.60s' is %s%s%s%s", item->text,
        preset ? "no word of the preset " : "a word, which needs a preset to have a meaning",
        preset ? preset->name : "", near ? "; did you mean " : "", near ? near : "");
    return false;
}

pb_value pb_mask_has_any(struct pb_builder *b, pb_value band, const struct pb_mask_preset *preset,
                         bool bits, const struct pb_items *list)
{
    pb_value any = number(b, 0);

    for (size_t i = 0; i < list->n; i++) {
        struct pb_mask_meaning meaning;
        const bool good = entry_means(b, preset, bits, &list->items[i], &meaning);
        const pb_value one = good ? has(b, band, &meaning) : PB_VALUE_POISON;

        any = i == 0 ? one : pb_builder_emit(b, PB_VM_OR, any, one, -1);
    }
    return any;
}

pb_value pb_mask_has_usual(struct pb_builder *b, pb_value band, const struct pb_mask_preset *preset)
{
    pb_value any = -1;

    for (size_t i = 0; i < preset->n; i++) {
        if (!preset->meaning[i].drops)
            continue;
        const pb_value one = has(b, band, &preset->meaning[i]);

        any = any < 0 ? one : pb_builder_emit(b, PB_VM_OR, any, one, -1);
    }
    return any;
}
