/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names of bands in messages: the one that was probably meant, and a list of those that there are.
 */
#include "kernels/graph/builder.h"
#include "kernels/graph/builder_state.h"
#include "kernels/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pb_builder_nearest(const struct pb_builder *b, const char *name)
{
    const char *best = NULL;

    /* Pairwise: the winner so far against the next. */
    for (size_t i = 0; i < b->n_bands; i++) {
        const char *const pair[2] = {best, b->bands[i].name};

        best = pb_nearest(name, pair, 2);
    }
    return best;
}

/* How many bands from the first on are B1, B2, ...: a scene's without names. */
static size_t numbered(const struct pb_builder *b)
{
    size_t n = 0;
    char name[24];

    for (; n < b->n_bands; n++) {
        (void)snprintf(name, sizeof name, "B%zu", n + 1);
        if (strcmp(b->bands[n].name, name) != 0)
            break;
    }
    return n;
}

const char *pb_builder_list(const struct pb_builder *b, char *text, size_t bytes)
{
    const size_t n = numbered(b), first = n > 6 ? n : 0;
    size_t used = 0;

    (void)snprintf(text, bytes, "none");
    if (first > 0)
        used = (size_t)snprintf(text, bytes, "B1 to B%zu", n);
    for (size_t i = first; i < b->n_bands; i++) {
        const struct pb_band *const band = &b->bands[i];
        const bool fits = used + strlen(band->name) + sizeof ", , ..." <= bytes;

        if (band->value == PB_VALUE_POISON)
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "",
                                 fits ? band->name : "...");
        if (!fits)
            break;
    }
    return text;
}
