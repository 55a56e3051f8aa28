/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue in memory: two static tables and look-ups by walking them, which happens a few
 * times a job. What a name in a row's list of bands is follows from the tables: a row of the
 * constants, a kernel term (k and two names: kNR is k(N, R)), or else a band. */
#include "kernels/index/index_table.h"
#include "kernels/nearest.h"

#include <stdio.h>
#include <string.h>

static const struct pb_index indices[] = {
#define PB_INDEX(name, long_name, domain, formula, bands, reference)                               \
    {name, long_name, domain, formula, bands, reference},
#include "kernels/index/index_table.def"
#undef PB_INDEX
};

static const struct pb_index_constant constants[] = {
#define PB_INDEX_CONSTANT(name, has_default, value, doc) {name, has_default, value, doc},
#include "kernels/index/index_constants.def"
#undef PB_INDEX_CONSTANT
};

#define N_INDICES   (sizeof indices / sizeof indices[0])
#define N_CONSTANTS (sizeof constants / sizeof constants[0])

size_t pb_index_count(void)
{
    return N_INDICES;
}

const struct pb_index *pb_index_at(size_t i)
{
    return i < N_INDICES ? &indices[i] : NULL;
}

const struct pb_index *pb_index_find(const char *name)
{
    for (size_t i = 0; i < N_INDICES; i++) {
        if (strcmp(indices[i].name, name) == 0) {
            return &indices[i];
        }
    }
    return NULL;
}

size_t pb_index_constant_count(void)
{
    return N_CONSTANTS;
}

const struct pb_index_constant *pb_index_constant_at(size_t i)
{
    return i < N_CONSTANTS ? &constants[i] : NULL;
}

static bool same(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static const struct pb_index_constant *constant_of(const char *text, size_t length)
{
    for (size_t i = 0; i < N_CONSTANTS; i++) {
        if (same(constants[i].name, text, length)) {
            return &constants[i];
        }
    }
    return NULL;
}

const struct pb_index_constant *pb_index_constant_find(const char *name)
{
    return constant_of(name, strlen(name));
}

const char *pb_index_nearest(const char *name)
{
    const char *names[N_INDICES];
    for (size_t i = 0; i < N_INDICES; i++) {
        names[i] = indices[i].name;
    }
    return pb_nearest(name, names, N_INDICES);
}

/* -- names in a row's list of bands ------------------------------------------------------------ */

bool pb_index_next_name(const char **list, const char **out_name, size_t *out_length)
{
    const char *name = *list + strspn(*list, " ");
    size_t length = strcspn(name, " ");
    *list = name + length;
    *out_name = name;
    *out_length = length;
    return length > 0;
}

/* A band by the catalogue: a name that some row lists and that is no constant. Kernel terms are
 * listed too, but no term can be part of another, for the parts of a term are shorter. */
static bool is_catalogue_name(const char *text, size_t length)
{
    if (constant_of(text, length) != NULL) {
        return true;
    }
    for (size_t i = 0; i < N_INDICES; i++) {
        const char *list = indices[i].bands, *name;
        size_t name_length;
        while (pb_index_next_name(&list, &name, &name_length)) {
            if (name_length == length && memcmp(name, text, length) == 0) {
                return true;
            }
        }
    }
    return false;
}

size_t pb_index_kernel_split(const char *term, size_t length)
{
    if (length < 3 || term[0] != 'k' || constant_of(term, length) != NULL) {
        return 0;
    }
    for (size_t cut = 2; cut < length; cut++) {
        if (is_catalogue_name(term + 1, cut - 1) && is_catalogue_name(term + cut, length - cut)) {
            return cut;
        }
    }
    return 0;
}

static bool among(const char *const *names, size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (same(names[i], text, length)) {
            return true;
        }
    }
    return false;
}

/* What is there, and where the names of what is not go. */
struct inventory {
    const char *const *bands;
    size_t n_bands;
    const char *const *constants;
    size_t n_constants;
    char *missing;
    size_t missing_bytes, used;
    bool complete;
};

static bool is_listed(const char *list, const char *text, size_t length)
{
    const char *name;
    size_t name_length;
    while (pb_index_next_name(&list, &name, &name_length)) {
        if (name_length == length && memcmp(name, text, length) == 0) {
            return true;
        }
    }
    return false;
}

static void need(struct inventory *have, const char *text, size_t length)
{
    const struct pb_index_constant *constant = constant_of(text, length);
    bool there = constant != NULL ? constant->has_default ||
                                        among(have->constants, have->n_constants, text, length)
                                  : among(have->bands, have->n_bands, text, length);
    if (there) {
        return;
    }
    have->complete = false;
    if (have->used + length + 2 > have->missing_bytes || is_listed(have->missing, text, length)) {
        return;
    }
    have->used += (size_t)snprintf(have->missing + have->used, have->missing_bytes - have->used,
                                   "%s%.*s", have->used > 0 ? " " : "", (int)length, text);
}

bool pb_index_can(const struct pb_index *index, const char *const *bands, size_t n_bands,
                  const char *const *given, size_t n_given, char *missing, size_t missing_bytes)
{
    struct inventory have = {bands, n_bands, given, n_given, missing, missing_bytes, 0, true};
    const char *list = index->bands, *name;
    size_t length;
    if (missing_bytes > 0) {
        missing[0] = '\0';
    }
    while (pb_index_next_name(&list, &name, &length)) {
        size_t cut = pb_index_kernel_split(name, length);
        if (cut == 0) {
            need(&have, name, length);
        } else {
            need(&have, name + 1, cut - 1);
            need(&have, name + cut, length - cut);
        }
    }
    return have.complete;
}

static const struct pb_index_band bands_of_names[] = {
#define PB_INDEX_BAND(name, meaning, shortest, longest, sentinel2, landsat8, planetscope)          \
    {name, meaning, shortest, longest, sentinel2, landsat8, planetscope},
#include "kernels/index/index_bands.def"
#undef PB_INDEX_BAND
};

size_t pb_index_band_count(void)
{
    return sizeof bands_of_names / sizeof bands_of_names[0];
}

const struct pb_index_band *pb_index_band_at(size_t i)
{
    return i < pb_index_band_count() ? &bands_of_names[i] : NULL;
}
