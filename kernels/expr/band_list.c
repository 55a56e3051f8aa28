/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/band_list.h"
#include "kernels/graph/builder_state.h"

#include <stdio.h>
#include <string.h>

size_t pb_band_list_count(const struct pb_items *names, const struct pb_builder *b)
{
    return names->n ? names->n : pb_builder_band_count(b);
}

/* "no band 'X' here", and the nearest one or all. */
static void say_unknown(struct pb_builder *b, const char *name, char *text, size_t bytes)
{
    const char *const near = pb_builder_nearest(b, name);
    char list[200];

    (void)snprintf(text, bytes, "no band '%.80s' here; %s%s%s", name,
                   near ? "did you mean '" : "known: ",
                   near ? near : pb_builder_list(b, list, sizeof list), near ? "'?" : "");
}

static pb_value find(struct pb_builder *b, const char *name, const struct pb_item *item)
{
    const pb_value value = pb_builder_find(b, name);
    char text[400];

    if (value >= 0)
        return value;
    say_unknown(b, name, text, sizeof text);
    (void)pb_builder_mistake(b, PB_DIAG_BAND, item, 0, "%s", text);
    return PB_VALUE_POISON;
}

pb_value pb_band_list_named(struct pb_builder *b, char *const *name)
{
    const pb_value value = pb_builder_find(b, *name);
    char text[400];

    if (value >= 0)
        return value;
    say_unknown(b, *name, text, sizeof text);
    (void)pb_builder_wrong(b, name, "%s", text);
    return PB_VALUE_POISON;
}

struct pb_band_pick pb_band_list_at(const struct pb_items *names, struct pb_builder *b, size_t i)
{
    const struct pb_item *const item = names->n ? &names->items[i] : NULL;
    const char *const in = item ? item->text : pb_builder_band_name(b, i);

    return (struct pb_band_pick){item ? pb_item_band(item) : in, find(b, in, item), item};
}

pb_value pb_band_list_ended(struct pb_builder *b, const char *base, const struct pb_item *ending,
                            const struct pb_item *at, const char *whose)
{
    char name[2 * 64];

    (void)snprintf(name, sizeof name, "%.63s%.63s", base, ending->text);
    const pb_value x = pb_builder_find(b, name);
    if (x >= 0)
        return x;
    (void)pb_builder_mistake(b, PB_DIAG_BAND, at, 0,
                             "no band '%s' here, which is '%.63s' of %s '%.63s'", name, base, whose,
                             ending->text);
    return PB_VALUE_POISON;
}

double pb_band_list_number(const struct pb_items *numbers, const char *out, double fallback)
{
    for (size_t i = 0; i < numbers->n; i++)
        if (!numbers->items[i].key || strcmp(numbers->items[i].key, out) == 0)
            return numbers->items[i].num;
    return fallback;
}

void pb_band_list_check_numbers(const struct pb_items *numbers, const struct pb_items *names,
                                struct pb_builder *b, const char *what)
{
    const size_t n_names = pb_band_list_count(names, b);

    for (size_t i = 0; i < numbers->n && !names->is_partial; i++) {
        const struct pb_item *const number = &numbers->items[i];
        bool found = !number->key;

        for (size_t k = 0; k < n_names && !found; k++) {
            const struct pb_item *const item = names->n ? &names->items[k] : NULL;
            const char *const out = item ? pb_item_band(item) : pb_builder_band_name(b, k);

            found = strcmp(out, number->key) == 0;
        }
        if (!found)
            (void)pb_builder_mistake(
                b, PB_DIAG_BAND, number, 0,
                "'%s' names '%.80s', which is not among the bands of this step", what, number->key);
    }
}
