/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_TILES_H
#define WIC_TILES_H
/* Tiles of two dependent stages: the producer tiles that a consumer tile needs (a policy), and the
 * order of the tiles of a grid, both as plain data. A policy is the product of two axes, therefore
 * these functions know one axis at a time. Consumers with equal needs share a counter: it is
 * complete after as many arrivals as they need tiles. Pure arithmetic, one text for C11 and CUDA.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WIC_TILES __host__ __device__ __forceinline__
#else
#define WIC_TILES static inline
#endif

#define WIC_TILES_ALL UINT32_MAX

struct wic_tile_grid {
    uint32_t rows, cols; /* up to 2^15 each */
};

struct wic_tile {
    uint32_t row, col;
};

/* The consumer at i needs the producers at first + step * i + stride * k for each k < count, except
 * those outside of the grid. */
struct wic_tile_axis {
    int32_t first;          /* -2^15 .. 2^15 */
    uint32_t step;          /* up to 2^15; 0: all consumers need the same producers */
    uint32_t count, stride; /* count: WIC_TILES_ALL or 1 .. 2^15; stride: 1 .. 2^15 */
};

struct wic_tile_policy {
    struct wic_tile_axis row, col;
};

/* Producers that a consumer needs on one axis: first, first + stride, .. */
struct wic_tile_range {
    uint32_t first, count, stride;
};

/* n: producers on the axis. */
WIC_TILES struct wic_tile_range wic_tile_needs(const struct wic_tile_axis *axis, uint32_t i,
                                               uint32_t n)
{
    const int64_t at = (int64_t)axis->first + (int64_t)axis->step * i, stride = axis->stride;
    const int64_t skip = at < 0 ? (-at + stride - 1) / stride : 0;
    const int64_t fit = at < (int64_t)n ? ((int64_t)n - at + stride - 1) / stride : 0;
    const int64_t end = fit < (int64_t)axis->count ? fit : (int64_t)axis->count;
    struct wic_tile_range range = {0, 0, axis->stride};
    if (end > skip) {
        range.first = (uint32_t)(at + skip * stride);
        range.count = (uint32_t)(end - skip);
    }
    return range;
}

/* Number of counters of an axis with that number of consumers. */
WIC_TILES uint32_t wic_tile_groups(const struct wic_tile_axis *axis, uint32_t consumers)
{
    return axis->step == 0 ? 1 : consumers;
}

/* Values of k for wic_tile_user, on an axis of n producers. */
WIC_TILES uint32_t wic_tile_users(const struct wic_tile_axis *axis, uint32_t n)
{
    const int64_t last = (int64_t)n - 1 - axis->first; /* the largest stride * k */
    const int64_t reach = last < 0 ? 0 : last / axis->stride + 1;
    return axis->step == 0 ? 1 : reach < (int64_t)axis->count ? (uint32_t)reach : axis->count;
}

/* Returns true if the producer at p has a user number k on the axis; *out_group is its counter. A
 * producer has each of its users once for all k < wic_tile_users. */
WIC_TILES bool wic_tile_user(const struct wic_tile_axis *axis, uint32_t p, uint32_t k, uint32_t n,
                             uint32_t m, uint32_t *out_group)
{
    if (axis->step == 0) {
        const struct wic_tile_range range = wic_tile_needs(axis, 0, n);
        *out_group = 0;
        return range.count > 0 && p >= range.first && (p - range.first) % range.stride == 0 &&
               (p - range.first) / range.stride < range.count;
    }
    const int64_t steps = (int64_t)p - axis->first - (int64_t)axis->stride * k;
    if (steps < 0 || steps % axis->step != 0 || steps / axis->step >= (int64_t)m) {
        return false;
    }
    *out_group = (uint32_t)(steps / axis->step);
    return true;
}

/* Tiles that the consumer needs: arrivals that complete its counter. */
WIC_TILES uint32_t wic_tile_needed(const struct wic_tile_policy *policy,
                                   struct wic_tile_grid producers, struct wic_tile consumer)
{
    return wic_tile_needs(&policy->row, consumer.row, producers.rows).count *
           wic_tile_needs(&policy->col, consumer.col, producers.cols).count;
}

WIC_TILES uint32_t wic_tile_counters(const struct wic_tile_policy *policy,
                                     struct wic_tile_grid consumers)
{
    return wic_tile_groups(&policy->row, consumers.rows) *
           wic_tile_groups(&policy->col, consumers.cols);
}

WIC_TILES uint32_t wic_tile_counter(const struct wic_tile_policy *policy,
                                    struct wic_tile_grid consumers, struct wic_tile consumer)
{
    const uint32_t row = policy->row.step == 0 ? 0 : consumer.row;
    const uint32_t col = policy->col.step == 0 ? 0 : consumer.col;
    return row * wic_tile_groups(&policy->col, consumers.cols) + col;
}

/* --- order --- */

enum wic_tile_order {
    WIC_ORDER_ROWS,    /* row by row */
    WIC_ORDER_COLUMNS, /* column by column */
    WIC_ORDER_SNAKE,   /* row by row, every second one backwards */
    WIC_ORDER_BANDS,   /* bands of 8 rows, each column by column */
    WIC_ORDERS
};

#define WIC_ORDER_BAND 8u

/* The tile at place i of the order. */
WIC_TILES struct wic_tile wic_tile_at(enum wic_tile_order order, struct wic_tile_grid grid,
                                      uint32_t i)
{
    struct wic_tile tile = {i / grid.cols, i % grid.cols};
    if (order == WIC_ORDER_COLUMNS) {
        tile.row = i % grid.rows;
        tile.col = i / grid.rows;
    } else if (order == WIC_ORDER_SNAKE && tile.row % 2 == 1) {
        tile.col = grid.cols - 1 - tile.col;
    } else if (order == WIC_ORDER_BANDS) {
        const uint32_t top = i / (WIC_ORDER_BAND * grid.cols) * WIC_ORDER_BAND;
        const uint32_t left = grid.rows - top;
        const uint32_t high = left < WIC_ORDER_BAND ? left : WIC_ORDER_BAND;
        const uint32_t inside = i - top * grid.cols;
        tile.row = top + inside % high;
        tile.col = inside / high;
    }
    return tile;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Policies that papers name. tile: the tile at the same place; row: all of the same row;
 * neighbours: the same place and up to eight around it; strided: col, col + stride, .., count of
 * them, of the same row. */
struct wic_tile_policy wic_policy_tile(void);
struct wic_tile_policy wic_policy_row(void);
struct wic_tile_policy wic_policy_neighbours(void);
struct wic_tile_policy wic_policy_strided(uint32_t stride, uint32_t count);
/* Returns true if all numbers are within their bounds. */
bool wic_policy_is_valid(const struct wic_tile_policy *policy);
const char *wic_order_name(enum wic_tile_order order);

/* Two stages, of which the producers are done in an order. */
struct wic_tile_stages {
    struct wic_tile_grid producers, consumers;
    struct wic_tile_policy policy;
    enum wic_tile_order order;
};

/* Lists the consumers (row * cols + col) in the order in which they become ready;
 * out_ready[i], i = 0 .. producers: how many are ready when the first i producers are done.
 * counters: wic_tile_counters words of memory. Returns the number of consumers. */
uint32_t wic_tiles_unlock(const struct wic_tile_stages *stages, uint32_t *counters,
                          uint32_t *out_consumers, uint32_t *out_ready);

#ifdef __cplusplus
}
#endif
#endif
