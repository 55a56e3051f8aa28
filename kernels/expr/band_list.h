/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BAND_LIST_H
#define PB_BAND_LIST_H
/* "Which bands does this step work on": the reading of a NAMES parameter that many operators share.
 * Not given: every band known now, each in place. [A, B]: these, in place. {OUT: IN}: made from IN
 * under the name OUT. Entries go in order, so a later one sees what an earlier one made. During an
 * operator's build() only. */
#include "kernels/graph/builder.h"

struct pb_band_pick {
    const char *out;            /* name to define; valid until the builder ends */
    pb_value value;             /* of the band to work on */
    const struct pb_item *item; /* NULL: from "every band" */
};

/* Number of entries. Ask once, before defining anything. */
size_t pb_band_list_count(const struct pb_items *names, const struct pb_builder *b);
/* Entry i. When there is no such band that is reported (with the nearest one for a typo) and the
 * value is poison. */
struct pb_band_pick pb_band_list_at(const struct pb_items *names, struct pb_builder *b, size_t i);

/* The value of the band that a TEXT parameter names. When there is none that is reported and the
 * value is poison. name: the member of the struct that build() got. */
pb_value pb_band_list_named(struct pb_builder *b, char *const *name);

/* The value of the band with the name `base` and an entry's text behind it, of one of several
 * images whose bands go by one name and an ending each. When there is none that is reported at the
 * item `at`, and the value is poison. whose: "scene". */
pb_value pb_band_list_ended(struct pb_builder *b, const char *base, const struct pb_item *ending,
                            const struct pb_item *at, const char *whose);

/* What a NUMBERS parameter says for the band `out`: the one number for all, its own entry, or
 * `fallback`. */
double pb_band_list_number(const struct pb_items *numbers, const char *out, double fallback);
/* Reports entries of a NUMBERS map that belong to no entry of `names`. what: the parameter's name.
 */
void pb_band_list_check_numbers(const struct pb_items *numbers, const struct pb_items *names,
                                struct pb_builder *b, const char *what);
#endif
