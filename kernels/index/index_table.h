/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INDEX_TABLE_H
#define PB_INDEX_TABLE_H
/* The catalogue of spectral indices: names, formulas, bands and constants after
 * awesome-spectral-indices (David Montero Loaiza and contributors, MIT). Static, read-only; any
 * thread. Rows: kernels/index/index_table.def and kernels/index/index_constants.def. */
#include <stdbool.h>
#include <stddef.h>

struct pb_index {
    const char *name; /* "NDVI" */
    const char *long_name;
    const char *domain;  /* vegetation, water, burn, urban, soil, radar, snow, clouds, kernel */
    const char *formula; /* in the grammar of kernels/expr/expr.c */
    const char *bands; /* space separated: "N R" (bands, kernel terms such as kNN, and constants) */
    const char *reference; /* DOI or URL */
};

struct pb_index_constant {
    const char *name;
    bool has_default; /* wavelengths and PAR have none: the user must give them */
    double value;
    const char *doc;
};

/* What a name of a band in the catalogue stands for. */
struct pb_index_band {
    const char *name, *meaning;
    int shortest_nm, longest_nm;
    const char *sentinel2, *landsat8, *planetscope; /* their bands; "" = none */
};

size_t pb_index_band_count(void);
const struct pb_index_band *pb_index_band_at(size_t i); /* by wavelength */

size_t pb_index_count(void);
const struct pb_index *pb_index_at(size_t i);
const struct pb_index *pb_index_find(const char *name); /* exact name; NULL = none */
/* Nearest name for a typo, or NULL. */
const char *pb_index_nearest(const char *name);
size_t pb_index_constant_count(void);
const struct pb_index_constant *pb_index_constant_at(size_t i);
const struct pb_index_constant *pb_index_constant_find(const char *name);

/* Whether the bands (names) and constants given (names; those with a default need not be) suffice;
 * if not, the missing names are written into `missing`, space separated. Kernel terms kXY need
 * bands X and Y (L: the constant L). */
bool pb_index_can(const struct pb_index *index, const char *const *bands, size_t n_bands,
                  const char *const *constants, size_t n_constants, char *missing,
                  size_t missing_bytes);

/* Walks a row's `bands`: the next name of *list, which moves on; false at the end. */
bool pb_index_next_name(const char **list, const char **out_name, size_t *out_length);
/* Where the second name of a kernel term begins: 2 for kNR, which is k(N, R), and for kNL, whose L
 * is the constant; 3 for kN2R. 0 = no kernel term. */
size_t pb_index_kernel_split(const char *term, size_t length);
#endif
