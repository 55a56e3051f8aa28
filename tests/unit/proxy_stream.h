/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PROXY_STREAM_H
#define TEST_PROXY_STREAM_H
/* For the test of the device proxy: producers, the device proxy on a thread of its own, consumers
 * that check every tile. Threads count errors, because Check accepts assertions from the main
 * thread only. The channels are compiled here a second time, so that they stall, too, when the
 * script requests it. */
#include "fake_link.h"
#define WIC_STALL() fake_stall()
#include "wic/take.c"
#include "wic/channel.c"

#include "test_wic_group.h"
#include "wic/device/wic_device.h"

#include <stdio.h>

enum { TILE_BYTES = 512 };

/* A stream through the device proxy. Tile n is the n-th ticket of `in`: content, user bytes and
 * length follow from n. */
struct stream {
    uint32_t in_slots, out_slots;
    int producers, consumers;
    uint64_t tiles, in_first, out_first;
    struct wic_device_options options;
    struct wic_device *device;
    struct wic_device_stats stats;
    struct wic_channel *in, *out;
    int rc, close_rc;
    atomic_ullong to_start;
    atomic_uchar *seen; /* indexed by tile: number of times that it was handed over */
    atomic_uint wrong;
    atomic_int out_rc;        /* last return code of the consumers */
    atomic_bool hold;         /* consumers wait */
    bool proxy_joined, steps; /* steps: the device proxy is wic_device_step, in a loop */
    char why[256];            /* the words of a stream that failed */
    pthread_t threads[2 * CREW_MAX], proxy;
};

static inline size_t bytes_of(uint64_t tile)
{
    return tile * 37 % (TILE_BYTES / 4 + 1) * 4;
}

static inline unsigned char byte_of(uint64_t tile, size_t k)
{
    return (unsigned char)(tile * 7 + k);
}

static inline unsigned char key_of(uint64_t tile)
{
    return (unsigned char)(tile % 250 + 1);
}

static inline int produce_into(struct stream *s, struct wic_slot *slot)
{
    uint64_t tile = slot->ticket - s->in_first;
    unsigned char *data = slot->data, *user = slot->user;
    for (size_t k = 0; k < bytes_of(tile); k++) {
        data[k] = byte_of(tile, k);
    }
    memcpy(user, &tile, sizeof(tile));
    user[8] = key_of(tile);
    user[WIC_USER_BYTES - 1] = (unsigned char)tile;
    fake_stall();
    return wic_publish(s->in, slot, bytes_of(tile));
}

static inline int produce_one(struct stream *s)
{
    struct wic_slot slot;
    int rc = wic_acquire(s->in, WIC_FOREVER, &slot);
    return rc != 0 ? rc : produce_into(s, &slot);
}

static inline void *producer_main(void *argument)
{
    struct stream *s = argument;
    for (;;) {
        unsigned long long left = atomic_load(&s->to_start);
        if (left == 0) {
            return NULL;
        }
        if (atomic_compare_exchange_weak(&s->to_start, &left, left - 1) && produce_one(s) != 0) {
            return NULL; /* aborted */
        }
    }
}

static inline void check_tile(struct stream *s, const struct wic_slot *slot)
{
    uint64_t tile;
    const unsigned char *data = slot->data, *user = slot->user;
    memcpy(&tile, user, sizeof(tile));
    size_t bytes = s->options.describe != NULL ? bytes_of(tile) / 2 : bytes_of(tile);
    bool good = tile < s->tiles && slot->ticket == s->out_first + tile && slot->bytes == bytes &&
                user[WIC_USER_BYTES - 1] == (unsigned char)tile;
    for (size_t k = 0; good && k < bytes; k++) {
        good = data[k] == (unsigned char)(byte_of(tile, k) + key_of(tile));
    }
    if (!good || atomic_fetch_add(&s->seen[tile], 1) != 0) {
        s->wrong++;
    }
    memset(slot->data, 0xa5, TILE_BYTES);
}

static inline void *consumer_main(void *argument)
{
    struct stream *s = argument;
    struct wic_slot slot;
    int rc;
    while (s->hold) {
        sleep_ns(MS);
    }
    while ((rc = wic_wait(s->out, WIC_FOREVER, &slot)) == 0) {
        check_tile(s, &slot);
        fake_stall();
        if (wic_release(s->out, &slot) != 0) {
            break; /* aborted */
        }
    }
    s->out_rc = rc;
    return NULL;
}

static inline void *proxy_main(void *argument)
{
    struct stream *s = argument;
    if (!s->steps) {
        s->rc = wic_device_run(s->device);
        return NULL;
    }
    while ((s->rc = wic_device_step(s->device)) == 1) {
        sched_yield();
    }
    return NULL;
}

/* Opens the channels and the device proxy; no thread moves yet. Sizes that are not given get the
 * usual values. */
static inline void stream_open(struct stream *s)
{
    s->in_slots = s->in_slots ? s->in_slots : 8;
    s->out_slots = s->out_slots ? s->out_slots : 8;
    s->producers = s->producers ? s->producers : 1;
    s->consumers = s->consumers ? s->consumers : 1;
    s->in = channel_at(s->in_slots, TILE_BYTES, s->in_first, 0);
    s->out = channel_at(s->out_slots, TILE_BYTES, s->out_first, 0);
    s->seen = calloc(s->tiles + 1, sizeof(*s->seen));
    s->options.in = s->in;
    s->options.out = s->out;
    s->options.kernel = s;
    s->options.plan.blocks = 3;
    s->options.plan.user_bytes = FAKE_USER;
    if (s->options.plan.in_unit == 0) {
        s->options.plan.in_unit = s->options.plan.out_unit = 1;
    }
    if (s->options.plan.pieces == 0) {
        s->options.plan.pieces = 1;
        s->options.plan.piece_units = TILE_BYTES;
    }
    ck_assert_int_eq(wic_device_open(&s->options, &s->device), 0);
}

static inline void start_proxy(struct stream *s)
{
    ck_assert_int_eq(pthread_create(&s->proxy, NULL, proxy_main, s), 0);
}

static inline void start_threads(struct stream *s, uint64_t tiles)
{
    atomic_store(&s->to_start, tiles);
    for (int i = 0; i < s->producers + s->consumers; i++) {
        ck_assert_int_eq(pthread_create(&s->threads[i], NULL,
                                        i < s->producers ? producer_main : consumer_main, s),
                         0);
    }
}

static inline void join_producers(struct stream *s)
{
    for (int i = 0; i < s->producers; i++) {
        pthread_join(s->threads[i], NULL);
    }
}

static inline void join_proxy(struct stream *s)
{
    pthread_join(s->proxy, NULL);
    s->proxy_joined = true;
}

/* Everybody has left or is about to; gives everything back. */
static inline void stream_close(struct stream *s)
{
    if (!s->proxy_joined) {
        join_proxy(s);
    }
    for (int i = s->producers; i < s->producers + s->consumers && s->threads[i] != 0; i++) {
        pthread_join(s->threads[i], NULL);
    }
    s->close_rc = wic_device_close(s->device, &s->stats);
    ck_assert_uint_eq(fake.links, 0);
    ck_assert_uint_eq(fake.wrong, 0);
    ck_assert_uint_eq(s->stats.blocks, 3);
    /* After an abort some tiles are not fetched, and one may have left and not be counted. */
    for (uint64_t tile = 0; tile < s->tiles; tile++) {
        uint64_t done = s->stats.tiles;
        s->wrong += s->rc == 0 ? s->seen[tile] != (tile < done) : s->seen[tile] > (tile <= done);
    }
    ck_assert_uint_eq(s->wrong, 0);
    channel_free(s->in);
    channel_free(s->out);
    free(s->seen);
}

/* A stream that ends well. */
static inline void stream_run(struct stream *s)
{
    stream_open(s);
    start_proxy(s);
    start_threads(s, s->tiles);
    join_producers(s);
    wic_close(s->in);
    join_proxy(s);
    ck_assert_str_eq(wic_strerror(s->device), "");
    stream_close(s);
    ck_assert_int_eq(s->rc, 0);
    ck_assert_int_eq(s->out_rc, -EPIPE);
    ck_assert_uint_eq(s->stats.tiles, s->tiles);
    ck_assert_uint_eq(s->stats.starved_ns, s->stats.launches); /* every launch was reported */
}

static inline void ck_assert_aborted(struct stream *s)
{
    struct wic_slot slot;
    ck_assert_int_eq(wic_acquire(s->in, 0, &slot), -ECANCELED);
    ck_assert_int_eq(wic_wait(s->out, 0, &slot), -ECANCELED);
}

/* A stream that the device proxy ends with `rc`, whatever the producers still wanted to send. */
static inline void stream_fails(struct stream *s, int rc)
{
    stream_open(s);
    start_proxy(s);
    start_threads(s, s->tiles);
    join_producers(s);
    join_proxy(s);
    ck_assert_aborted(s);
    (void)snprintf(s->why, sizeof(s->why), "%s", wic_strerror(s->device));
    stream_close(s);
    ck_assert_int_eq(s->rc, rc);
    ck_assert_str_ne(s->why, "");
}
#endif
