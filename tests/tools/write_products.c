/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * write_products CONFIG PIPELINE INPUT DIRECTORY SIDE THREADS SEED
 *
 * Makes the products of a pipeline without steps from a scene, tiles of SIDE pixels visited in a
 * random order (SEED 0: as they are numbered) by THREADS workers: all that products depend on,
 * without the stream in between. Prints one line a product: kind, file, bytes, checksum. */
#include "pipeline/product/product.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    const struct pb_input_config *input;
    struct pb_raster *raster;
    const struct pb_raster_info *info;
    size_t n_bands;
    int32_t number[PB_BANDS_MAX]; /* in the file, 1-based */
    char name[PB_BANDS_MAX][32];
    const char *names[PB_BANDS_MAX];
    float *data; /* band after band, invalid = NaN */
};

struct feed {
    const struct scene *scene;
    const struct pb_product_env *env;
    const struct pb_pipeline_config *pipeline;
    void *product[16];
    uint32_t *order, n_tiles;
    atomic_uint next, worker;
    atomic_int failed;
};

static int die(const struct pb_err *err)
{
    char text[1200];
    pb_err_text(err, text, sizeof text);
    fprintf(stderr, "write_products: %s\n", text);
    return 1;
}

static double sample(const void *data, enum pb_type type, size_t i)
{
    switch (type) {
    case PB_U8:
        return ((const uint8_t *)data)[i];
    case PB_I16:
        return ((const int16_t *)data)[i];
    case PB_U16:
        return ((const uint16_t *)data)[i];
    case PB_I32:
        return ((const int32_t *)data)[i];
    case PB_U32:
        return ((const uint32_t *)data)[i];
    case PB_F32:
        return (double)((const float *)data)[i];
    default:
        return ((const double *)data)[i];
    }
}

static void name_bands(struct scene *s)
{
    s->n_bands = s->input->n_bands ? s->input->n_bands : (size_t)s->info->n_bands;
    for (size_t b = 0; b < s->n_bands; b++) {
        s->number[b] = s->input->n_bands ? s->input->bands[b].index : (int32_t)b + 1;
        if (s->input->n_bands)
            (void)snprintf(s->name[b], sizeof s->name[b], "%s", s->input->bands[b].name);
        else
            (void)snprintf(s->name[b], sizeof s->name[b], "B%zu", b + 1);
        s->names[b] = s->name[b];
    }
}

/* The whole scene as values, band by band. */
static int read_scene(struct scene *s, struct pb_err *err)
{
    static const size_t bytes[PB_TYPE_COUNT] = {1, 2, 2, 4, 4, 4, 8};
    const struct pb_rect all = {0, 0, s->info->width, s->info->height};
    size_t n = (size_t)all.w * (size_t)all.h, row = (size_t)all.w * bytes[s->info->type];
    void *stored = malloc(n * 8);
    uint8_t *mask = s->info->has_mask ? malloc(n) : NULL;
    s->data = malloc(n * s->n_bands * sizeof(float));
    int rc = 0;
    for (size_t b = 0; b < s->n_bands && rc == 0; b++) {
        const struct pb_raster_band *band = &s->info->band[s->number[b] - 1];
        bool has_nodata = s->input->has_nodata || band->has_nodata;
        double nodata = s->input->has_nodata ? s->input->nodata : band->nodata;
        rc = pb_raster_read(
            s->raster, &s->number[b], 1,
            &(struct pb_window){stored, row, row * (size_t)all.h, mask, (size_t)all.w, all}, err);
        for (size_t i = 0; i < n && rc == 0; i++) {
            double dn = sample(stored, s->info->type, i);
            bool invalid = (has_nodata && dn == nodata) || (mask && mask[i] == 0) || !isfinite(dn);
            s->data[b * n + i] =
                invalid ? NAN : (float)dn * (float)s->input->scale + (float)s->input->offset;
        }
    }
    free(stored);
    free(mask);
    return rc;
}

static int feed_tile(struct feed *feed, uint32_t index, float *buffer, size_t plane_px,
                     uint32_t worker, struct pb_err *err)
{
    const struct scene *s = feed->scene;
    size_t n = (size_t)s->info->width * (size_t)s->info->height;
    const struct pb_tile_planes pixels = {buffer, plane_px, NULL};
    const struct pb_tile tile = {.number = index, .core = pb_grid_core(feed->env->grid, index)};
    for (size_t b = 0; b < s->n_bands; b++)
        for (int32_t y = 0; y < tile.core.h; y++)
            memcpy(buffer + b * plane_px + (size_t)y * (size_t)tile.core.w,
                   s->data + b * n + (size_t)(tile.core.y + y) * (size_t)s->info->width +
                       (size_t)tile.core.x,
                   (size_t)tile.core.w * sizeof(float));
    int rc = 0;
    for (size_t p = 0; p < feed->pipeline->n_products && rc == 0; p++) {
        const struct pb_product_type *type = pb_product_type(feed->pipeline->products[p]->kind);
        if (type->tile != NULL)
            rc = type->tile(feed->product[p], &tile, &pixels, worker, err);
    }
    return rc;
}

static void *feed_thread(void *user)
{
    struct feed *feed = user;
    struct pb_err err = {0};
    uint32_t worker = atomic_fetch_add(&feed->worker, 1);
    size_t plane_px = (size_t)feed->env->grid->side_px * (size_t)feed->env->grid->side_px;
    float *buffer = malloc(plane_px * feed->scene->n_bands * sizeof(float));
    for (uint32_t i; (i = atomic_fetch_add(&feed->next, 1)) < feed->n_tiles;)
        if (feed_tile(feed, feed->order[i], buffer, plane_px, worker, &err) != 0) {
            die(&err);
            atomic_store(&feed->failed, 1);
        }
    free(buffer);
    return NULL;
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; seed != 0 && i-- > 1;) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (uint32_t)((seed >> 33) % (i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static int finish_all(struct feed *feed, struct pb_err *err)
{
    struct pb_product_result result[16];
    for (size_t p = 0; p < feed->pipeline->n_products; p++) {
        const struct pb_product_type *type = pb_product_type(feed->pipeline->products[p]->kind);
        int rc = type->finish(feed->product[p], result, p, err, &result[p]);
        if (rc != 0)
            return rc;
        printf("%s\t%s\t%llu\t%s\n", result[p].kind->section.name, result[p].file,
               (unsigned long long)result[p].bytes, result[p].checksum);
    }
    return 0;
}

static int run(struct feed *feed, struct pb_err *err)
{
    pthread_t thread[16];
    uint32_t n = feed->env->workers < 16 ? feed->env->workers : 16;
    int rc = 0;
    for (size_t p = 0; p < feed->pipeline->n_products && rc == 0; p++)
        rc = pb_product_type(feed->pipeline->products[p]->kind)
                 ->create(feed->env, feed->pipeline->products[p], err, &feed->product[p]);
    if (rc == 0) {
        for (uint32_t t = 0; t < n; t++)
            pthread_create(&thread[t], NULL, feed_thread, feed);
        for (uint32_t t = 0; t < n; t++)
            pthread_join(thread[t], NULL);
        rc = atomic_load(&feed->failed) ? -1 : finish_all(feed, err);
    }
    for (size_t p = 0; p < feed->pipeline->n_products; p++)
        pb_product_type(feed->pipeline->products[p]->kind)->destroy(feed->product[p]);
    return rc;
}

int main(int argc, char **argv)
{
    struct pb_err err = {0};
    static struct pb_err_list errors;
    static struct scene scene;
    struct pb_config *config = NULL;
    struct pb_grid grid;
    if (argc != 8)
        return fprintf(stderr, "usage: see the top of write_products.c\n"), 2;
    pb_raster_init();
    if (pb_config_load(argv[1], &pb_products, &errors, &config) != 0)
        return die(&errors.err[0]);
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(config, argv[2]);
    if (pipeline == NULL || pipeline->n_products > 16 || pipeline->n_steps > 0)
        return fprintf(stderr, "no such pipeline, or it has steps\n"), 2;
    scene.input = &pipeline->input;
    if (pb_raster_open(argv[3], &config->limits, &err, &scene.raster) != 0)
        return die(&err);
    scene.info = pb_raster_info(scene.raster);
    name_bands(&scene);
    if (read_scene(&scene, &err) != 0 ||
        pb_grid_init(&grid, scene.info->width, scene.info->height, atoi(argv[5])) != 0)
        return die(&err);
    struct pb_product_env env = {
        .config = config,
        .pipeline = pipeline,
        .raster = scene.raster,
        .info = scene.info,
        .grid = &grid,
        .order = PB_ORDER_ROWS,
        .tiles_in_flight = pb_grid_count(&grid),
        .workers = (uint32_t)atoi(argv[6]),
        .scene = "scene",
        .input = argv[3],
        .directory = argv[4],
        .band_names = scene.names,
        .n_bands = scene.n_bands,
        .device = "cpu",
    };
    pb_product_place(&env, NULL);
    struct feed feed = {
        .scene = &scene, .env = &env, .pipeline = pipeline, .n_tiles = pb_grid_count(&grid)};
    feed.order = malloc(feed.n_tiles * sizeof *feed.order);
    shuffle(feed.order, feed.n_tiles, strtoull(argv[7], NULL, 10));
    void *prepared[16] = {NULL};
    int rc = pb_products_prepare(&env, prepared, &err);
    env.prepared = prepared;
    rc = rc ? rc : run(&feed, &err);
    pb_products_discard(pipeline, prepared);
    free(feed.order);
    free(scene.data);
    pb_raster_close(scene.raster);
    pb_config_destroy(config);
    return rc == 0 ? 0 : die(&err);
}
