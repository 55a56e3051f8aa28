/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The cache of decoded cells under several readers, mostly with a decoder made up here: pixels are
 * a function of their place, decoding can be slow, fail or hang on command. */
#include "pipeline/raster/block_cache.h"

#include "config/limits_config.h"
#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { W = 301, H = 207, BANDS = 3, READERS = 4 };

static const int32_t bands[BANDS] = {4, 1, 2};

static atomic_int decodes, held;           /* held: decoders wait while it is set */
static atomic_int broken_row, broken_rows; /* the first one, and their count */
static atomic_uint nap_us;
static atomic_bool decoded_twice; /* set when two threads decode one cell at a time */
static atomic_int busy[H][W];

static uint16_t value_at(int32_t band, int32_t x, int32_t y)
{
    return (uint16_t)((uint32_t)x * 31u + (uint32_t)y * 1009u + (uint32_t)band * 7919u);
}

static uint8_t mask_at(int32_t x, int32_t y)
{
    return (x * 7 + y * 3) % 11 == 0 ? 0 : 255;
}

static int made_up(struct pb_raster *raster, const int32_t *numbers, size_t n,
                   const struct pb_window *to, struct pb_err *err)
{
    const struct pb_rect *rect = &to->rect;
    ck_assert_ptr_nonnull(raster); /* the reader's own */
    atomic_int *mine = &busy[rect->y][rect->x];
    if (atomic_fetch_add(mine, 1) != 0)
        atomic_store(&decoded_twice, true);
    atomic_fetch_add(&decodes, 1);
    while (atomic_load(&held))
        usleep(100);
    if (atomic_load(&nap_us) > 0)
        usleep(atomic_load(&nap_us));
    for (size_t b = 0; b < n; b++)
        for (int32_t y = 0; y < rect->h; y++) {
            uint16_t *row =
                (uint16_t *)((char *)to->data + b * to->plane_bytes + (size_t)y * to->row_bytes);
            for (int32_t x = 0; x < rect->w; x++)
                row[x] = value_at(numbers[b], rect->x + x, rect->y + y);
        }
    if (to->mask != NULL)
        for (int32_t y = 0; y < rect->h; y++)
            for (int32_t x = 0; x < rect->w; x++)
                to->mask[y * rect->w + x] = mask_at(rect->x + x, rect->y + y);
    atomic_fetch_sub(mine, 1);
    int row = atomic_load(&broken_row);
    if (row + atomic_load(&broken_rows) > rect->y && row < rect->y + rect->h)
        return pb_fail(err, PB_E_INPUT_DAMAGED, "row %d is broken", row);
    return 0;
}

static void setup(void)
{
    atomic_store(&decodes, 0);
    atomic_store(&held, 0);
    atomic_store(&broken_row, -1);
    atomic_store(&broken_rows, 1);
    atomic_store(&nap_us, 0);
    atomic_store(&decoded_twice, false);
    memset((void *)busy, 0, sizeof busy);
}

struct reader {
    struct pb_block_cache *cache;
    struct pb_rect only; /* w > 0: this rect once, else random ones */
    bool mask;
    uint32_t seed;
    int rounds;
    pthread_t thread;
    atomic_int rc;
    atomic_int done;
    uint64_t parked_ns;
    struct pb_err err;
    int wrong;
    uint32_t n_later;           /* the next rectangles that it announces: the rows below its own */
    const struct pb_rect *rest; /* NULL, or what later reads need */
    struct pb_rect own;         /* the rectangle of the last read */
    int pairs;                  /* decodes of two cells */
    atomic_int own_decodes;
    void (*in_decode)(struct reader *me); /* NULL, or called at the start of each of its decodes */
    struct reader *other;                 /* for in_decode */
};

/* The i-th of the rectangles below the one that is read. */
static bool later_of(void *user, uint32_t i, struct pb_rect *out_rect)
{
    const struct reader *me = user;
    *out_rect = me->own;
    out_rect->y += (int32_t)(i + 1) * out_rect->h;
    if (out_rect->y + out_rect->h > H)
        out_rect->w = 0; /* outside: nothing is read */
    return i < me->n_later;
}

static void decode_cells(struct pb_raster *raster, const int32_t *numbers, size_t n_bands,
                         const struct pb_window *to, unsigned n, struct pb_read_result *out_result)
{
    struct reader *me = (struct reader *)raster;
    me->pairs += n == 2;
    for (unsigned i = 0; i < n; i++) {
        atomic_fetch_add(&me->own_decodes, 1);
        if (me->in_decode != NULL)
            me->in_decode(me);
        out_result[i].rc = made_up(raster, numbers, n_bands, &to[i], &out_result[i].err);
    }
}

static struct pb_block_cache *make(int32_t w, int32_t h, int32_t overlap, uint32_t count, bool mask)
{
    struct pb_block_cache_options o = {.shape = {W, H, w, h, overlap},
                                       .count = count,
                                       .bands = bands,
                                       .n_bands = BANDS,
                                       .type = PB_U16,
                                       .has_mask = mask,
                                       .decode = decode_cells};
    struct pb_block_cache *cache = NULL;
    ck_assert_int_eq(pb_block_cache_create(&o, NULL, &cache), 0);
    ck_assert_uint_ge(pb_block_cache_bytes(&o), count * pb_block_cache_cell_bytes(&o));
    return cache;
}

static uint32_t below(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static struct pb_rect random_rect(uint32_t *seed)
{
    struct pb_rect r;
    r.x = (int32_t)below(seed, W);
    r.y = (int32_t)below(seed, H);
    r.w = 1 + (int32_t)below(seed, (uint32_t)(W - r.x < 90 ? W - r.x : 90));
    r.h = 1 + (int32_t)below(seed, (uint32_t)(H - r.y < 90 ? H - r.y : 90));
    return r;
}

/* Places that are not what they must be, margins included. */
static int wrong_places(const struct pb_rect *r, const uint16_t *data, size_t row_px,
                        size_t plane_px, const uint8_t *mask)
{
    int wrong = 0;
    for (size_t b = 0; b < BANDS; b++)
        for (size_t y = 0; y < plane_px / row_px; y++)
            for (size_t x = 0; x < row_px; x++) {
                bool in = x < (size_t)r->w && y < (size_t)r->h;
                uint16_t expected =
                    in ? value_at(bands[b], r->x + (int32_t)x, r->y + (int32_t)y) : 0xABAB;
                wrong += data[b * plane_px + y * row_px + x] != expected;
            }
    for (int32_t y = 0; mask != NULL && y < r->h; y++)
        for (int32_t x = 0; x < r->w; x++)
            wrong += mask[y * r->w + x] != mask_at(r->x + x, r->y + y);
    return wrong;
}

static void read_once(struct reader *me, const struct pb_rect *r)
{
    me->own = *r;
    size_t row_px = (size_t)r->w + 3, plane_px = row_px * ((size_t)r->h + 2);
    uint16_t *data = malloc(plane_px * BANDS * sizeof *data);
    uint8_t *mask = me->mask ? malloc((size_t)r->w * (size_t)r->h) : NULL;
    memset(data, 0xAB, plane_px * BANDS * sizeof *data);
    struct pb_window to = {data, row_px * sizeof *data, plane_px * sizeof *data,
                           mask, (size_t)r->w,          *r};
    const struct pb_cache_reader reader = {.raster = (struct pb_raster *)me,
                                           .parked_ns = &me->parked_ns,
                                           .later = me->n_later > 0 ? later_of : NULL,
                                           .user = me,
                                           .rest = me->rest};
    int rc = pb_block_cache_read(me->cache, &reader, &to, &me->err);
    if (rc == 0)
        me->wrong += wrong_places(r, data, row_px, plane_px, mask);
    atomic_store(&me->rc, rc);
    free(data);
    free(mask);
}

static void *read_all(void *arg)
{
    struct reader *me = arg;
    if (me->only.w > 0)
        read_once(me, &me->only);
    for (int i = 0; i < me->rounds && atomic_load(&me->rc) == 0; i++) {
        struct pb_rect r = random_rect(&me->seed);
        read_once(me, &r);
    }
    atomic_store(&me->done, 1);
    return NULL;
}

static void start(struct reader *me)
{
    ck_assert_int_eq(pthread_create(&me->thread, NULL, read_all, me), 0);
}

static void run_group(struct pb_block_cache *cache, bool mask, int rounds, uint32_t n_later)
{
    struct reader group[READERS] = {0};
    for (uint32_t i = 0; i < READERS; i++) {
        group[i].cache = cache;
        group[i].mask = mask;
        group[i].rounds = rounds;
        group[i].n_later = n_later;
        group[i].seed = 77 * i + 5;
        start(&group[i]);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(group[i].thread, NULL);
        ck_assert_msg(atomic_load(&group[i].rc) == 0, "%s", group[i].err.msg);
        ck_assert_int_eq(group[i].wrong, 0);
    }
    ck_assert(!atomic_load(&decoded_twice));
}

START_TEST(random_parts_equal_the_image_from_several_threads)
{
    static const int32_t shapes[][3] = {{64, 64, 0},  {W, 16, 0},  {W, 1, 0},
                                        {100, 20, 7}, {1, 300, 0}, {50, 11, 40}};
    atomic_store(&nap_us, 20); /* so that readers meet */
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (uint32_t count = 1; count <= 64; count = count * 3 + 1) { /* 1: all take turns */
            struct pb_block_cache *cache =
                make(shapes[s][0], shapes[s][1], shapes[s][2], count, count % 2 == 0);
            run_group(cache, count % 2 == 0, 25, count % 3);
            pb_block_cache_destroy(cache);
        }
}
END_TEST

START_TEST(a_cell_that_is_there_is_not_decoded_again)
{
    struct pb_block_cache *cache = make(64, 64, 0, 5 * 4, false); /* all blocks of the image */
    run_group(cache, false, 300, 0);
    ck_assert_int_eq(atomic_load(&decodes), 20);
    ck_assert_uint_eq(pb_block_cache_decoded_px(cache), (uint64_t)W * H);
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(the_cell_not_used_for_longest_goes_first)
{
    struct pb_block_cache *cache = make(64, 64, 0, 2, false);
    static const struct {
        int32_t x;
        int decodes;
    } steps[] = {{0, 1}, {64, 2}, {0, 2}, {128, 3}, {0, 3}, {64, 4}, {0, 4}, {128, 5}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct reader me = {.cache = cache, .only = {steps[i].x, 0, 64, 64}};
        read_all(&me);
        ck_assert_int_eq(me.rc, 0);
        ck_assert_int_eq(atomic_load(&decodes), steps[i].decodes);
    }
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(a_tile_between_overlapping_cells_needs_one_of_them)
{
    struct pb_block_cache *cache = make(100, 300, 10, 4, false);
    static const struct pb_rect rects[] = {{90, 0, 20, 20}, {100, 0, 110, 9}, {190, 0, 100, 9}};
    for (int i = 0; i < 3; i++) {
        struct reader me = {.cache = cache, .only = rects[i]};
        read_all(&me);
        ck_assert_int_eq(me.wrong, 0);
        ck_assert_int_eq(atomic_load(&decodes), i + 1);
    }
    pb_block_cache_destroy(cache);
}
END_TEST

static void wait_for(atomic_int *what, int value)
{
    for (int i = 0; i < 60000 && atomic_load(what) < value; i++)
        usleep(1000);
    ck_assert_int_ge(atomic_load(what), value);
}

/* Counts of decodes and of announced ones after a read of `rect`, whose cells have 64 x 64 pixels.
 */
static void check_pairs(struct reader *me, struct pb_rect rect, int n_decodes, int pairs)
{
    me->only = rect;
    read_all(me);
    ck_assert_int_eq(me->rc, 0);
    ck_assert_int_eq(me->wrong, 0);
    ck_assert_int_eq(atomic_load(&decodes), n_decodes);
    ck_assert_int_eq(me->pairs, pairs);
}

START_TEST(test_missing_cells_are_decoded_in_pairs)
{
    struct pb_block_cache *cache = make(64, 64, 0, 20, false);
    struct reader me = {.cache = cache, .n_later = 1};
    check_pairs(&me, (struct pb_rect){0, 0, 192, 64}, 4, 2); /* 3 cells, and 1 of the row below */
    check_pairs(&me, (struct pb_rect){0, 0, 192, 64}, 4, 2);
    check_pairs(&me, (struct pb_rect){0, 64, 64, 64}, 4, 2);  /* decoded before */
    check_pairs(&me, (struct pb_rect){64, 64, 64, 64}, 6, 3); /* with the cell below */
    check_pairs(&me, (struct pb_rect){0, 128, 64, 64}, 7, 3); /* nothing is below: alone */
    check_pairs(&me, (struct pb_rect){0, 128, 301, 64}, 10,
                4); /* the third cell is decoded alone */
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(test_later_cell_evicts_no_cell_of_its_read)
{
    struct pb_block_cache *cache = make(64, 64, 0, 3, false);
    struct reader me = {.cache = cache, .n_later = 2};
    check_pairs(&me, (struct pb_rect){0, 0, 192, 64}, 3, 1);
    check_pairs(&me, (struct pb_rect){0, 0, 192, 64}, 3, 1);
    check_pairs(&me, (struct pb_rect){0, 64, 64, 64}, 5, 2); /* evicts two of the read before */
    check_pairs(&me, (struct pb_rect){0, 128, 64, 64}, 5, 2);
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(test_later_cell_evicts_no_cell_of_the_rest)
{
    struct pb_block_cache *cache = make(64, 64, 0, 2, false);
    const struct pb_rect all[2] = {{0, 0, W, H}};
    struct reader me = {.cache = cache, .n_later = 2, .rest = all};
    check_pairs(&me, (struct pb_rect){0, 0, 64, 64}, 2, 1);
    check_pairs(&me, (struct pb_rect){64, 0, 64, 64}, 3, 1); /* only its own cell evicts another */
    me.rest = NULL;
    check_pairs(&me, (struct pb_rect){128, 0, 64, 64}, 5, 2);
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(test_spent_cell_goes_before_an_older_one)
{
    struct pb_block_cache *cache = make(64, 64, 0, 2, false);
    const struct pb_rect below[2] = {{0, 64, 64, 64}};
    struct reader me = {.cache = cache, .n_later = 1, .rest = below};
    check_pairs(&me, (struct pb_rect){0, 0, 64, 64}, 2, 1);  /* with the cell below, used before */
    check_pairs(&me, (struct pb_rect){64, 0, 64, 64}, 3, 1); /* the other one makes room */
    check_pairs(&me, (struct pb_rect){0, 64, 64, 64}, 3, 1); /* present */
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(test_broken_later_cell_fails_its_own_read)
{
    struct pb_block_cache *cache = make(64, 64, 0, 20, false);
    struct reader me = {.cache = cache, .n_later = 1};
    atomic_store(&broken_row, 70);
    check_pairs(&me, (struct pb_rect){0, 0, 64, 64}, 2, 1);
    check_pairs(&me, (struct pb_rect){64, 0, 64, 64}, 4, 2);
    ck_assert_uint_eq(pb_block_cache_decoded_px(cache), 2 * 64 * 64);
    me.only = (struct pb_rect){0, 64, 64, 64};
    read_all(&me);
    ck_assert_int_eq(me.rc, pb_code_errno(PB_E_INPUT_DAMAGED));
    ck_assert_str_eq(me.err.msg, "row 70 is broken");
    ck_assert_int_eq(atomic_load(&decodes), 6); /* with the cell below */
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(test_broken_second_cell_fails_the_read)
{
    struct pb_block_cache *cache = make(64, 64, 0, 20, false);
    struct reader me = {.cache = cache, .n_later = 1, .only = {0, 0, 64, 192}};
    atomic_store(&broken_row, 70);
    read_all(&me);
    ck_assert_int_eq(me.rc, pb_code_errno(PB_E_INPUT_DAMAGED));
    ck_assert_str_eq(me.err.msg, "row 70 is broken");
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(test_waiting_reader_decodes_two_later_cells)
{
    struct pb_block_cache *cache = make(64, 64, 0, 20, false);
    struct reader group[2] = {0};
    atomic_store(&held, 1);
    for (int i = 0; i < 2; i++) {
        group[i] = (struct reader){.cache = cache, .n_later = 3, .only = {0, 0, 64, 50}};
        start(&group[i]);
        wait_for(&decodes, i + 1); /* the first two rows of cells, then the other two */
    }
    atomic_store(&held, 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(group[i].thread, NULL);
        ck_assert_int_eq(group[i].rc, 0);
        ck_assert_int_eq(group[i].wrong, 0);
        ck_assert_int_eq(group[i].pairs, 1);
    }
    ck_assert_int_eq(atomic_load(&decodes), 4);
    pb_block_cache_destroy(cache);
}
END_TEST

static void wait_until_other_decodes(struct reader *me)
{
    wait_for(&me->other->own_decodes, 1);
}

static void wait_until_other_is_done(struct reader *me)
{
    wait_for(&me->other->done, 1);
}

static void wait_until_a_cell_is_decoded(struct reader *me)
{
    for (int i = 0; i < 60000 && pb_block_cache_decoded_px(me->cache) == 0; i++)
        usleep(1000);
    ck_assert_uint_gt(pb_block_cache_decoded_px(me->cache), 0);
}

static void abort_cache(struct reader *me)
{
    pb_block_cache_abort(me->cache);
}

/* Starts a waiter when the decoder decodes the only cell of both, and waits for the end of both. */
static void run_waiter(struct reader *decoder, struct reader *waiter, uint32_t n_later)
{
    struct pb_block_cache *cache = make(64, 64, 0, 20, false);
    struct reader *const both[2] = {decoder, waiter};
    for (int i = 0; i < 2; i++) {
        both[i]->cache = cache;
        both[i]->only = (struct pb_rect){0, 0, 64, 50};
        both[i]->other = both[1 - i];
    }
    waiter->n_later = n_later;
    start(decoder);
    wait_for(&decoder->own_decodes, 1);
    start(waiter);
    for (int i = 1; i >= 0; i--) {
        wait_for(&both[i]->done, 1); /* a lost wakeup fails here */
        pthread_join(both[i]->thread, NULL);
        ck_assert_int_eq(both[i]->wrong, 0);
    }
    ck_assert_int_eq(decoder->own_decodes, 1);
    ck_assert_int_eq(waiter->own_decodes, 2); /* both are later cells */
    pb_block_cache_destroy(cache);
}

/* The decoder, the last other reader, is done while the waiter decodes damaged later cells. */
START_TEST(test_waiter_finds_cell_after_damaged_later_ones)
{
    struct reader decoder = {.in_decode = wait_until_other_decodes};
    struct reader waiter = {.in_decode = wait_until_other_is_done};
    atomic_store(&broken_row, 64);
    atomic_store(&broken_rows, H - 64);
    run_waiter(&decoder, &waiter, 2);
    ck_assert_int_eq(decoder.rc, 0);
    ck_assert_int_eq(waiter.rc, 0);
}
END_TEST

START_TEST(test_waiter_finds_failure_after_damaged_later_ones)
{
    struct reader decoder = {.in_decode = wait_until_other_decodes};
    struct reader waiter = {.in_decode = wait_until_other_is_done};
    atomic_store(&broken_row, 0);
    atomic_store(&broken_rows, H);
    run_waiter(&decoder, &waiter, 2);
    ck_assert_int_eq(decoder.rc, pb_code_errno(PB_E_INPUT_DAMAGED));
    ck_assert_int_eq(waiter.rc, pb_code_errno(PB_E_INPUT_DAMAGED));
    ck_assert_str_eq(waiter.err.msg, "row 0 is broken");
}
END_TEST

START_TEST(test_waiter_finds_abort_after_damaged_later_ones)
{
    struct reader decoder = {.in_decode = wait_until_other_is_done};
    struct reader waiter = {.in_decode = abort_cache};
    atomic_store(&broken_row, 64);
    atomic_store(&broken_rows, H - 64);
    run_waiter(&decoder, &waiter, 2);
    ck_assert_int_eq(decoder.rc, 0); /* its cell was begun before the abort */
    ck_assert_int_eq(waiter.rc, -ECANCELED);
}
END_TEST

/* The first of two later cells is damaged. The waiter publishes the second one and keeps the lock
 * until it parks or decodes again; only then does the decoder end. */
START_TEST(test_waiter_decodes_damaged_later_cell_once)
{
    struct reader decoder = {.in_decode = wait_until_a_cell_is_decoded};
    struct reader waiter = {0};
    atomic_store(&broken_row, 70);
    run_waiter(&decoder, &waiter, 3);
    ck_assert_int_eq(decoder.rc, 0);
    ck_assert_int_eq(waiter.rc, 0);
}
END_TEST

START_TEST(readers_of_one_cell_wait_for_its_decoder)
{
    struct pb_block_cache *cache = make(64, 64, 0, 8, true);
    struct reader group[READERS] = {0};
    atomic_store(&held, 1);
    for (int i = 0; i < READERS; i++) {
        group[i] = (struct reader){.cache = cache, .mask = true, .only = {i, 10, 20, 30}};
        start(&group[i]);
    }
    wait_for(&decodes, 1);
    usleep(30000);
    for (int i = 0; i < READERS; i++)
        ck_assert(!atomic_load(&group[i].done));
    atomic_store(&held, 0);
    int parked = 0;
    for (int i = 0; i < READERS; i++) {
        pthread_join(group[i].thread, NULL);
        ck_assert_int_eq(group[i].rc, 0);
        ck_assert_int_eq(group[i].wrong, 0);
        parked += group[i].parked_ns > 1000000;
    }
    ck_assert_int_eq(atomic_load(&decodes), 1);
    ck_assert_int_ge(parked, 1); /* a caller that arrived before the end reports its waiting time */
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(readers_of_the_same_cells_share_out_the_decoding)
{
    struct pb_block_cache *cache = make(W, 16, 0, 13, false);
    struct reader group[READERS] = {0};
    atomic_store(&held, 1);
    for (int i = 0; i < READERS; i++) {
        group[i] = (struct reader){.cache = cache, .only = {64 * i, 0, 64, H}};
        start(&group[i]);
    }
    wait_for(&decodes, READERS); /* all at once, though all began at the same cell */
    atomic_store(&held, 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(group[i].thread, NULL);
        ck_assert_int_eq(group[i].wrong, 0);
    }
    ck_assert_int_eq(atomic_load(&decodes), 13);
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(a_failed_decode_fails_every_tile_that_waits_for_it)
{
    struct pb_block_cache *cache = make(64, 64, 0, 8, false);
    struct reader group[READERS] = {0};
    atomic_store(&broken_row, 20);
    atomic_store(&held, 1);
    for (int i = 0; i < READERS; i++) {
        group[i] = (struct reader){.cache = cache, .only = {i, 10, 20, 30}};
        start(&group[i]);
    }
    wait_for(&decodes, 1);
    usleep(20000);
    atomic_store(&held, 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(group[i].thread, NULL);
        ck_assert_int_eq(group[i].rc, pb_code_errno(PB_E_INPUT_DAMAGED));
        ck_assert_int_eq(group[i].err.code, PB_E_INPUT_DAMAGED);
        ck_assert_str_eq(group[i].err.msg, "row 20 is broken");
    }
    /* The stream is over, other parts of it too. */
    struct reader late = {.cache = cache, .only = {100, 100, 5, 5}};
    read_all(&late);
    ck_assert_str_eq(late.err.msg, "row 20 is broken");
    ck_assert_int_eq(atomic_load(&decodes), 1);
    pb_block_cache_destroy(cache);
}
END_TEST

START_TEST(abort_wakes_readers_that_wait)
{
    struct pb_block_cache *cache = make(64, 64, 0, 2, false);
    struct reader group[READERS] = {0};
    atomic_store(&held, 1);
    for (int i = 0; i < READERS; i++) {
        group[i] = (struct reader){.cache = cache, .only = {0, 10, 20, 30}};
        start(&group[i]);
    }
    wait_for(&decodes, 1);
    usleep(20000);
    pb_block_cache_abort(cache);
    int ended = 0; /* all but the one inside its decode */
    for (int t = 0; t < 60000 && ended < READERS - 1; t++) {
        ended = 0;
        for (int i = 0; i < READERS; i++)
            ended += atomic_load(&group[i].done);
        usleep(1000);
    }
    ck_assert_int_eq(ended, READERS - 1);
    atomic_store(&held, 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(group[i].thread, NULL);
        /* The one that was at work may have ended its tile. */
        ck_assert(group[i].rc == -ECANCELED || group[i].rc == 0);
        ck_assert_int_eq(group[i].err.code, PB_OK);
    }
    struct reader late = {.cache = cache, .only = {100, 100, 5, 5}};
    read_all(&late);
    ck_assert_int_eq(late.rc, -ECANCELED);
    pb_block_cache_abort(NULL);
    pb_block_cache_destroy(cache);
    pb_block_cache_destroy(NULL);
}
END_TEST

/* --- real files --------------------------------------------------------------------------------
 */

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(1) << 40,
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

static void check_file(const char *path, int32_t cell_w, int32_t cell_h, int32_t overlap)
{
    struct pb_raster *direct = NULL, *mine = NULL;
    struct pb_err err = {0};
    ck_assert_msg(pb_raster_open(path, &limits, &err, &direct) == 0, "%s", err.msg);
    ck_assert_int_eq(pb_raster_open(path, &limits, &err, &mine), 0);
    const struct pb_raster_info *info = pb_raster_info(direct);
    const int32_t two[2] = {info->n_bands, 1};
    struct pb_block_cache_options o = {
        .shape = {info->width, info->height, cell_w, cell_h, overlap},
        .count = 5,
        .bands = two,
        .n_bands = 2,
        .type = info->type,
        .has_mask = true};
    struct pb_block_cache *cache = NULL;
    ck_assert_int_eq(pb_block_cache_create(&o, &err, &cache), 0);
    uint32_t seed = 9;
    uint64_t parked = 0;
    for (int i = 0; i < 30; i++) {
        struct pb_rect r;
        r.x = (int32_t)below(&seed, (uint32_t)info->width);
        r.y = (int32_t)below(&seed, (uint32_t)info->height);
        r.w = 1 + (int32_t)below(&seed, (uint32_t)(info->width - r.x));
        r.h = 1 + (int32_t)below(&seed, (uint32_t)(info->height - r.y));
        size_t px = (size_t)r.w * (size_t)r.h, row = (size_t)r.w * pb_type_bytes(info->type);
        size_t plane = row * (size_t)r.h, all = 2 * plane + px;
        char *a = malloc(all), *b = malloc(all);
        struct pb_window to = {a, row, plane, (uint8_t *)a + 2 * plane, (size_t)r.w, r};
        const struct pb_cache_reader reader = {.raster = mine, .parked_ns = &parked};
        ck_assert_int_eq(pb_block_cache_read(cache, &reader, &to, &err), 0);
        ck_assert_int_eq(pb_raster_read(direct, two, 2,
                                        &(struct pb_window){b, row, plane, (uint8_t *)b + 2 * plane,
                                                            (size_t)r.w, r},
                                        &err),
                         0);
        ck_assert_mem_eq(a, b, all);
        free(a);
        free(b);
    }
    pb_block_cache_destroy(cache);
    pb_raster_close(direct);
    pb_raster_close(mine);
}

START_TEST(cells_of_real_files_equal_direct_reads)
{
    static const char *const files[] = {"/derived/l7_tiled16.tif", "/derived/l7_mask_internal.tif",
                                        "/derived/l7_float64_lzw_p3.tif",
                                        "/real/mask_alpha/cog_rgb_mask.tif"};
    pb_raster_init();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s%s", PB_SHARED_DATA, files[i]);
        check_file(path, 64, 48, 0);
        check_file(path, 200, 7, 11);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *tc = tcase_create("sharing");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, random_parts_equal_the_image_from_several_threads);
    tcase_add_test(tc, a_cell_that_is_there_is_not_decoded_again);
    tcase_add_test(tc, the_cell_not_used_for_longest_goes_first);
    tcase_add_test(tc, a_tile_between_overlapping_cells_needs_one_of_them);
    tcase_add_test(tc, test_missing_cells_are_decoded_in_pairs);
    tcase_add_test(tc, test_later_cell_evicts_no_cell_of_its_read);
    tcase_add_test(tc, test_later_cell_evicts_no_cell_of_the_rest);
    tcase_add_test(tc, test_spent_cell_goes_before_an_older_one);
    tcase_add_test(tc, test_broken_later_cell_fails_its_own_read);
    tcase_add_test(tc, test_broken_second_cell_fails_the_read);
    tcase_add_test(tc, test_waiting_reader_decodes_two_later_cells);
    tcase_add_test(tc, test_waiter_finds_cell_after_damaged_later_ones);
    tcase_add_test(tc, test_waiter_finds_failure_after_damaged_later_ones);
    tcase_add_test(tc, test_waiter_finds_abort_after_damaged_later_ones);
    tcase_add_test(tc, test_waiter_decodes_damaged_later_cell_once);
    tcase_add_test(tc, readers_of_one_cell_wait_for_its_decoder);
    tcase_add_test(tc, readers_of_the_same_cells_share_out_the_decoding);
    tcase_add_test(tc, a_failed_decode_fails_every_tile_that_waits_for_it);
    tcase_add_test(tc, abort_wakes_readers_that_wait);
    suite_add_tcase(suite, tc);
    if (access(PB_SHARED_DATA "/derived/l7_tiled16.tif", R_OK) == 0) {
        TCase *real = tcase_create("files");
        tcase_add_test(real, cells_of_real_files_equal_direct_reads);
        suite_add_tcase(suite, real);
    } else {
        (void)printf("skipped: cells_of_real_files_equal_direct_reads: %s is not there\n",
                     PB_SHARED_DATA);
    }
    return run_suite(suite);
}
