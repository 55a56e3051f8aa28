/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A rectangle is made in parts whose zones fit into a thread's memory. */
#include "pipeline/raster/polygon_mask.h"
#include "pipeline/raster/polygon_scan.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PART_W = 1024, PART_H = 64 };

struct pb_polygon_masks {
    struct pb_polygon_scan **scan;
    size_t n;
    size_t bytes;         /* bytes of a thread: zones of a part, then the memory of a scan */
    char *memory;         /* memory of all threads */
    pthread_mutex_t lock; /* protects the two members below */
    pthread_cond_t freed;
    uint32_t *idle; /* indices of the threads' parts of the memory that are not in use */
    uint32_t n_idle;
};

struct pb_polygon_masks *pb_polygon_masks_create(void)
{
    struct pb_polygon_masks *masks = calloc(1, sizeof *masks);
    if (masks == NULL)
        return NULL;
    (void)pthread_mutex_init(&masks->lock, NULL);
    (void)pthread_cond_init(&masks->freed, NULL);
    return masks;
}

void pb_polygon_masks_destroy(struct pb_polygon_masks *masks)
{
    if (masks == NULL)
        return;
    for (size_t i = 0; i < masks->n; i++)
        pb_polygon_scan_destroy(masks->scan[i]);
    (void)pthread_cond_destroy(&masks->freed);
    (void)pthread_mutex_destroy(&masks->lock);
    free(masks->scan);
    free(masks->memory);
    free(masks->idle);
    free(masks);
}

int pb_polygon_masks_add(struct pb_polygon_masks *masks, struct pb_polygon_scan *scan)
{
    struct pb_polygon_scan **more = realloc(masks->scan, (masks->n + 1) * sizeof(void *));
    if (more == NULL)
        return -ENOMEM;
    masks->scan = more;
    masks->scan[masks->n++] = scan;
    return 0;
}

size_t pb_polygon_masks_count(const struct pb_polygon_masks *masks)
{
    return masks->n;
}

size_t pb_polygon_masks_thread_bytes(const struct pb_polygon_masks *masks)
{
    size_t most = 0;
    for (size_t i = 0; i < masks->n; i++) {
        const size_t bytes = pb_polygon_scan_scratch_bytes(masks->scan[i]);
        most = bytes > most ? bytes : most;
    }
    return ((size_t)PART_W * PART_H * sizeof(uint32_t) + most + 63) / 64 * 64;
}

int pb_polygon_masks_ready(struct pb_polygon_masks *masks, uint32_t threads)
{
    assert(threads > 0 && masks->memory == NULL);
    masks->bytes = pb_polygon_masks_thread_bytes(masks);
    masks->memory = malloc(threads * masks->bytes);
    masks->idle = calloc(threads, sizeof *masks->idle);
    if (masks->memory == NULL || masks->idle == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < threads; i++)
        masks->idle[i] = i;
    masks->n_idle = threads;
    return 0;
}

static uint32_t take(struct pb_polygon_masks *masks)
{
    (void)pthread_mutex_lock(&masks->lock);
    while (masks->n_idle == 0) /* a holder computes pixels and waits for no other thread */
        (void)pthread_cond_wait(&masks->freed, &masks->lock);
    const uint32_t own = masks->idle[--masks->n_idle];
    (void)pthread_mutex_unlock(&masks->lock);
    return own;
}

static void give(struct pb_polygon_masks *masks, uint32_t own)
{
    (void)pthread_mutex_lock(&masks->lock);
    masks->idle[masks->n_idle++] = own;
    (void)pthread_cond_signal(&masks->freed);
    (void)pthread_mutex_unlock(&masks->lock);
}

static void fill_part(const struct pb_polygon_scan *scan, const struct pb_rect *part, char *own,
                      unsigned char *out, size_t row_bytes)
{
    uint32_t *const zones = (uint32_t *)(void *)own;
    pb_polygon_scan_zones(scan, part, own + (size_t)PART_W * PART_H * sizeof *zones, zones, PART_W);
    for (int32_t y = 0; y < part->h; y++)
        for (int32_t x = 0; x < part->w; x++)
            out[(size_t)y * row_bytes + (size_t)x] = zones[(size_t)y * PART_W + (size_t)x] != 0;
}

int pb_polygon_masks_fill(const void *planes, int32_t band, const struct pb_rect *rect, void *out,
                          size_t row_bytes, struct pb_err *err)
{
    struct pb_polygon_masks *const masks = (struct pb_polygon_masks *)(uintptr_t)planes;
    const struct pb_polygon_scan *scan = masks->scan[band - 1];
    unsigned char *const bytes = out;
    (void)err;
    if (rect->w < 1 || rect->h < 1 || !pb_polygon_scan_meets(scan, rect)) {
        for (int32_t y = 0; y < rect->h; y++)
            memset(bytes + (size_t)y * row_bytes, 0, (size_t)rect->w);
        return 0;
    }
    const uint32_t own = take(masks);
    for (int32_t y = 0; y < rect->h;) {
        /* Bands of the scan begin at multiples of PART_H. */
        const int32_t left = PART_H - (rect->y + y) % PART_H;
        const int32_t h = rect->h - y < left ? rect->h - y : left;
        for (int32_t x = 0; x < rect->w; x += PART_W) {
            const int32_t w = rect->w - x < PART_W ? rect->w - x : PART_W;
            const struct pb_rect part = {rect->x + x, rect->y + y, w, h};
            fill_part(scan, &part, masks->memory + own * masks->bytes,
                      bytes + (size_t)y * row_bytes + (size_t)x, row_bytes);
        }
        y += h;
    }
    give(masks, own);
    return 0;
}
