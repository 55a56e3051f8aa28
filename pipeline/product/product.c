/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Functions for all kinds of products. */
#include "pipeline/product/product.h"
#include "config/pipeline_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void pb_product_place(struct pb_product_env *env, const struct pb_geometry *grid)
{
    env->geometry = grid != NULL ? *grid
                                 : (struct pb_geometry){env->info->width, env->info->height,
                                                        pb_map_identity(), 0};
    if (env->place_info == NULL)
        env->place_info = env->info;
    if (env->place_info->has_transform)
        pb_map_transform(&env->geometry.map, env->place_info->transform, env->transform);
}

static int expand_name(const struct pb_product_env *env, const struct pb_product_config *config,
                       struct pb_err *err, char out[256])
{
    bool named = config->name != NULL && config->name[0] != '\0';
    struct pb_output_facts facts = env->facts;
    if (env->tile != NULL)
        facts.tile = env->tile->id;
    facts.scene =
        pb_output_name_has_tile(env->pipeline->output.name) ? env->scene : pb_product_base(env);
    facts.pipeline = env->pipeline->name;
    facts.product = named ? config->name : config->kind->section.name;
    return pb_output_name_expand(env->pipeline->output.name, &facts, err, out);
}

int pb_product_names_check(const struct pb_product_env *env, struct pb_err *err)
{
    char name[256];
    int rc = 0;
    for (size_t i = 0; env->pipeline->output.name && i < env->pipeline->n_products && rc == 0; i++)
        rc = expand_name(env, env->pipeline->products[i], err, name);
    return rc;
}

void pb_product_file(const struct pb_product_env *env, const struct pb_product_config *config,
                     char *out, size_t bytes)
{
    bool named = config->name != NULL && config->name[0] != '\0';
    const struct pb_product_type *type = pb_product_type(config->kind);
    const char *suffix = type->suffix_of != NULL ? type->suffix_of(config) : type->suffix;
    const char *form = env->pipeline ? env->pipeline->output.name : NULL;
    char name[256];
    struct pb_err err;
    if (form == NULL || expand_name(env, config, &err, name) != 0) {
        (void)snprintf(out, bytes, "%s%s%s%s", pb_product_base(env), named ? "." : "",
                       named ? config->name : "", suffix);
        return;
    }
    bool shortens = !named && strstr(form, "{product}") != NULL; /* {product} names the kind */
    (void)snprintf(out, bytes, "%s%s", name, shortens ? strrchr(suffix, '.') : suffix);
}

void pb_product_datetime(const struct pb_product_env *env, char out[PB_PRODUCT_DATETIME_BYTES])
{
    const struct pb_pipeline_config *pipeline = env->pipeline;
    const time_t time = (time_t)env->facts.time_s;
    struct tm tm;
    out[0] = '\0';
    for (size_t i = 0; i < pipeline->n_products && out[0] == '\0'; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        if (type != NULL && type->time != NULL && !type->time(env, pipeline->products[i], out))
            out[0] = '\0';
    }
    if (out[0] == '\0' && env->facts.has_time && gmtime_r(&time, &tm) != NULL)
        (void)strftime(out, PB_PRODUCT_DATETIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Writes "NDVI, EVI, ..." up to the size of out. */
static void list_bands(const struct pb_product_env *env, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < env->n_bands && at < bytes; i++) {
        int n = snprintf(out + at, bytes - at, "%s%s", i > 0 ? ", " : "", env->band_names[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

bool pb_product_by_device(const struct pb_product_env *env, const struct pb_product_config *config)
{
    for (size_t i = 0; env->by_device != 0 && i < env->pipeline->n_products && i < 64; i++)
        if (env->pipeline->products[i] == config)
            return (env->by_device >> i & 1) != 0;
    return false;
}

size_t pb_product_band_count(const struct pb_product_env *env,
                             const struct pb_product_config *config)
{
    if (config->n_bands > 0)
        return config->n_bands + config->n_more;
    return env->n_default > 0 ? env->n_default : env->n_bands;
}

int pb_product_bands(const struct pb_product_env *env, const struct pb_product_config *config,
                     uint32_t *out, struct pb_err *err)
{
    size_t n = pb_product_band_count(env, config);
    if (n > PB_BANDS_MAX)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "%s: %zu bands; a product holds at most %d",
                       config->kind->section.name, n, PB_BANDS_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t plane = 0;
        if (config->n_bands == 0) {
            out[i] = (uint32_t)i;
            continue;
        }
        const char *name = config->planes != NULL ? config->planes[i] : config->bands[i];
        while (plane < env->n_bands && strcmp(env->band_names[plane], name) != 0)
            plane++;
        if (plane == env->n_bands) {
            char known[300];
            list_bands(env, known, sizeof known);
            return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                           "%s: there is no band '%s'; the steps make: %s",
                           config->kind->section.name, config->bands[i], known);
        }
        out[i] = (uint32_t)plane;
    }
    return (int)n;
}

const char *pb_product_band_name(const struct pb_product_env *env,
                                 const struct pb_product_config *config, size_t i)
{
    return config->n_bands > 0 ? config->bands[i] : env->band_names[i];
}

void *pb_product_prepared(const struct pb_product_env *env, const struct pb_product_config *config,
                          size_t *out_number)
{
    size_t i = 0;
    while (i < env->pipeline->n_products && env->pipeline->products[i] != config)
        i++;
    *out_number = i;
    return env->prepared != NULL && i < env->pipeline->n_products ? env->prepared[i] : NULL;
}

int pb_products_prepare(const struct pb_product_env *env, void **prepared, struct pb_err *err)
{
    struct pb_product_env own = *env;
    int rc = 0;
    own.prepared = prepared;
    for (size_t i = 0; i < env->pipeline->n_products && rc == 0; i++) {
        const struct pb_product_config *config = env->pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(config->kind);
        rc = type->prepare != NULL ? type->prepare(&own, config, err, &prepared[i]) : 0;
    }
    return rc;
}

void pb_products_discard(const struct pb_pipeline_config *pipeline, void **prepared)
{
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        if (type->discard != NULL)
            type->discard(prepared[i]);
        prepared[i] = NULL;
    }
}

int pb_products_ready(const struct pb_product_env *env, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < env->pipeline->n_products && rc == 0; i++) {
        const struct pb_product_config *config = env->pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(config->kind);
        rc = type->ready != NULL ? type->ready(env, config, err) : 0;
    }
    return rc;
}

enum pb_checksum pb_products_checksum(const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        if (type->checksum != NULL)
            return type->checksum(pipeline->products[i], pipeline);
    }
    return pipeline->output.checksum;
}

const char *pb_products_collection(const struct pb_pipeline_config *pipeline)
{
    const char *collection = NULL;
    for (size_t i = 0; i < pipeline->n_products && collection == NULL; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        collection = type->collection != NULL ? type->collection(pipeline->products[i]) : NULL;
    }
    return collection;
}

const char *pb_products_series(const struct pb_pipeline_config *pipeline, const char *kind,
                               const char *name)
{
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *config = pipeline->products[i];
        const char *own = config->name != NULL ? config->name : "";
        if (config->kind->series != NULL && strcmp(config->kind->section.name, kind) == 0 &&
            strcmp(own, name != NULL ? name : "") == 0)
            return config->kind->series(config);
    }
    return NULL;
}

bool pb_products_share(const struct pb_pipeline_config *pipeline)
{
    bool shares = pb_products_collection(pipeline) != NULL;
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *config = pipeline->products[i];
        shares = shares || (config->kind->series != NULL && config->kind->series(config) != NULL);
    }
    return shares;
}
