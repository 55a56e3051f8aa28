/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Statistics of every band, computed while tiles arrive by reductions that give the same bits
 * whatever the order and size of tiles (kernels/reduce).
 *
 * Each worker reads a tile twice, first for moments and range, then (in cache) for the
 * histogram, into its own memory, and merges under the band's lock: one lock per tile and band,
 * nothing else is shared. Percentiles use a separate count of values (numbers/value_tally.h). */
#include "config/base/json_writer.h"
#include "kernels/reduce/histogram.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/value_table.h"
#include "pipeline/device/engine_limits.h"
#include "pipeline/cog/cog_writer.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/numbers/value_tally.h"
#include "pipeline/product/product.h"
#include "pipeline/product/product_text.h"
#include "pipeline/product/statistics/statistics.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_DEFAULT = 256 };
enum { TEXT_BYTES = 32 }; /* bytes of a count in the JSON, with the growth of the buffer */

struct band {
    pthread_mutex_t lock; /* protects everything below */
    struct pb_moments moments;
    struct pb_histogram histogram;
};

struct worker {
    uint64_t parts;            /* count of parts received from a device, also of values */
    struct pb_moments moments; /* moments of one tile */
    struct pb_histogram_part part;
};

struct statistics {
    const struct pb_product_env *env;
    const struct pb_product_config *config;
    uint32_t n_bands, n_locks;
    uint32_t plane[PB_BANDS_MAX];
    struct band *bands;
    struct worker *workers;
    struct pb_value_tally *tally; /* NULL = no percentiles are configured */
    struct pb_band_statistics *result;
};

static const struct pb_items *percentiles_of(const struct pb_product_config *config)
{
    return &((const struct pb_statistics_config *)config)->percentiles;
}

static uint32_t buckets_of(const struct pb_product_config *config)
{
    int32_t buckets = ((const struct pb_statistics_config *)config)->buckets;
    return buckets > 0 ? (uint32_t)buckets : BUCKETS_DEFAULT;
}

static uint64_t statistics_bytes(const struct pb_product_env *env,
                                 const struct pb_product_config *config)
{
    uint64_t n = pb_product_band_count(env, config);
    uint64_t tally =
        percentiles_of(config)->n > 0 ? pb_value_tally_bytes((uint32_t)n, env->workers) : 0;
    return sizeof(struct statistics) + tally +
           n * (sizeof(struct band) + sizeof(struct pb_band_statistics) +
                buckets_of(config) * (sizeof(uint64_t) + TEXT_BYTES)) +
           env->workers * sizeof(struct worker);
}

static void statistics_destroy(void *product)
{
    struct statistics *s = product;
    if (s == NULL)
        return;
    for (uint32_t b = 0; b < s->n_locks; b++)
        pthread_mutex_destroy(&s->bands[b].lock);
    for (uint32_t b = 0; s->result != NULL && b < s->n_bands; b++)
        free(s->result[b].bucket);
    free(s->result);
    pb_value_tally_destroy(s->tally);
    free(s->workers);
    free(s->bands);
    free(s);
}

static int allocate(struct statistics *s)
{
    s->bands = calloc(s->n_bands, sizeof *s->bands);
    s->workers = calloc(s->env->workers, sizeof *s->workers);
    s->result = calloc(s->n_bands, sizeof *s->result);
    if (s->bands == NULL || s->workers == NULL || s->result == NULL)
        return -1;
    for (uint32_t b = 0; b < s->n_bands; b++) {
        s->result[b].bucket = calloc(buckets_of(s->config), sizeof *s->result[b].bucket);
        if (s->result[b].bucket == NULL || pthread_mutex_init(&s->bands[b].lock, NULL) != 0)
            return -1;
        pb_moments_begin(&s->bands[b].moments);
        s->n_locks++;
    }
    if (percentiles_of(s->config)->n > 0)
        s->tally = pb_value_tally_create(s->n_bands, s->env->workers);
    return percentiles_of(s->config)->n > 0 && s->tally == NULL ? -1 : 0;
}

static int statistics_create(const struct pb_product_env *env,
                             const struct pb_product_config *config, struct pb_err *err,
                             void **out_product)
{
    struct statistics *s = calloc(1, sizeof *s);
    if (s == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the statistics");
    s->env = env;
    s->config = config;
    int n = pb_product_bands(env, config, s->plane, err);
    if (n < 0) {
        free(s);
        return n;
    }
    s->n_bands = (uint32_t)n;
    if (allocate(s) != 0) {
        statistics_destroy(s);
        return pb_fail(err, PB_E_MEMORY, "no memory for the statistics of %d bands", n);
    }
    *out_product = s;
    return 0;
}

/* Merges the results for a band of a tile. */
static void merge(struct band *band, struct worker *worker)
{
    pthread_mutex_lock(&band->lock);
    pb_moments_merge(&band->moments, &worker->moments);
    pb_histogram_merge(&band->histogram, &worker->part);
    pthread_mutex_unlock(&band->lock);
}

static int statistics_tile(void *product, const struct pb_tile *tile,
                           const struct pb_tile_planes *pixels, uint32_t worker_index,
                           struct pb_err *err)
{
    struct statistics *s = product;
    struct worker *worker = &s->workers[worker_index];
    (void)err;
    assert(worker_index < s->env->workers);
    assert(tile->core.x % PB_MOMENTS_RUN == 0);
    const size_t n = (size_t)tile->core.w * (size_t)tile->core.h;
    for (uint32_t b = 0; b < s->n_bands && pixels->plane_px > 0; b++) {
        const float *plane = pixels->data + s->plane[b] * pixels->plane_px;
        pb_moments_begin(&worker->moments);
        pb_moments_add(&worker->moments, plane, tile->core.w, tile->core.h);
        if (worker->moments.valid == 0)
            continue;
        pb_histogram_part_begin(&worker->part, worker->moments.min, worker->moments.max);
        pb_histogram_part_add(&worker->part, plane, n);
        merge(&s->bands[b], worker);
        if (s->tally != NULL)
            pb_value_tally_add(s->tally, worker_index, b, plane, n);
    }
    return 0;
}

static const char *statistics_on_device(const struct pb_product_env *env,
                                        const struct pb_product_config *config,
                                        struct pb_device_blocks *out)
{
    uint32_t plane[PB_BANDS_MAX];
    int n = pb_product_bands(env, config, plane, NULL);
    if (n < 1)
        return pb_limit_reason(PB_LIMIT_PRODUCTS_UNKNOWN);
    pb_device_parts_of((uint32_t)n, plane,
                       percentiles_of(config)->n > 0 ? PB_VALUE_TALLY_VALUES : 0, out);
    return NULL;
}

/* Merges a part of what a device has counted for a band. */
static int take_values(struct statistics *s, const struct pb_cog_block *block, struct pb_err *err)
{
    if (s->tally == NULL || block->col >= pb_value_table_parts(PB_VALUE_TALLY_VALUES) ||
        !pb_value_tally_take(s->tally, block->level, block->data))
        return pb_fail(err, PB_E_SYSTEM, "the values of a band are malformed");
    return 0;
}

/* Merges a device's results for a band of a tile; the device may belong to another process. */
static int statistics_block(void *product, const struct pb_cog_block *block, uint32_t worker_index,
                            struct pb_err *err)
{
    struct statistics *s = product;
    struct worker *worker = &s->workers[worker_index];
    struct pb_statistics_part part;
    assert(worker_index < s->env->workers);
    const bool is_sound = block->level < s->n_bands && !block->raw && !block->mask;
    worker->parts++;
    if (is_sound && block->bytes == sizeof(struct pb_value_part))
        return take_values(s, block, err);
    if (!is_sound || block->bytes != sizeof part)
        return pb_fail(err, PB_E_SYSTEM, "the statistics of a tile are malformed");
    memcpy(&part, block->data, sizeof part);
    if (pb_statistics_take(&part, &worker->moments, &worker->part))
        merge(&s->bands[block->level], worker);
    return 0;
}

/* The ends are known without counts. */
static void conclude_percentiles(const struct statistics *s, uint32_t b)
{
    const struct pb_items *wanted = percentiles_of(s->config);
    struct pb_band_statistics *out = &s->result[b];
    for (size_t i = 0; i < wanted->n; i++) {
        struct pb_band_percentile *one = &out->percentile[out->n_percentiles++];
        one->p = wanted->items[i].num;
        one->value = pb_value_tally_percentile(s->tally, b, one->p, &one->error);
        if (out->valid > 0 && (one->p <= 0 || one->p >= 100)) {
            one->value = one->p <= 0 ? out->minimum : out->maximum;
            one->error = 0;
        }
    }
}

static void conclude(const struct statistics *s, uint32_t b)
{
    const struct band *band = &s->bands[b];
    struct pb_band_statistics *out = &s->result[b];
    (void)snprintf(out->name, sizeof out->name, "%s", s->env->band_names[s->plane[b]]);
    out->count = (uint64_t)s->env->geometry.w * (uint64_t)s->env->geometry.h;
    out->valid = band->moments.valid;
    out->minimum = out->maximum = out->mean = out->stddev = NAN;
    out->histogram_min = out->histogram_max = NAN;
    if (out->valid > 0) {
        pb_moments_result(&band->moments, &out->mean, &out->stddev);
        out->minimum = band->moments.min;
        out->maximum = band->moments.max;
    }
    conclude_percentiles(s, b);
    if (out->valid == 0)
        return;
    out->n_buckets = pb_histogram_fold(&band->histogram, buckets_of(s->config), out->bucket,
                                       &out->histogram_min, &out->histogram_max);
}

/* NaN is written as null. */
static void write_percentiles(struct pb_json *json, const struct pb_band_statistics *band)
{
    if (band->n_percentiles == 0)
        return;
    pb_json_array(json, "percentiles");
    for (uint32_t i = 0; i < band->n_percentiles; i++) {
        pb_json_object(json, NULL);
        pb_json_number(json, "percentile", band->percentile[i].p);
        pb_json_number(json, "value", band->percentile[i].value);
        pb_json_number(json, "error", band->percentile[i].error);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static void write_band(struct pb_json *json, const struct pb_band_statistics *band)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "name", band->name);
    pb_json_int(json, "count", (int64_t)band->count);
    pb_json_int(json, "valid", (int64_t)band->valid);
    pb_json_number(json, "valid_percent", 100.0 * (double)band->valid / (double)band->count);
    pb_json_float(json, "minimum", (float)band->minimum);
    pb_json_float(json, "maximum", (float)band->maximum);
    pb_json_number(json, "mean", band->mean);
    pb_json_number(json, "stddev", band->stddev);
    write_percentiles(json, band);
    if (band->n_buckets == 0) {
        pb_json_null(json, "histogram");
    } else {
        pb_json_object(json, "histogram");
        pb_json_int(json, "count", band->n_buckets);
        pb_json_number(json, "min", band->histogram_min);
        pb_json_number(json, "max", band->histogram_max);
        pb_json_array(json, "buckets");
        for (uint32_t i = 0; i < band->n_buckets; i++)
            pb_json_int(json, NULL, (int64_t)band->bucket[i]);
        pb_json_end(json);
        pb_json_end(json);
    }
    pb_json_end(json);
}

static int write_json(const struct statistics *s, struct pb_json *json, struct pb_err *err,
                      struct pb_product_result *out)
{
    const char *slash = strrchr(s->env->input, '/');
    pb_json_object(json, NULL);
    pb_json_string(json, "scene", pb_product_base(s->env));
    pb_json_string(json, "input", slash ? slash + 1 : s->env->input);
    pb_json_array(json, "bands");
    for (uint32_t b = 0; b < s->n_bands; b++)
        write_band(json, &s->result[b]);
    pb_json_end(json);
    pb_json_end(json);
    return pb_product_text(s->env, json, err, out);
}

/* A device delivers one part for each band of each tile, and all values of each band if they are
 * counted, or nothing at all. */
static bool is_complete(const struct statistics *s)
{
    const uint64_t values = s->tally != NULL ? pb_value_table_parts(PB_VALUE_TALLY_VALUES) : 0;
    uint64_t parts = 0;
    for (uint32_t i = 0; i < s->env->workers; i++)
        parts += s->workers[i].parts;
    return parts == 0 || parts == s->n_bands * (pb_grid_count(s->env->grid) + values);
}

static int statistics_finish(void *product, const struct pb_product_result *earlier,
                             size_t n_earlier, struct pb_err *err,
                             struct pb_product_result *out_result)
{
    struct statistics *s = product;
    (void)earlier;
    (void)n_earlier;
    if (!is_complete(s))
        return pb_fail(err, PB_E_SYSTEM,
                       "the statistics of some tiles did not arrive from the GPU");
    if (s->tally != NULL)
        pb_value_tally_end(s->tally);
    for (uint32_t b = 0; b < s->n_bands; b++)
        conclude(s, b);
    struct pb_product_result result = {
        .kind = &pb_kind_statistics,
        .name = s->config->name,
        .media_type = "application/json",
        .config = s->config,
        .statistics = s->result,
        .n_statistics = s->n_bands,
    };
    pb_product_file(s->env, s->config, result.file, sizeof result.file);
    struct pb_json *json = pb_json_create(true);
    int rc = write_json(s, json, err, &result);
    pb_json_destroy(json);
    if (rc == 0)
        *out_result = result;
    return rc;
}

/* Bytes of the histogram's classes and the percentiles, a line each. */
static uint64_t statistics_item_bytes(const struct pb_product_env *env,
                                      const struct pb_product_config *config)
{
    enum { LINE_BYTES = 48 };
    return env->n_bands * (buckets_of(config) + percentiles_of(config)->n) * LINE_BYTES;
}

const struct pb_product_type pb_product_statistics = {
    .kind = &pb_kind_statistics,
    .suffix = ".statistics.json",
    .asset = "statistics",
    .title = "Statistics of every band",
    .role = "metadata",
    .item_bytes = statistics_item_bytes,
    .bytes = statistics_bytes,
    .create = statistics_create,
    .tile = statistics_tile,
    .on_device = statistics_on_device,
    .block = statistics_block,
    .finish = statistics_finish,
    .destroy = statistics_destroy,
};
