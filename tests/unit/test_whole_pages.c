/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Residency of managed planes, with a device whose moves to the host are as late, and whose moves
 * to the device as early, as the queues allow: no other device has more chunks at a time. */
#include "pipeline/run/whole/whole_device.h"
#include "pipeline/run/whole/whole_pages.h"

#include "run_suite.h"

#include <check.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096, CHUNKS_MAX = 256, IN = 1, OUT = 2, WORK = 3, EVENTS = 10, MOVES = 4096 };

/* A move to the host that is queued, or done. */
struct late {
    uint32_t first, end;
};

static struct {
    bool is_there[CHUNKS_MAX], is_used[CHUNKS_MAX];
    uint32_t there, most, room;
    struct late late[MOVES];
    uint32_t n_late, done;
    /* For each event: count of moves to the host before its mark. */
    uint32_t marked[EVENTS + PB_WHOLE_PAGE_EVENTS];
    bool is_in[EVENTS + PB_WHOLE_PAGE_EVENTS];
    uint32_t moves_in, moves_out;
    int fail_at; /* the move that fails, from 1; 0 = none */
} device;

static unsigned char planes[CHUNKS_MAX * CHUNK];

/* Does the queued moves to the host up to the n-th. */
static void leave(uint32_t n)
{
    for (; device.done < n; device.done++)
        for (uint32_t c = device.late[device.done].first; c < device.late[device.done].end; c++) {
            ck_assert(device.is_there[c]);
            device.is_there[c] = false;
            device.there--;
        }
}

static int move(void *unused, uint32_t queue, void *memory, size_t bytes, bool to_device,
                struct pb_err *err)
{
    const uint32_t first = (uint32_t)(((unsigned char *)memory - planes) / CHUNK);
    const uint32_t end = first + (uint32_t)((bytes + CHUNK - 1) / CHUNK);
    (void)unused;
    ck_assert_uint_eq(queue, to_device ? IN : OUT);
    if (device.fail_at > 0 && (int)(device.moves_in + device.moves_out) + 1 == device.fail_at)
        return pb_fail(err, PB_E_DEVICE_FAILED, "the move fails, as the test wants it");
    for (uint32_t c = first; c < end; c++)
        ck_assert_msg(!device.is_used[c], "chunk %u is moved while it is used", c);
    if (!to_device) {
        device.moves_out++;
        device.late[device.n_late++] = (struct late){first, end};
        return 0;
    }
    device.moves_in++;
    for (uint32_t c = first; c < end; c++) {
        ck_assert_msg(!device.is_there[c], "chunk %u is moved in twice", c);
        device.is_there[c] = true;
        device.there++;
    }
    device.most = device.there > device.most ? device.there : device.most;
    ck_assert_uint_le(device.there, device.room);
    return 0;
}

static int mark(void *unused, uint32_t queue, uint32_t event, struct pb_err *err)
{
    (void)unused, (void)err;
    device.is_in[event] = queue == IN;
    device.marked[event] = device.n_late;
    return 0;
}

static int after(void *unused, uint32_t queue, uint32_t event, struct pb_err *err)
{
    (void)unused, (void)err;
    ck_assert(queue != IN || !device.is_in[event]);
    ck_assert(queue != OUT || device.is_in[event]);
    if (queue == IN)
        leave(device.marked[event]);
    return 0;
}

static const struct pb_whole_device ops = {.move = move, .mark = mark, .after = after};

static struct pb_whole_pages *open_pages(uint32_t chunks, uint32_t decoding, uint32_t computing,
                                         uint32_t visits, bool repeats)
{
    struct pb_whole_pages *pages = NULL;
    struct pb_err err = {0};
    const struct pb_whole_pages_options options = {.ops = &ops,
                                                   .planes = planes,
                                                   .bytes = chunks * CHUNK - 100,
                                                   .chunk_bytes = CHUNK,
                                                   .most = {decoding, computing},
                                                   .in = IN,
                                                   .out = OUT,
                                                   .first_event = EVENTS,
                                                   .visits = visits,
                                                   .repeats = repeats};
    memset(&device, 0, sizeof device);
    device.room = decoding + computing;
    ck_assert_int_eq(pb_whole_pages_create(&options, &err, &pages), 0);
    return pages;
}

/* Bytes that begin and end within chunks first .. end. */
static struct pb_whole_range chunks(uint32_t first, uint32_t end)
{
    return (struct pb_whole_range){first * CHUNK + 7, (end - first) * CHUNK - 200, 0, 1};
}

static void use(const struct pb_whole_range *range, bool is_used)
{
    for (uint64_t c = range->at / CHUNK; c <= (range->at + range->bytes - 1) / CHUNK; c++) {
        ck_assert_msg(device.is_there[c], "chunk %u is not there", (unsigned)c);
        device.is_used[c] = is_used;
    }
}

static void take(struct pb_whole_pages *pages, enum pb_whole_user user,
                 struct pb_whole_range *range)
{
    const struct pb_whole_ranges ranges = {range, 1};
    struct pb_err err = {0};
    if (user == PB_WHOLE_DECODING)
        pb_whole_pages_starve(pages, true);
    ck_assert_msg(pb_whole_pages_hold(pages, user, &ranges, WORK, true, &err) == 0, "%s", err.msg);
    use(range, true);
}

static void give(struct pb_whole_pages *pages, enum pb_whole_user user,
                 struct pb_whole_range *range)
{
    const struct pb_whole_ranges ranges = {range, 1};
    use(range, false);
    pb_whole_pages_release(pages, user, &ranges);
}

static void note(struct pb_whole_pages *pages, uint32_t visit, struct pb_whole_range range)
{
    struct pb_err err = {0};
    const struct pb_whole_ranges ranges = {&range, 1};
    ck_assert_int_eq(pb_whole_pages_note(pages, visit, &ranges, &err), 0);
}

/* Rows of tiles are decoded one after the other, and each is computed with the row before. */
START_TEST(test_scene_of_four_times_the_room_fits)
{
    enum { ROWS = 32, EACH = 4 };
    struct pb_whole_pages *pages = open_pages(ROWS * EACH, 8, 24, ROWS, false);
    for (uint32_t r = 0; r < ROWS; r++)
        note(pages, r, chunks(r > 0 ? (r - 1) * EACH : 0, (r + 1) * EACH));
    for (uint32_t r = 0; r < ROWS; r++) {
        struct pb_whole_range own = chunks(r * EACH, (r + 1) * EACH);
        struct pb_whole_range both = chunks(r > 0 ? (r - 1) * EACH : 0, (r + 1) * EACH);
        take(pages, PB_WHOLE_DECODING, &own);
        give(pages, PB_WHOLE_DECODING, &own);
        take(pages, PB_WHOLE_COMPUTING, &both);
        pb_whole_pages_visit(pages, r);
        give(pages, PB_WHOLE_COMPUTING, &both);
        pb_whole_pages_leave(pages);
    }
    const struct pb_whole_pages_report report = pb_whole_pages_report(pages);
    ck_assert_uint_eq(report.to_device_bytes, ROWS * EACH * CHUNK); /* each chunk once */
    ck_assert_uint_eq(report.to_host_bytes, (ROWS * EACH - 32) * CHUNK);
    ck_assert_uint_eq(report.most_bytes, 32 * CHUNK);
    pb_whole_pages_destroy(pages);
}
END_TEST

/* The order of tiles of a warp: each row of tiles reads chunks from the middle to the end, and a
 * part of those that the row before has read. */
START_TEST(test_tilted_order_stays_within_the_room)
{
    enum { COLS = 8, ROWS = 12, CHUNKS = 60 };
    struct pb_whole_pages *pages = open_pages(CHUNKS, 6, 10, ROWS * COLS, false);
    struct pb_whole_range read[ROWS * COLS];
    struct pb_err err = {0};
    for (uint32_t t = 0; t < ROWS * COLS; t++) {
        const uint32_t first = t / COLS * 4 + t % COLS;
        read[t] = chunks(first, first + 3 < CHUNKS ? first + 3 : CHUNKS);
        note(pages, t, read[t]);
    }
    for (uint32_t c = 0; c < CHUNKS; c += 3) {
        struct pb_whole_range own = chunks(c, c + 3);
        take(pages, PB_WHOLE_DECODING, &own);
        give(pages, PB_WHOLE_DECODING, &own);
    }
    for (uint32_t t = 0; t < ROWS * COLS; t++) {
        const struct pb_whole_ranges next = {&read[t + 1 < ROWS * COLS ? t + 1 : t], 1};
        take(pages, PB_WHOLE_COMPUTING, &read[t]);
        pb_whole_pages_visit(pages, t);
        ck_assert_int_eq(pb_whole_pages_ahead(pages, t + 1, &next, &err), 0);
        if (t >= 2)
            give(pages, PB_WHOLE_COMPUTING, &read[t - 2]); /* two tiles in flight */
        for (uint32_t k = t > 0 ? t - 1 : 0; k <= t; k++)
            use(&read[k], true);
    }
    ck_assert_uint_le(device.most, 16);
    /* At most twice what a room without limit would move. */
    ck_assert_uint_le(pb_whole_pages_report(pages).to_device_bytes, 2 * ROWS * COLS * CHUNK);
    pb_whole_pages_destroy(pages);
}
END_TEST

/* Rounds over the scene: the chunks that are used last are evicted, not those used longest ago. */
START_TEST(test_rounds_keep_what_fits)
{
    enum { CHUNKS = 40, ROOM = 20, ROUNDS = 10 };
    struct pb_whole_pages *pages = open_pages(CHUNKS, 2, ROOM - 2, CHUNKS, true);
    for (uint32_t c = 0; c < CHUNKS; c++)
        note(pages, c, chunks(c, c + 1));
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t c = 0; c < CHUNKS; c++) {
            struct pb_whole_range own = chunks(c, c + 1);
            take(pages, PB_WHOLE_COMPUTING, &own);
            pb_whole_pages_visit(pages, c);
            give(pages, PB_WHOLE_COMPUTING, &own);
        }
    /* About half of the chunks stay for the next round. */
    ck_assert_uint_le(pb_whole_pages_report(pages).to_device_bytes,
                      (CHUNKS + (ROUNDS - 1) * (CHUNKS - ROOM + 3)) * CHUNK);
    pb_whole_pages_destroy(pages);
}
END_TEST

struct waiter {
    struct pb_whole_pages *pages;
    struct pb_whole_range range;
    int rc;
};

static void *wait_for_room(void *arg)
{
    struct waiter *w = arg;
    const struct pb_whole_ranges ranges = {&w->range, 1};
    struct pb_err err = {0};
    w->rc = pb_whole_pages_hold(w->pages, PB_WHOLE_COMPUTING, &ranges, WORK, true, &err);
    return NULL;
}

/* Rows of tiles that are decoded by a thread of its own. */
struct rows {
    struct pb_whole_pages *pages;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n, each, decoded; /* rows; chunks of a row */
};

static void *decode_rows(void *arg)
{
    struct rows *r = arg;
    for (uint32_t i = 0; i < r->n; i++) {
        struct pb_whole_range own = chunks(i * r->each, (i + 1) * r->each);
        const struct pb_whole_ranges ranges = {&own, 1};
        struct pb_err err = {0};
        ck_assert_int_eq(
            pb_whole_pages_hold(r->pages, PB_WHOLE_DECODING, &ranges, WORK, true, &err), 0);
        pb_whole_pages_release(r->pages, PB_WHOLE_DECODING, &ranges);
        pthread_mutex_lock(&r->lock);
        r->decoded = i + 1;
        pthread_cond_signal(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

static void await_rows(struct rows *r, uint32_t n)
{
    pthread_mutex_lock(&r->lock);
    while (r->decoded < n) {
        pb_whole_pages_starve(r->pages, true);
        pthread_cond_wait(&r->changed, &r->lock);
        pb_whole_pages_starve(r->pages, false);
    }
    pthread_mutex_unlock(&r->lock);
}

static void end_visit(struct pb_whole_pages *pages, struct pb_whole_range *range)
{
    const struct pb_whole_ranges ranges = {range, 1};
    pb_whole_pages_release(pages, PB_WHOLE_COMPUTING, &ranges);
    pb_whole_pages_leave(pages);
}

/* Each visit reads `each` rows, the first `shared` of which the one before has read. Some visits
 * are in progress at once; there is room for them, and to decode a row. */
static void visit_rows(uint32_t each, uint32_t shared, uint32_t at_once)
{
    enum { ROWS = 24, EACH = 4 };
    const uint32_t step = each - shared, visits = (ROWS - shared) / step;
    struct rows rows = {
        .pages = open_pages(ROWS * EACH, EACH, EACH * (each + (at_once - 1) * step), visits, false),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .n = ROWS,
        .each = EACH};
    pthread_t thread;
    struct pb_whole_range read[ROWS];
    for (uint32_t v = 0; v < visits; v++) {
        read[v] = chunks(v * step * EACH, (v * step + each) * EACH);
        note(rows.pages, v, read[v]);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, decode_rows, &rows), 0);
    for (uint32_t v = 0; v < visits; v++) {
        const struct pb_whole_ranges ranges = {&read[v], 1};
        struct pb_err err = {0};
        await_rows(&rows, v * step + each);
        ck_assert_int_eq(
            pb_whole_pages_hold(rows.pages, PB_WHOLE_COMPUTING, &ranges, WORK, true, &err), 0);
        pb_whole_pages_visit(rows.pages, v);
        if (v + 1 >= at_once)
            end_visit(rows.pages, &read[v + 1 - at_once]);
    }
    await_rows(&rows, ROWS);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(pb_whole_pages_report(rows.pages).to_device_bytes, ROWS * EACH * CHUNK);
    pb_whole_pages_destroy(rows.pages);
}

START_TEST(test_decoding_leaves_what_visits_will_read)
{
    visit_rows(2, 1, 1);
    visit_rows(2, 1, 2);
    visit_rows(3, 0, 1);
    visit_rows(4, 0, 1);
}
END_TEST

START_TEST(test_hold_waits_for_room_of_its_own)
{
    struct pb_whole_pages *pages = open_pages(20, 4, 4, 1, false);
    struct pb_whole_range a = chunks(0, 4), b = chunks(8, 12), more = chunks(4, 6);
    const struct pb_whole_ranges ranges = {&more, 1};
    struct pb_err err = {0};
    take(pages, PB_WHOLE_COMPUTING, &a);
    take(pages, PB_WHOLE_DECODING, &b); /* the other user has its own room */
    ck_assert_int_eq(pb_whole_pages_hold(pages, PB_WHOLE_COMPUTING, &ranges, WORK, false, &err),
                     -EAGAIN);
    ck_assert_int_eq(err.code, PB_OK);
    struct waiter waiter = {pages, more, 1};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_room, &waiter), 0);
    give(pages, PB_WHOLE_COMPUTING, &a);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(waiter.rc, 0);
    use(&more, true);
    pb_whole_pages_destroy(pages);
}
END_TEST

START_TEST(test_abort_ends_a_wait)
{
    struct pb_whole_pages *pages = open_pages(20, 4, 4, 1, false);
    struct pb_whole_range a = chunks(0, 4);
    struct waiter waiter = {pages, chunks(4, 6), 1};
    pthread_t thread;
    take(pages, PB_WHOLE_COMPUTING, &a);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_room, &waiter), 0);
    pb_whole_pages_abort(pages);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(waiter.rc, -ECANCELED);
    pb_whole_pages_abort(NULL);
    pb_whole_pages_destroy(pages);
}
END_TEST

START_TEST(test_request_larger_than_the_room_fails)
{
    struct pb_whole_pages *pages = open_pages(20, 4, 4, 1, false);
    struct pb_whole_range a = chunks(0, 5);
    const struct pb_whole_ranges ranges = {&a, 1};
    struct pb_err err = {0};
    ck_assert_int_lt(pb_whole_pages_hold(pages, PB_WHOLE_DECODING, &ranges, WORK, true, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "compute.device_memory"));
    pb_whole_pages_destroy(pages);
}
END_TEST

START_TEST(test_failed_move_is_reported)
{
    struct pb_whole_pages *pages = open_pages(20, 2, 2, 1, false);
    struct pb_whole_range a = chunks(0, 2), b = chunks(2, 4), c = chunks(6, 8);
    const struct pb_whole_ranges ranges = {&c, 1};
    struct pb_err err = {0};
    take(pages, PB_WHOLE_COMPUTING, &a);
    give(pages, PB_WHOLE_COMPUTING, &a);
    take(pages, PB_WHOLE_DECODING, &b);
    device.fail_at = 3; /* the move of a to the host */
    ck_assert_int_lt(pb_whole_pages_hold(pages, PB_WHOLE_COMPUTING, &ranges, WORK, true, &err), 0);
    ck_assert_int_eq(err.code, PB_E_DEVICE_FAILED);
    pb_whole_pages_destroy(pages);
}
END_TEST

/* Ranges of several planes share chunks at their ends. */
START_TEST(test_planes_of_a_range_are_held_once)
{
    struct pb_whole_pages *pages = open_pages(12, 6, 6, 1, false);
    struct pb_whole_range rows = {.at = 100, .bytes = CHUNK, .step = 2 * CHUNK, .n = 3};
    const struct pb_whole_ranges ranges = {&rows, 1};
    struct pb_err err = {0};
    ck_assert_int_eq(pb_whole_pages_hold(pages, PB_WHOLE_DECODING, &ranges, WORK, true, &err), 0);
    for (uint32_t c = 0; c < 6; c++)
        ck_assert(device.is_there[c]);
    ck_assert_uint_eq(device.there, 6);
    ck_assert_uint_eq(device.moves_in, 1); /* adjacent chunks */
    ck_assert_int_eq(pb_whole_pages_hold(pages, PB_WHOLE_DECODING, &ranges, WORK, true, &err), 0);
    ck_assert_uint_eq(device.moves_in, 1);
    pb_whole_pages_release(pages, PB_WHOLE_DECODING, &ranges);
    pb_whole_pages_release(pages, PB_WHOLE_DECODING, &ranges);
    pb_whole_pages_destroy(pages);
}
END_TEST

/* Nothing is moved ahead that was never decoded, or that would evict what is used before it. */
START_TEST(test_ahead_moves_only_what_has_room)
{
    struct pb_whole_pages *pages = open_pages(12, 2, 2, 6, false);
    struct pb_whole_range at[6];
    struct pb_err err = {0};
    for (uint32_t v = 0; v < 6; v++) {
        at[v] = chunks(v * 2, v * 2 + 2);
        note(pages, v, at[v]);
    }
    for (uint32_t v = 0; v < 3; v++) {
        take(pages, PB_WHOLE_DECODING, &at[v]);
        give(pages, PB_WHOLE_DECODING, &at[v]);
    }
    const uint32_t before = device.moves_in;
    const struct pb_whole_ranges undone = {&at[5], 1}, last = {&at[2], 1};
    ck_assert_int_eq(pb_whole_pages_ahead(pages, 5, &undone, &err), 0);
    ck_assert_uint_eq(device.moves_in, before);
    take(pages, PB_WHOLE_COMPUTING, &at[0]);
    pb_whole_pages_visit(pages, 0);
    ck_assert_int_eq(pb_whole_pages_ahead(pages, 2, &last, &err), 0);
    const uint32_t with_two = device.moves_in;
    pb_whole_pages_visit(pages, 1);
    give(pages, PB_WHOLE_COMPUTING, &at[0]);
    ck_assert_int_eq(pb_whole_pages_ahead(pages, 2, &last, &err), 0);
    ck_assert_uint_le(device.moves_in, with_two + 1);
    take(pages, PB_WHOLE_COMPUTING, &at[1]);
    pb_whole_pages_destroy(pages);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_pages");
    TCase *tests = tcase_create("residency");
    tcase_add_test(tests, test_scene_of_four_times_the_room_fits);
    tcase_add_test(tests, test_tilted_order_stays_within_the_room);
    tcase_add_test(tests, test_rounds_keep_what_fits);
    tcase_add_test(tests, test_decoding_leaves_what_visits_will_read);
    tcase_add_test(tests, test_hold_waits_for_room_of_its_own);
    tcase_add_test(tests, test_abort_ends_a_wait);
    tcase_add_test(tests, test_request_larger_than_the_room_fails);
    tcase_add_test(tests, test_failed_move_is_reported);
    tcase_add_test(tests, test_planes_of_a_range_are_held_once);
    tcase_add_test(tests, test_ahead_moves_only_what_has_room);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
