/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_ROWS_H
#define PB_SCHEMA_ROWS_H
/* Forms of rows in tables of keys, one macro each; only files with such tables include this. */
#include "config/schema.h"

#define N_OF(rows) (sizeof(rows) / sizeof *(rows))
#define RANGED(n, kind, at, lowest, highest, dflt, text)                                           \
    {                                                                                              \
        .name = n, .type = kind, .offset = at, .min = lowest, .max = highest, .def = dflt,         \
        .doc = text                                                                                \
    }
#define CHOICE(n, at, words, dflt, text)                                                           \
    {                                                                                              \
        .name = n, .type = PB_KEY_CHOICE, .offset = at, .choices = words, .def = dflt, .doc = text \
    }
#define OPTION(n, kind, at, also, sample, text)                                                    \
    {                                                                                              \
        .name = n, .type = kind, .offset = at, .more = also, .example = sample, .doc = text        \
    }
#define LISTED(n, kind, at, also, dflt, text)                                                      \
    {                                                                                              \
        .name = n, .type = kind, .offset = at, .more = also, .def = dflt, .doc = text              \
    }
#define TEXT(n, at, sample, text) OPTION(n, PB_KEY_TEXT, at, 0, sample, text)
/* A required whole number. */
#define NEEDED(n, at, lowest, highest, value, text)                                                \
    {                                                                                              \
        .name = n, .type = PB_KEY_INT, .offset = at, .min = lowest, .max = highest,                \
        .example = value, .sample = value, .required = true, .doc = text                           \
    }
#endif
