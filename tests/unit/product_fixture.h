/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_PRODUCT_FIXTURE_H
#define PB_TEST_PRODUCT_FIXTURE_H
/* Feeds an image in memory to one product, cut into tiles of a given side, in a given (random)
 * order, by several threads, and reads back the file it wrote. */
#include "pipeline/product/product.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t fixture_state = 88172645463325252u;
static inline uint64_t rnd(void)
{
    fixture_state ^= fixture_state << 13;
    fixture_state ^= fixture_state >> 7;
    fixture_state ^= fixture_state << 17;
    return fixture_state;
}
static inline float uniform(void)
{
    return (float)(rnd() >> 40) * 0x1p-24F;
}

struct image {
    int32_t w, h;
    size_t n_bands;
    const char *names[8];
    float *data; /* band after band */
};

static inline struct image image_create(int32_t w, int32_t h, size_t n_bands)
{
    static const char *const names[8] = {"B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8"};
    struct image image = {.w = w, .h = h, .n_bands = n_bands};
    memcpy(image.names, names, sizeof names);
    image.data = calloc((size_t)w * (size_t)h * n_bands, sizeof(float));
    ck_assert_ptr_nonnull(image.data);
    return image;
}

static inline float *image_at(const struct image *image, size_t band, int32_t x, int32_t y)
{
    return image->data + (band * (size_t)image->h + (size_t)y) * (size_t)image->w + (size_t)x;
}

/* How the image reaches the product. */
struct feed {
    int32_t side;
    uint32_t threads;
    bool shuffle;
};

struct outcome {
    struct pb_product_result result; /* pointers in it are gone with the product: see statistics */
    char path[400];
    char *bytes; /* content of the file */
    size_t n;
    struct pb_band_statistics statistics[8];
    uint64_t planned;
};

struct feed_job {
    const struct image *image;
    const struct pb_grid *grid;
    const struct pb_product_type *type;
    void *product;
    const uint32_t *order;
    uint32_t n_tiles;
    atomic_uint next, worker;
    atomic_int rc;
};

static inline void *feed_thread(void *user)
{
    struct feed_job *job = user;
    struct pb_err err = {0};
    uint32_t worker = atomic_fetch_add(&job->worker, 1);
    size_t side = (size_t)job->grid->side_px;
    float *buffer = malloc(side * side * job->image->n_bands * sizeof(float));
    for (uint32_t i; (i = atomic_fetch_add(&job->next, 1)) < job->n_tiles;) {
        const struct pb_tile_planes pixels = {buffer, side * side, NULL};
        struct pb_tile tile = {.number = job->order[i]};
        tile.core = pb_grid_core(job->grid, tile.number);
        for (size_t b = 0; b < job->image->n_bands; b++)
            for (int32_t y = 0; y < tile.core.h; y++)
                memcpy(buffer + b * pixels.plane_px + (size_t)y * (size_t)tile.core.w,
                       image_at(job->image, b, tile.core.x, tile.core.y + y),
                       (size_t)tile.core.w * sizeof(float));
        if (job->type->tile(job->product, &tile, &pixels, worker, &err) != 0)
            atomic_store(&job->rc, -1);
    }
    free(buffer);
    return NULL;
}

static inline char *file_read(const char *path, size_t *out_n)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no file %s", path);
    struct stat st;
    ck_assert_int_eq(fstat(fileno(file), &st), 0);
    char *bytes = calloc(1, (size_t)st.st_size + 1);
    ck_assert_uint_eq(fread(bytes, 1, (size_t)st.st_size, file), (size_t)st.st_size);
    fclose(file);
    *out_n = (size_t)st.st_size;
    return bytes;
}

static char fixture_directory[] = "/tmp/pb_product_XXXXXX";
static inline const char *scratch(void)
{
    static bool made;
    if (!made && mkdtemp(fixture_directory) == NULL)
        abort();
    made = true;
    return fixture_directory;
}

static const char *feed_directory; /* NULL = scratch() */

/* info may be NULL. Returns finish's or create's return code. */
static inline int feed_product(const struct image *image, const struct pb_product_type *type,
                               const struct pb_product_config *config, const struct feed *feed,
                               const struct pb_raster_info *info, struct pb_err *err,
                               struct outcome *out)
{
    struct pb_grid grid;
    ck_assert_int_eq(pb_grid_init(&grid, image->w, image->h, feed->side), 0);
    struct pb_raster_info plain = {
        .width = image->w, .height = image->h, .n_bands = (int32_t)image->n_bands};
    uint32_t n = pb_grid_count(&grid);
    struct pb_band_tags tags[8];
    const struct pb_band_tags *of[8];
    for (int i = 0; i < 8; i++) {
        const struct pb_raster_info *from = info ? info : &plain;
        const struct pb_raster_band *band = &from->band[i];
        tags[i] = (struct pb_band_tags){.scale = band->scale,
                                        .offset = band->offset,
                                        .unit = band->unit,
                                        .color = band->color,
                                        .colours = i == 0 ? from->palette : NULL,
                                        .n_colours = i == 0 ? from->n_palette : 0};
        of[i] = &tags[i];
    }
    struct pb_product_env env = {
        .tags = of,
        .info = info ? info : &plain,
        .grid = &grid,
        .order = PB_ORDER_ROWS,
        .tiles_in_flight = n,
        .workers = feed->threads,
        .scene = "scene",
        .input = "/in/scene.tif",
        .directory = feed_directory ? feed_directory : scratch(),
        .scene_bands = (const int32_t[]){1, 2, 3, 4, 5, 6, 7, 8},
        .band_names = image->names,
        .n_bands = image->n_bands,
        .device = "cpu",
    };
    pb_product_place(&env, NULL);
    uint32_t *order = malloc(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; feed->shuffle && i-- > 1;) {
        uint32_t j = (uint32_t)(rnd() % (i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    struct feed_job job = {
        .image = image, .grid = &grid, .type = type, .order = order, .n_tiles = n};
    memset(out, 0, sizeof *out);
    out->planned = type->bytes(&env, config);
    int rc = type->create(&env, config, err, &job.product);
    if (rc != 0) {
        free(order);
        return rc;
    }
    pthread_t thread[16];
    for (uint32_t t = 0; t < feed->threads; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, feed_thread, &job), 0);
    for (uint32_t t = 0; t < feed->threads; t++)
        pthread_join(thread[t], NULL);
    ck_assert_int_eq(atomic_load(&job.rc), 0);
    rc = type->finish(job.product, NULL, 0, err, &out->result);
    if (rc == 0) {
        for (size_t i = 0; i < out->result.n_statistics; i++) {
            out->statistics[i] = out->result.statistics[i];
            size_t bytes = out->statistics[i].n_buckets * sizeof(uint64_t);
            out->statistics[i].bucket = memcpy(malloc(bytes + 1), out->statistics[i].bucket, bytes);
        }
        (void)snprintf(out->path, sizeof out->path, "%s/%s", scratch(), out->result.file);
        out->bytes = file_read(out->path, &out->n);
        ck_assert_uint_eq(out->n, out->result.bytes);
        unlink(out->path);
    }
    type->destroy(job.product);
    free(order);
    return rc;
}

static inline void outcome_free(struct outcome *out)
{
    for (size_t i = 0; i < out->result.n_statistics; i++)
        free(out->statistics[i].bucket);
    free(out->bytes);
}

/* Every way of feeding the image must give the same file; sides are multiples of 64. */
static inline void assert_feed_does_not_matter(const struct image *image,
                                               const struct pb_product_type *type,
                                               const struct pb_product_config *config)
{
    static const struct feed ways[] = {{64, 1, true},  {64, 4, true},  {128, 3, false},
                                       {256, 2, true}, {512, 1, true}, {4096, 1, false},
                                       {64, 2, true}};
    struct feed plain = {64, 1, false};
    struct outcome expected, got;
    struct pb_err err = {0};
    ck_assert_int_eq(feed_product(image, type, config, &plain, NULL, &err, &expected), 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ck_assert_int_eq(feed_product(image, type, config, &ways[i], NULL, &err, &got), 0);
        ck_assert_msg(got.n == expected.n && memcmp(got.bytes, expected.bytes, got.n) == 0,
                      "tiles of %d px on %u threads give other bytes", ways[i].side,
                      ways[i].threads);
        ck_assert_str_eq(got.result.checksum, expected.result.checksum);
        outcome_free(&got);
    }
    outcome_free(&expected);
}
#endif
