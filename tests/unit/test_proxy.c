/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads slow
 *
 * The device proxy between two channels and a device (wic/device/proxy.c), with a thread in the
 * place of the device (fake_link.h). */
#include "proxy_stream.h"

#include "run_suite.h"
#include "wic/device/pause.h"

#include <sys/prctl.h>

/* --- the good way --- */

static const struct {
    int producers, consumers;
    uint32_t in_slots, out_slots;
    uint64_t in_first, out_first;
} SHAPES[] = {{1, 1, 8, 8, 0, 0},
              {1, 1, 1, 1, 1000003, 77},
              {3, 2, 4, 7, UINT32_MAX - 100, 5},
              {2, 4, 32, 2, 3, UINT32_MAX - 300},
              {4, 4, 5, 3, 13, 11}};

START_TEST(every_tile_passes_once_in_order_with_user_bytes)
{
    fake.script.stalls = true;
    struct stream s = {.tiles = 600, /* passes the wraps of the numbers, and all slots often */
                       .producers = SHAPES[_i].producers,
                       .consumers = SHAPES[_i].consumers,
                       .in_slots = SHAPES[_i].in_slots,
                       .out_slots = SHAPES[_i].out_slots,
                       .in_first = SHAPES[_i].in_first,
                       .out_first = SHAPES[_i].out_first};
    stream_run(&s);
    uint64_t bytes = 0;
    for (uint64_t tile = 0; tile < s.tiles; tile++) {
        bytes += bytes_of(tile);
    }
    ck_assert_uint_eq(s.stats.in_bytes, bytes);
    ck_assert_uint_eq(s.stats.out_bytes, bytes);
    ck_assert_uint_eq(s.stats.timeouts, 0);
    ck_assert_uint_eq(fake.worked, s.tiles);
}
END_TEST

START_TEST(test_naps_lose_no_tile)
{
    fake.script.stalls = true;
    struct stream s = {.tiles = 600, .options = {.nap_ns = 1000}};
    stream_run(&s);
    ck_assert_uint_eq(fake.worked, s.tiles);
}
END_TEST

START_TEST(test_steps_lose_no_tile)
{
    fake.script.stalls = true;
    struct stream s = {.tiles = 1500, .producers = 3, .consumers = 2, .steps = true};
    stream_run(&s);
    ck_assert_uint_eq(fake.worked, s.tiles);
}
END_TEST

/* Takes and checks the results that are there. */
static void consume_now(struct stream *s)
{
    struct wic_slot slot;
    int rc;
    while ((rc = wic_wait(s->out, 0, &slot)) == 0) {
        check_tile(s, &slot);
        ck_assert_int_eq(wic_release(s->out, &slot), 0);
    }
    s->out_rc = rc;
}

START_TEST(test_one_thread_produces_steps_and_consumes)
{
    struct stream s = {.tiles = 1500};
    struct wic_slot slot;
    stream_open(&s);
    s.proxy_joined = true;
    for (uint64_t made = 0; (s.rc = wic_device_step(s.device)) == 1;) {
        consume_now(&s);
        if (made == s.tiles) {
            wic_close(s.in);
        } else if (wic_acquire(s.in, 0, &slot) == 0) {
            ck_assert_int_eq(produce_into(&s, &slot), 0);
            made++;
        }
    }
    consume_now(&s);
    stream_close(&s);
    ck_assert_int_eq(s.rc, 0);
    ck_assert_int_eq(s.out_rc, -EPIPE);
    ck_assert_uint_eq(s.stats.tiles, s.tiles);
    ck_assert_uint_eq(fake.worked, s.tiles);
}
END_TEST

/* The next tile is produced when the kernel has left after idle_ns. */
START_TEST(test_kernel_leaves_between_rare_steps)
{
    struct stream s = {.tiles = 5, .options = {.idle_ns = 1}};
    struct wic_slot slot;
    stream_open(&s);
    s.proxy_joined = true;
    for (uint64_t made = 0; made < s.tiles; made++) {
        ck_assert_int_eq(wic_acquire(s.in, 0, &slot), 0);
        ck_assert_int_eq(produce_into(&s, &slot), 0);
        do {
            ck_assert_int_eq(wic_device_step(s.device), 1);
            consume_now(&s);
        } while (s.seen[made] == 0 || fake.link.joinable);
    }
    wic_close(s.in);
    ck_assert_int_eq(s.rc = wic_device_step(s.device), 0);
    stream_close(&s);
    ck_assert_uint_eq(s.stats.launches, s.tiles);
}
END_TEST

START_TEST(test_steps_end_by_an_abort)
{
    struct stream s = {.tiles = 3};
    stream_open(&s);
    s.proxy_joined = true;
    atomic_store(&s.to_start, 3);
    (void)producer_main(&s);
    ck_assert_int_eq(wic_device_step(s.device), 1);
    wic_abort(s.out);
    ck_assert_int_eq(s.rc = wic_device_step(s.device), -ECANCELED);
    ck_assert_aborted(&s);
    stream_close(&s);
}
END_TEST

START_TEST(no_tiles_is_a_good_end_without_a_kernel)
{
    struct stream s = {.tiles = 0};
    stream_run(&s);
    ck_assert_uint_eq(s.stats.launches, 0);
    ck_assert_uint_eq(fake.starts, 0);
}
END_TEST

/* Half of a unit's bytes are the result, and the consumer's part of the user bytes is made here. */
static int halve(void *context, const struct wic_slot *in, const struct wic_slot *out,
                 struct wic_device_tile *out_tile)
{
    uint64_t fail_at = *(const uint64_t *)context, tile;
    memcpy(&tile, out->user, sizeof(tile));
    *out_tile = (struct wic_device_tile){(uint32_t)in->bytes / 2, in->bytes / 2, 0};
    return tile == fail_at ? -ERANGE : 0;
}

START_TEST(describe_says_what_becomes_of_a_ticket)
{
    uint64_t never = UINT64_MAX;
    struct stream s = {.tiles = 300, .options = {.describe = halve, .context = &never}};
    stream_run(&s);
}
END_TEST

/* Units of *context bytes instead of the plan's. */
static int shorten(void *context, const struct wic_slot *in, const struct wic_slot *out,
                   struct wic_device_tile *out_tile)
{
    (void)out;
    *out_tile = (struct wic_device_tile){.units = (uint32_t)in->bytes / 2,
                                         .out_bytes = in->bytes / 2,
                                         .unit_bytes = *(uint32_t *)context};
    return 0;
}

START_TEST(the_link_is_told_how_long_a_tiles_units_are)
{
    uint32_t unit = 2;
    struct stream s = {.tiles = 300, .options = {.describe = shorten, .context = &unit}};
    s.options.plan.in_unit = 18; /* units of this length would not fit into the slot */
    s.options.plan.out_unit = 1;
    stream_run(&s);
    ck_assert_uint_eq(fake.link.ring[0].tile.unit_bytes, unit);
}
END_TEST

START_TEST(units_longer_than_the_plans_end_the_run)
{
    uint32_t unit = 2;
    struct stream s = {.tiles = 300, .options = {.describe = shorten, .context = &unit}};
    s.options.plan.in_unit = s.options.plan.out_unit = 1;
    stream_fails(&s, -EINVAL);
}
END_TEST

START_TEST(error_of_describe_ends_the_run)
{
    uint64_t fail_at = 100;
    struct stream s = {.tiles = 300, .options = {.describe = halve, .context = &fail_at}};
    stream_fails(&s, -ERANGE);
    ck_assert_ptr_nonnull(strstr(s.why, "error 34"));
    ck_assert_uint_le(s.stats.tiles, 100);
}
END_TEST

/* --- tickets that are not as they must be --- */

START_TEST(ticket_taken_by_somebody_else_ends_the_run)
{
    struct stream s = {.tiles = 3};
    stream_open(&s);
    if (_i == 0) {
        atomic_store(&s.to_start, 1);
        (void)producer_main(&s);
        release_next(s.in, 0);
    } else {
        publish_next(s.out);
    }
    start_proxy(&s);
    atomic_store(&s.to_start, 1);
    (void)producer_main(&s);
    stream_close(&s);
    ck_assert_int_eq(s.rc, -EINVAL);
    ck_assert_uint_eq(fake.starts, 0);
}
END_TEST

START_TEST(bytes_that_are_no_whole_units_end_the_run)
{
    struct stream s = {.tiles = 100, .options = {.plan = {.in_unit = 8, .out_unit = 8}}};
    stream_fails(&s, -EINVAL);
    ck_assert_ptr_nonnull(strstr(s.why, "ticket 1 has 148 bytes, which is not whole units of 8"));
    ck_assert_uint_le(s.stats.tiles, 1); /* tile 0 has no bytes; the 148 of tile 1 are not whole */
}
END_TEST

/* Results that are longer than a slot, or a tile that is longer than the plan's. */
static int boast(void *context, const struct wic_slot *in, const struct wic_slot *out,
                 struct wic_device_tile *out_tile)
{
    (void)in;
    *out_tile = *(const struct wic_device_tile *)context;
    out_tile->out_bytes += out->bytes;
    return 0;
}

START_TEST(oversize_tile_or_slot_ends_the_run_before_kernel)
{
    struct wic_device_tile boasts[] = {{1, 1, 0}, {TILE_BYTES + 1, 0, 0}, {UINT32_MAX, 0, 0}};
    struct stream s = {.tiles = 10, .options = {.describe = boast, .context = &boasts[_i]}};
    stream_fails(&s, -EINVAL);
    ck_assert_uint_eq(fake.starts, 0);
}
END_TEST

START_TEST(units_longer_than_the_slots_end_the_run)
{
    struct wic_device_tile tile = {TILE_BYTES, 0, 0};
    struct stream s = {
        .tiles = 10,
        .options = {.describe = boast, .context = &tile, .plan = {.in_unit = 4096, .out_unit = 1}}};
    stream_fails(&s, -EINVAL);
    ck_assert_uint_eq(fake.starts, 0);
}
END_TEST

/* The Publisher stores whole units, whatever number of bytes describe sets for the consumer. */
START_TEST(results_longer_than_a_slot_end_the_run)
{
    struct wic_device_tile tile = {TILE_BYTES / 4 + 1, 0, 0};
    struct stream s = {
        .tiles = 10,
        .options = {.describe = boast, .context = &tile, .plan = {.in_unit = 1, .out_unit = 4}}};
    stream_fails(&s, -EINVAL);
    ck_assert_uint_eq(fake.starts, 0);
}
END_TEST

START_TEST(open_refuses_what_cannot_work)
{
    struct wic_channel *channel = channel_new(2, 16);
    struct wic_device_options good = {
        .in = channel, .out = channel, .kernel = channel, .plan = {.in_unit = 1, .out_unit = 1}};
    struct wic_device *device = NULL;
    ck_assert_int_eq(wic_device_open(NULL, &device), -EINVAL);
    ck_assert_int_eq(wic_device_open(&good, NULL), -EINVAL);
    struct wic_device_options bad = good;
    bad.in = NULL;
    ck_assert_int_eq(wic_device_open(&bad, &device), -EINVAL);
    bad = good;
    bad.out = NULL;
    ck_assert_int_eq(wic_device_open(&bad, &device), -EINVAL);
    bad = good;
    bad.plan.in_unit = 0; /* and without a function that describes tickets */
    ck_assert_int_eq(wic_device_open(&bad, &device), -EINVAL);
    bad = good;
    bad.idle_ns = (int64_t)WIC_LINK_BEAT_NS; /* the kernel would take its host for dead */
    ck_assert_int_eq(wic_device_open(&bad, &device), -EINVAL);
    bad.idle_ns = -1;
    ck_assert_int_eq(wic_device_open(&bad, &device), -EINVAL);
    fake.script.create_rc = -ENOSPC;
    ck_assert_int_eq(wic_device_open(&good, &device), -ENOSPC);
    ck_assert_ptr_null(device);
    channel_free(channel);
}
END_TEST

START_TEST(open_refuses_a_program_of_another_layout)
{
    struct wic_channel *channel = channel_new(2, 16);
    struct wic_device_options good = {
        .in = channel, .out = channel, .kernel = channel, .plan = {.in_unit = 1, .out_unit = 1}};
    struct wic_device *device = NULL;
    ck_assert_int_eq(wic_device_open_as(WIC_DEVICE_LAYOUT + 1, &good, &device), -EPROTO);
    ck_assert_ptr_nonnull(strstr(wic_link_why(), "another wic"));
    ck_assert_ptr_null(device);
    ck_assert_uint_eq(fake.links, 0);
    ck_assert_uint_eq((uint32_t)(WIC_DEVICE_LAYOUT >> 32), WIC_DEVICE_VERSION); /* sizes fit */
    channel_free(channel);
}
END_TEST

static void *run_with_own_slack(void *user)
{
    struct stream *s = user;
    (void)prctl(PR_SET_TIMERSLACK, 77777, 0, 0, 0);
    s->rc = wic_device_run(s->device);
    atomic_store(&s->out_rc, prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    return NULL;
}

START_TEST(run_restores_the_callers_timer_slack)
{
    struct stream s = {.tiles = 0};
    stream_open(&s);
    wic_close(s.in);
    ck_assert_int_eq(pthread_create(&s.proxy, NULL, run_with_own_slack, &s), 0);
    ck_assert_int_eq(pthread_join(s.proxy, NULL), 0);
    ck_assert_int_eq(s.rc, 0);
    ck_assert_int_eq(atomic_load(&s.out_rc), 77777);
    s.proxy_joined = true;
    stream_close(&s);
}
END_TEST

/* --- launches of the kernel --- */

static void until_kernel_left(uint64_t worked)
{
    while (atomic_load(&fake.worked) < worked || atomic_load(&fake.link.running) == 1) {
        sleep_ns(MS);
    }
}

/* Waits without a limit of its own; Check ends a test that hangs. */
static void until(atomic_uint *counter, unsigned n)
{
    while (atomic_load(counter) < n) {
        sleep_ns(MS);
    }
}

START_TEST(kernel_leaves_when_idle_and_comes_back)
{
    struct stream s = {.tiles = 60, .options = {.idle_ns = 2 * MS}};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, 0);
    join_producers(&s);
    for (uint64_t sent = 6; sent <= s.tiles; sent += 6) {
        atomic_store(&s.to_start, 6);
        (void)producer_main(&s);
        until_kernel_left(sent);
    }
    wic_close(s.in);
    stream_close(&s);
    ck_assert_int_eq(s.rc, 0);
    ck_assert_uint_ge(s.stats.launches, 10);
    ck_assert_uint_ge(s.stats.leave_ns, 2 * MS); /* since the last result, so with the idle time */
    ck_assert_uint_eq(s.stats.starved_ns, s.stats.launches);
    ck_assert_uint_eq(s.stats.timeouts, 0);
    ck_assert_uint_gt(s.stats.parked_ns, 0);
    ck_assert_uint_eq(fake.worked, s.tiles);
}
END_TEST

/* A thread that needs the device without kernels, now and then. */
struct rival {
    pthread_mutex_t lock; /* a kernel enters while it is wanted */
    atomic_int entered, unwanted;
    unsigned turns;
};

static bool may_enter(struct rival *r)
{
    pthread_mutex_lock(&r->lock);
    bool may = atomic_load(&r->unwanted) == 0;
    atomic_fetch_add(&r->entered, may);
    pthread_mutex_unlock(&r->lock);
    return may;
}

static void set_unwanted(struct rival *r, int unwanted)
{
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->unwanted, unwanted);
    pthread_mutex_unlock(&r->lock);
}

/* In turn all of the device and half of it. */
static uint32_t rival_enter(void *context)
{
    struct rival *r = context;
    while (!may_enter(r)) {
        sleep_ns(MS / 10);
    }
    return r->turns++ % 2 == 0 ? WIC_SHARE_WHOLE : WIC_SHARE_WHOLE / 2;
}

static void rival_left(void *context)
{
    struct rival *r = context;
    atomic_fetch_sub(&r->entered, 1);
}

static bool rival_wants(void *context)
{
    struct rival *r = context;
    return atomic_load(&r->unwanted) != 0;
}

START_TEST(unwanted_kernel_leaves_mid_run_and_returns)
{
    struct rival rival = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct stream s = {.tiles = 20000,
                       .options = {.context = &rival,
                                   .enter = rival_enter,
                                   .left = rival_left,
                                   .is_unwanted = rival_wants}};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles / 2);
    while (atomic_load(&rival.entered) == 0) {
        sleep_ns(MS / 10);
    }
    for (int i = 0; i < 5; i++) {
        set_unwanted(&rival, 1);
        while (atomic_load(&rival.entered) != 0) {
            sleep_ns(MS / 10);
        }
        sleep_ns(MS);
        ck_assert_int_eq(atomic_load(&rival.entered), 0);
        set_unwanted(&rival, 0);
        sleep_ns(MS);
    }
    join_producers(&s);
    atomic_store(&s.to_start, s.tiles - s.tiles / 2); /* work to return for */
    (void)producer_main(&s);
    wic_close(s.in);
    stream_close(&s);
    ck_assert_int_eq(s.rc, 0);
    ck_assert_int_eq(atomic_load(&rival.entered), 0);
    ck_assert_uint_ge(s.stats.launches, 2);
    ck_assert_uint_eq(fake.halves, fake.starts / 2);
    ck_assert_uint_eq(fake.worked, s.tiles);
}
END_TEST

START_TEST(kernel_leaves_for_a_pause_and_returns)
{
    struct stream s = {.tiles = 80};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles);
    while (atomic_load(&fake.worked) == 0) {
        sleep_ns(MS);
    }
    ck_assert_int_eq(wic_gpu_pause(WIC_GPU_PAUSE_NS), 0);
    const unsigned starts = atomic_load(&fake.starts);
    const uint64_t worked = atomic_load(&fake.worked);
    ck_assert_int_eq(atomic_load(&fake.link.running), 0);
    sleep_ns(50 * MS);
    ck_assert_uint_eq(atomic_load(&fake.starts), starts);
    ck_assert_uint_eq(atomic_load(&fake.worked), worked);
    wic_gpu_resume();
    join_producers(&s);
    wic_close(s.in);
    stream_close(&s);
    ck_assert_int_eq(s.rc, 0);
    ck_assert_uint_eq(s.stats.tiles, s.tiles);
}
END_TEST

START_TEST(kernel_leaves_while_the_results_have_no_slot)
{
    struct stream s = {.tiles = 40, .out_slots = 2, .hold = true, .options = {.idle_ns = 2 * MS}};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles);
    until_kernel_left(2);
    ck_assert_uint_eq(fake.worked, 2);
    s.hold = false;
    join_producers(&s);
    wic_close(s.in);
    stream_close(&s);
    ck_assert_int_eq(s.rc, 0);
    ck_assert_uint_ge(s.stats.launches, 2);
}
END_TEST

START_TEST(kernel_without_heartbeat_resumes_unfinished_tiles)
{
    bool repeated = _i == 1; /* each stay does one tile, and none twice */
    /* Tiles are done out of order, and then a second time, when the scheduler lets several be
     * posted at a time: if it does not, the test tries again. */
    for (int i = 0; i == 0 || (!repeated && i < 50); i++) {
        fake_reset();
        fake.script.silent_at = (uint64_t)_i;
        fake.script.stalls = true;
        struct stream s = {.tiles = 200, .producers = 2, .consumers = 2};
        stream_run(&s);
        ck_assert_uint_gt(s.stats.timeouts, 3); /* but never this many without a tile in between */
        ck_assert_uint_gt(s.stats.launches, s.stats.timeouts);
        repeated = repeated || fake.worked > s.tiles;
    }
    ck_assert(repeated);
}
END_TEST

/* A tile that is done is not done again: its input is not there any more. */
START_TEST(heartbeat_lost_during_return_does_not_repeat_tile)
{
    fake.script.silent_at = 3;
    fake.script.returning = 50;
    struct stream s = {.tiles = 60};
    stream_run(&s);
    ck_assert_uint_gt(s.stats.timeouts, 0);
}
END_TEST

START_TEST(kernel_that_only_times_out_is_given_up)
{
    fake.script.silent_at_once = true;
    struct stream s = {.tiles = 100};
    stream_fails(&s, -EIO);
    ck_assert_uint_eq(s.stats.timeouts, 4);
    ck_assert_uint_eq(fake.starts, 4);
    ck_assert_uint_eq(s.stats.tiles, 0);
}
END_TEST

START_TEST(kernel_that_fails_ends_the_run)
{
    fake.script.die_at = 50;
    struct stream s = {.tiles = 100};
    stream_fails(&s, -EIO);
    ck_assert_uint_le(s.stats.tiles, 50);
}
END_TEST

START_TEST(report_that_cannot_be_had_ends_the_run)
{
    fake.script.report_rc = -EIO;
    struct stream s = {.tiles = 20};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles);
    join_producers(&s);
    wic_close(s.in);
    stream_close(&s);
    ck_assert_int_eq(s.rc, -EIO);
}
END_TEST

START_TEST(device_that_is_full_for_a_while_is_waited_for)
{
    fake.script.busy = 4;
    struct stream s = {.tiles = 50};
    stream_run(&s);
    ck_assert_uint_ge(fake.starts, 5);
}
END_TEST

START_TEST(device_that_stays_full_ends_the_run)
{
    fake.script.busy = INT_MAX;
    struct stream s = {.tiles = 50, .options = {.starts = (uint32_t)_i}};
    stream_fails(&s, -EBUSY);
    ck_assert_ptr_nonnull(strstr(s.why, "another process fills the GPU"));
    ck_assert_uint_eq(fake.starts, _i == 0 ? 20 : _i);
    ck_assert_int_eq(s.close_rc, 0);
    ck_assert_uint_eq(s.stats.launches, 0);
}
END_TEST

/* Tiles are under way and no result returns. The kernel still receives the abort. */
START_TEST(hung_device_ends_the_run_unlike_a_full_one)
{
    atomic_store(&fake.script.stuck, true);
    struct stream s = {.tiles = 5, .options = {.hang_ns = 300 * MS}};
    stream_fails(&s, -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(s.why, "did not finish tile 0 within 300 ms"));
    ck_assert_int_eq(s.close_rc, 0);
    ck_assert_uint_eq(s.stats.tiles, 0);
}
END_TEST

enum { AT_THE_END, WHEN_IDLE, ON_ABORT };

START_TEST(kernel_that_does_not_leave_is_left_behind)
{
    fake.script.deaf = true;
    struct stream s = {.tiles = 20, .options = {.idle_ns = 2 * MS}};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles);
    join_producers(&s);
    if (_i == AT_THE_END) {
        wic_close(s.in);
    } else if (_i == ON_ABORT) {
        wic_abort(s.out);
    }
    join_proxy(&s);
    ck_assert_aborted(&s);
    stream_close(&s);
    ck_assert_int_eq(s.rc, _i == ON_ABORT && s.rc == -ECANCELED ? -ECANCELED : -ETIMEDOUT);
    ck_assert_int_eq(s.close_rc, -ETIMEDOUT);
}
END_TEST

START_TEST(abort_while_the_device_is_full_ends_the_run)
{
    fake.script.busy = INT_MAX;
    fake.script.busy_ns = 50 * MS;
    struct stream s = {.tiles = 5, .options = {.starts = INT_MAX}}; /* without the abort: years */
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles);
    until(&fake.starts, 2);
    wic_abort(s.out);
    join_producers(&s);
    stream_close(&s);
    ck_assert_int_eq(s.rc, -ECANCELED);
}
END_TEST

START_TEST(heart_beats_while_a_tile_takes_long)
{
    atomic_store(&fake.script.stuck, true);
    struct stream s = {.tiles = 5};
    stream_open(&s);
    start_proxy(&s);
    start_threads(&s, s.tiles);
    until(&fake.beats, 2);
    atomic_store(&fake.script.stuck, false);
    join_producers(&s);
    wic_close(s.in);
    stream_close(&s);
    ck_assert_int_eq(s.rc, 0);
}
END_TEST

/* --- abort --- */

enum { NOTHING_CAME, KERNEL_STUCK, WINDOW_FULL, RESULTS_HAVE_NO_SLOT, STREAMING, SITUATIONS };

/* Gets the stream there; the device proxy and the producers run. */
static void bring_about(struct stream *s, int situation)
{
    static const uint64_t tiles[SITUATIONS] = {0, 3, 100, 100, 100000};
    atomic_store(&fake.script.stuck, situation == KERNEL_STUCK || situation == WINDOW_FULL);
    s->hold = situation == RESULTS_HAVE_NO_SLOT;
    start_proxy(s);
    start_threads(s, tiles[situation]);
    if (situation == RESULTS_HAVE_NO_SLOT) {
        until_kernel_left(s->out_slots);
    }
    sleep_ns(40 * MS);
}

START_TEST(abort_of_either_channel_ends_the_run_at_once)
{
    struct stream s = {.tiles = 100000, .options = {.idle_ns = 5 * MS}};
    stream_open(&s);
    bring_about(&s, _i / 2);
    int64_t before = clock_ns(CLOCK_MONOTONIC);
    wic_abort(_i % 2 == 0 ? s.in : s.out);
    join_proxy(&s);
    /* Without the abort none of these would end before the device counts as hanging. */
    ck_assert_int_lt(clock_ns(CLOCK_MONOTONIC) - before, WIC_DEVICE_HANG_NS / 2);
    ck_assert_int_eq(s.rc, -ECANCELED);
    ck_assert_aborted(&s);
    s.hold = false;
    join_producers(&s);
    stream_close(&s);
}
END_TEST

/* --- all of it --- */

static void set_up(void)
{
    fake_reset();
}

int main(void)
{
    Suite *suite = suite_create("proxy");
    TCase *t = tcase_create("proxy");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_loop_test(t, every_tile_passes_once_in_order_with_user_bytes, 0,
                        sizeof(SHAPES) / sizeof(SHAPES[0]));
    tcase_add_test(t, test_naps_lose_no_tile);
    tcase_add_test(t, test_steps_lose_no_tile);
    tcase_add_test(t, test_one_thread_produces_steps_and_consumes);
    tcase_add_test(t, test_kernel_leaves_between_rare_steps);
    tcase_add_test(t, test_steps_end_by_an_abort);
    tcase_add_test(t, no_tiles_is_a_good_end_without_a_kernel);
    tcase_add_test(t, describe_says_what_becomes_of_a_ticket);
    tcase_add_test(t, the_link_is_told_how_long_a_tiles_units_are);
    tcase_add_test(t, units_longer_than_the_plans_end_the_run);
    tcase_add_test(t, error_of_describe_ends_the_run);
    tcase_add_loop_test(t, ticket_taken_by_somebody_else_ends_the_run, 0, 2);
    tcase_add_test(t, bytes_that_are_no_whole_units_end_the_run);
    tcase_add_loop_test(t, oversize_tile_or_slot_ends_the_run_before_kernel, 0, 3);
    tcase_add_test(t, units_longer_than_the_slots_end_the_run);
    tcase_add_test(t, results_longer_than_a_slot_end_the_run);
    tcase_add_test(t, open_refuses_what_cannot_work);
    tcase_add_test(t, open_refuses_a_program_of_another_layout);
    tcase_add_test(t, run_restores_the_callers_timer_slack);
    tcase_add_test(t, kernel_leaves_when_idle_and_comes_back);
    tcase_add_test(t, unwanted_kernel_leaves_mid_run_and_returns);
    tcase_add_test(t, kernel_leaves_for_a_pause_and_returns);
    tcase_add_test(t, kernel_leaves_while_the_results_have_no_slot);
    tcase_add_loop_test(t, kernel_without_heartbeat_resumes_unfinished_tiles, 1, 5);
    tcase_add_test(t, heartbeat_lost_during_return_does_not_repeat_tile);
    tcase_add_test(t, kernel_that_only_times_out_is_given_up);
    tcase_add_test(t, kernel_that_fails_ends_the_run);
    tcase_add_test(t, report_that_cannot_be_had_ends_the_run);
    tcase_add_test(t, device_that_is_full_for_a_while_is_waited_for);
    tcase_add_loop_test(t, device_that_stays_full_ends_the_run, 0, 2);
    tcase_add_test(t, hung_device_ends_the_run_unlike_a_full_one);
    tcase_add_loop_test(t, kernel_that_does_not_leave_is_left_behind, 0, 3);
    tcase_add_test(t, abort_while_the_device_is_full_ends_the_run);
    tcase_add_test(t, heart_beats_while_a_tile_takes_long);
    tcase_add_loop_test(t, abort_of_either_channel_ends_the_run_at_once, 0, 2 * SITUATIONS);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
