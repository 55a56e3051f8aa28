/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_PARAMS_H
#define PB_OP_PARAMS_H
/* Parameters of operators from values in memory, without YAML: for tests of kernels/, which use no
 * layer above. Values that config/ would refuse are not looked for. */
#include "kernels/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for any operator's struct. */
struct op_params {
    _Alignas(16) unsigned char bytes[512];
};

static inline int op_choice(const char *choices, const char *word)
{
    for (int i = 0;; i++) {
        size_t length;
        const char *const at = pb_key_choice(choices, i, &length);

        if (strlen(word) == length && memcmp(at, word, length) == 0)
            return i;
        if (at[length] == '\0') {
            (void)fprintf(stderr, "'%s' is not one of %s\n", word, choices);
            abort();
        }
    }
}

/* Two items, or one "[a, b]". */
static inline void op_set_pair(unsigned char *at, const struct pb_item *items, size_t n)
{
    double pair[2] = {n ? items[0].num : 0, n > 1 ? items[1].num : 0};

    if (n == 1 && sscanf(items[0].text, "[%lf, %lf]", &pair[0], &pair[1]) != 2) {
        (void)fprintf(stderr, "'%s' is no pair\n", items[0].text);
        abort();
    }
    memcpy(at, pair, sizeof pair);
}

/* A member by the type of its key; items as config/ would make them (n == 0: none, which makes a
 * value that is no list zero). The items are borrowed as long as the params. */
static inline void op_set(const struct pb_key *key, struct op_params *params,
                          const struct pb_item *items, size_t n)
{
    unsigned char *const at = params->bytes + key->offset;
    const struct pb_items list = {items, n, false};
    const double number = n && items[0].num == items[0].num ? items[0].num : 0; /* NaN: a word */
    const int32_t whole = key->type != PB_KEY_CHOICE ? (int32_t)number
                          : n                        ? op_choice(key->choices, items[0].text)
                                                     : 0;

    const char *const text = n ? items[0].text : NULL;

    switch (key->type) {
    case PB_KEY_INT:
    case PB_KEY_ODD:
    case PB_KEY_POWER:
    case PB_KEY_CHOICE:
        memcpy(at, &whole, sizeof whole);
        break;
    case PB_KEY_TEXT:
    case PB_KEY_PATH:
    case PB_KEY_CRS:
        memcpy(at, &text, sizeof text);
        break;
    case PB_KEY_NUMBER:
        memcpy(at, &number, sizeof number);
        break;
    case PB_KEY_PAIR:
        op_set_pair(at, items, n);
        break;
    case PB_KEY_NAMES:
    case PB_KEY_EXPRESSION:
    case PB_KEY_BAND:
    case PB_KEY_EXPRESSIONS:
    case PB_KEY_NUMBERS:
    case PB_KEY_CONSTANTS:
    case PB_KEY_WEIGHTS:
    case PB_KEY_VECTORS:
    case PB_KEY_WORDS:
        memcpy(at, &list, sizeof list);
        break;
    default:
        (void)fprintf(stderr, "tests/op_params.h does not know the type of '%s'\n", key->name);
        abort();
    }
    if (key->more && pb_key_may_tell(key->type))
        params->bytes[key->more] = n > 0;
}

/* Returns true if the operator has a key of that name. */
static inline bool op_give(const struct pb_op *op, struct op_params *params, const char *name,
                           const struct pb_item *items, size_t n)
{
    for (size_t i = 0; i < op->n_keys; i++)
        if (strcmp(op->keys[i].name, name) == 0) {
            op_set(&op->keys[i], params, items, n);
            return true;
        }
    return false;
}

/* Zeroed, then the defaults of values that are no lists; those of lists are what operators take for
 * an absent list. */
static inline void op_defaults(const struct pb_op *op, struct op_params *params)
{
    if (op->params_bytes > sizeof params->bytes)
        abort();
    memset(params, 0, sizeof *params);
    for (size_t i = 0; i < op->n_keys; i++) {
        const struct pb_key *const key = &op->keys[i];

        if (key->def && key->type != PB_KEY_NUMBERS) {
            const struct pb_item item = {.text = key->def, .num = strtod(key->def, NULL)};

            op_set(key, params, &item, 1);
        }
    }
}
#endif
