/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two threads and a channel: one makes lines of samples, the other adds them up. The slower one
 * decides the pace; the other is parked meanwhile. */
#include "wic/wic.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 10000, SAMPLES = 2048, SLOTS = 8 };

/* The channel and its slots lie in memory of ours. */
static struct wic_channel *make_channel(void **out_memory)
{
    struct wic_options options = {.slots = SLOTS, .slot_bytes = SAMPLES * sizeof(uint16_t)};
    struct wic_channel *channel;
    *out_memory = aligned_alloc(4096, (wic_channel_bytes(&options) + 4095) / 4096 * 4096);
    if (*out_memory == NULL || wic_channel_init(*out_memory, &options, &channel) != 0) {
        return NULL;
    }
    return channel;
}

static void *produce(void *argument)
{
    struct wic_channel *channel = argument;
    for (uint32_t line = 0; line < LINES; line++) {
        struct wic_slot slot;
        if (wic_acquire(channel, WIC_FOREVER, &slot) != 0) {
            return NULL; /* aborted */
        }
        uint16_t *samples = slot.data;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            samples[i] = (uint16_t)(line + i);
        }
        memcpy(slot.user, &line, sizeof(line)); /* travels beside the samples */
        if (wic_publish(channel, &slot, slot.bytes) != 0) {
            return NULL;
        }
    }
    wic_close(channel); /* the consumer gets what is left, then -EPIPE */
    return NULL;
}

/* How many samples were as they must be. */
static uint64_t consume(struct wic_channel *channel)
{
    uint64_t good = 0;
    struct wic_slot slot;
    int rc;
    while ((rc = wic_wait(channel, WIC_FOREVER, &slot)) == 0) {
        const uint16_t *samples = slot.data;
        uint32_t line;
        memcpy(&line, slot.user, sizeof(line));
        for (uint32_t i = 0; i < SAMPLES; i++) {
            good += samples[i] == (uint16_t)(line + i);
        }
        wic_release(channel, &slot);
    }
    return rc == -EPIPE ? good : 0;
}

int main(void)
{
    void *memory;
    struct wic_channel *channel = make_channel(&memory);
    pthread_t producer;
    if (channel == NULL || pthread_create(&producer, NULL, produce, channel) != 0) {
        fprintf(stderr, "no channel or no thread\n");
        return 1;
    }
    uint64_t good = consume(channel);
    pthread_join(producer, NULL);
    struct wic_stats stats;
    wic_stats_get(channel, &stats);
    printf("%llu samples in %llu lines; parked: producer %llu times, consumer %llu times\n",
           (unsigned long long)good, (unsigned long long)stats.consumed,
           (unsigned long long)stats.producer_parks, (unsigned long long)stats.consumer_parks);
    wic_channel_fini(channel);
    free(memory);
    return good == (uint64_t)LINES * SAMPLES ? 0 : 1;
}
