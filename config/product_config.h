/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_CONFIG_H
#define PB_PRODUCT_CONFIG_H
/* Kinds of product, and what all products have. Products are owned by struct pb_config. Read-only;
 * any thread. */
#include "kernels/key.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_product_kind;
struct pb_pipeline_config;

/* What all kinds have; the struct of each kind begins with one. */
struct pb_product_config {
    const struct pb_product_kind *kind;
    char *name;   /* distinguishes several of a kind: <scene>.<name>.tif; NULL = <scene>.tif */
    char **bands; /* empty: every band a step made, or every input band when there are no steps */
    size_t n_bands;
    size_t n_more; /* bands behind those, and planes, that it needs and other keys name */
    char **planes; /* what the chain calls these bands when a step of the product's own makes them
                      (pb_product_stretch); NULL = as bands does */
    int line, col;
};

struct pb_product_check;

/* A kind of product as the configuration sees it. Static, read-only. */
struct pb_product_kind {
    struct pb_section section; /* its name and keys */
    size_t bytes;              /* of its struct */
    bool
        describes_others; /* describes the other products: made last, one in a pipeline, no bands */
    bool is_optional;     /* the default file has it as comments: it needs what not every pipeline
                             has */
    /* Checks of keys against each other, after reading (config/product_check.h). May set values
     * that follow from others. NULL = none. */
    void (*check)(struct pb_product_config *product, const struct pb_product_check *check);
    /* The vector file that it reads, or NULL. NULL = none does. */
    const char *(*vector)(const struct pb_product_config *product);
    /* The file in the directory of products that its rows go into (publish/series.h), or NULL, of
     * which a configuration names each once. NULL = there is none. */
    const char *(*series)(const struct pb_product_config *product);
    /* The band whose values are to be classes, and the key that names it; NULL = there is none. */
    const char *(*classes)(const struct pb_product_config *product, const char **out_key);
    /* A band whose values the product takes for classes; NULL = none. NULL = it never does. */
    const char *(*class_band)(const struct pb_product_config *product);
    /* Why no scene of that pipeline can have the product, in words; static. NULL = one can, and a
     * kind without the function always can. */
    const char *(*never)(const struct pb_product_config *product,
                         const struct pb_pipeline_config *pipeline);
};

/* The kinds that there are, in the order in which the default file shows them. config/ has none
 * itself: the caller of a load passes them. Must outlive every configuration made with it. */
struct pb_product_kinds {
    const struct pb_product_kind *const *kinds;
    size_t n;
    bool (*is_crs)(const char *text); /* whether it is a coordinate system; NULL: nobody knows */
};
#endif
