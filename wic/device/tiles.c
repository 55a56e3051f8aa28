/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "wic/device/tiles.h"

#define BOUND (1 << 15)

static const struct wic_tile_axis same = {0, 1, 1, 1};
static const struct wic_tile_axis all = {0, 0, WIC_TILES_ALL, 1};
static const struct wic_tile_axis around = {-1, 1, 3, 1};

struct wic_tile_policy wic_policy_tile(void)
{
    return (struct wic_tile_policy){same, same};
}

struct wic_tile_policy wic_policy_row(void)
{
    return (struct wic_tile_policy){same, all};
}

struct wic_tile_policy wic_policy_neighbours(void)
{
    return (struct wic_tile_policy){around, around};
}

struct wic_tile_policy wic_policy_strided(uint32_t stride, uint32_t count)
{
    return (struct wic_tile_policy){same, {0, 1, count, stride}};
}

static bool is_axis(const struct wic_tile_axis *axis)
{
    return axis->first >= -BOUND && axis->first <= BOUND && axis->step <= BOUND &&
           axis->stride > 0 && axis->stride <= BOUND && axis->count > 0 &&
           (axis->count <= BOUND || axis->count == WIC_TILES_ALL);
}

bool wic_policy_is_valid(const struct wic_tile_policy *policy)
{
    return is_axis(&policy->row) && is_axis(&policy->col);
}

const char *wic_order_name(enum wic_tile_order order)
{
    static const char *const names[WIC_ORDERS] = {"rows", "columns", "snake", "bands"};
    return (unsigned)order < WIC_ORDERS ? names[order] : "unknown";
}

struct unlock {
    const struct wic_tile_stages *stages;
    uint32_t *consumers; /* in the order in which they become ready */
    uint32_t n;
};

/* Appends the consumers of a counter. */
static void add_group(struct unlock *list, uint32_t row, uint32_t col)
{
    const struct wic_tile_stages *s = list->stages;
    const bool rows = s->policy.row.step == 0, cols = s->policy.col.step == 0;
    for (uint32_t r = rows ? 0 : row; r < (rows ? s->consumers.rows : row + 1); r++) {
        for (uint32_t c = cols ? 0 : col; c < (cols ? s->consumers.cols : col + 1); c++) {
            list->consumers[list->n++] = r * s->consumers.cols + c;
        }
    }
}

/* Sets the counters to what their consumers need; consumers without a need are ready. */
static void begin(struct unlock *list, uint32_t *counters)
{
    const struct wic_tile_stages *s = list->stages;
    const uint32_t rows = wic_tile_groups(&s->policy.row, s->consumers.rows);
    const uint32_t cols = wic_tile_groups(&s->policy.col, s->consumers.cols);
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            const struct wic_tile consumer = {r, c};
            counters[r * cols + c] = wic_tile_needed(&s->policy, s->producers, consumer);
            if (counters[r * cols + c] == 0) {
                add_group(list, r, c);
            }
        }
    }
}

static void arrive(struct unlock *list, uint32_t *counters, struct wic_tile producer)
{
    const struct wic_tile_stages *s = list->stages;
    const struct wic_tile_axis *row = &s->policy.row, *col = &s->policy.col;
    const struct wic_tile_grid p = s->producers, c = s->consumers;
    const uint32_t cols = wic_tile_groups(col, c.cols);
    for (uint32_t i = 0; i < wic_tile_users(row, p.rows); i++) {
        uint32_t at_row, at_col;
        if (!wic_tile_user(row, producer.row, i, p.rows, c.rows, &at_row)) {
            continue;
        }
        for (uint32_t k = 0; k < wic_tile_users(col, p.cols); k++) {
            if (wic_tile_user(col, producer.col, k, p.cols, c.cols, &at_col) &&
                --counters[at_row * cols + at_col] == 0) {
                add_group(list, at_row, at_col);
            }
        }
    }
}

uint32_t wic_tiles_unlock(const struct wic_tile_stages *stages, uint32_t *counters,
                          uint32_t *out_consumers, uint32_t *out_ready)
{
    struct unlock list = {stages, out_consumers, 0};
    const uint32_t n = stages->producers.rows * stages->producers.cols;
    begin(&list, counters);
    out_ready[0] = list.n;
    for (uint32_t i = 0; i < n; i++) {
        arrive(&list, counters, wic_tile_at(stages->order, stages->producers, i));
        out_ready[i + 1] = list.n;
    }
    return list.n;
}
