/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Formulas of the catalogue are written in the grammar of our expressions already; two kinds of
 * names in them are not bands. A kernel term (kNR) is written out by the kernel chosen. A constant
 * gets a name that no band has: what the catalogue calls L must never be taken from a band L by
 * accident. */
#include "kernels/index/index_expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct writing {
    char *text;
    size_t bytes, used;
    int rc;
};

/* A piece of the formula. */
struct word {
    const char *text;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct writing *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(w->text + w->used, w->bytes - w->used, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= w->bytes - w->used) {
        w->rc = -ENOSPC;
        w->text[w->used] = '\0';
    } else {
        w->used += (size_t)n;
    }
}

static void put_constant(struct writing *w, const char *name)
{
    put(w, PB_INDEX_CONSTANT_PREFIX "%s", name);
}

/* A band under its own name, a constant under its prefixed one. */
static void put_name(struct writing *w, struct word word)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)word.length, word.text);
    if (pb_index_constant_find(name) != NULL) {
        put_constant(w, name);
    } else {
        put(w, "%s", name);
    }
}

static void put_rbf(struct writing *w, struct word a, struct word b)
{
    if (a.length == b.length && memcmp(a.text, b.text, a.length) == 0) {
        /* Of a valid pixel; every kernel index has another term with its a, so an invalid one makes
         * the index invalid all the same. */
        put(w, "1.0");
        return;
    }
    put(w, "exp(-((");
    put_name(w, a);
    put(w, " - ");
    put_name(w, b);
    put(w, ") ** 2.0) / (2.0 * ");
    put_constant(w, "sigma");
    put(w, " ** 2.0))");
}

static void put_product(struct writing *w, struct word a, struct word b)
{
    put(w, "(");
    put_name(w, a);
    put(w, " * ");
    put_name(w, b);
    put(w, ")");
}

static void put_kernel(struct writing *w, enum pb_index_kernel kernel, struct word a, struct word b)
{
    if (kernel == PB_INDEX_RBF) {
        put_rbf(w, a, b);
    } else if (kernel == PB_INDEX_LINEAR) {
        put_product(w, a, b);
    } else {
        put(w, "((");
        put_product(w, a, b);
        put(w, " + ");
        put_constant(w, "c");
        put(w, ") ** ");
        put_constant(w, "p");
        put(w, ")");
    }
}

static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

int pb_index_expand(const struct pb_index *index, enum pb_index_kernel kernel, char *text,
                    size_t bytes)
{
    struct writing w = {.text = text, .bytes = bytes};
    if (bytes == 0) {
        return -ENOSPC;
    }
    text[0] = '\0';
    for (const char *p = index->formula; *p != '\0';) {
        size_t length = 0;
        while (is_in_word(p[length])) {
            length++;
        }
        size_t cut = pb_index_kernel_split(p, length);
        if (length == 0) {
            put(&w, "%c", *p++);
        } else if (cut > 0) {
            put_kernel(&w, kernel, (struct word){p + 1, cut - 1},
                       (struct word){p + cut, length - cut});
        } else if (isdigit((unsigned char)*p)) {
            put(&w, "%.*s", (int)length, p);
        } else {
            put_name(&w, (struct word){p, length});
        }
        p += length;
    }
    return w.rc;
}
