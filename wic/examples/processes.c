/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two processes and a channel in shared memory: the parent produces, the child consumes. The child
 * maps the memory at an address of its own; everything in it is found by offsets. */
#include "wic/wic.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TILES = 5000, TILE_BYTES = 4096, SLOTS = 4 };

/* How long one side waits before it considers the other dead. */
#define PATIENCE_NS INT64_C(5000000000)

static void *map(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The child. Its exit status: 0 if every tile arrived complete and in order. */
static int consume(int fd, size_t bytes, const void *parents_address)
{
    void *memory = map(fd, bytes);
    struct wic_channel *channel;
    if (memory == NULL || wic_channel_attach(memory, bytes, &channel) != 0) {
        return 1;
    }
    printf("the producer's channel is at %p, the consumer's at %p\n", parents_address, memory);
    struct wic_slot slot;
    uint64_t tiles = 0;
    int rc;
    while ((rc = wic_wait(channel, PATIENCE_NS, &slot)) == 0) {
        const unsigned char *tile = slot.data;
        for (size_t i = 0; i < slot.bytes; i++) {
            if (tile[i] != (unsigned char)(tiles + i)) {
                wic_abort(channel); /* wakes the producer, too */
                return 1;
            }
        }
        tiles++;
        wic_release(channel, &slot);
    }
    return rc == -EPIPE && tiles == TILES ? 0 : 1;
}

/* The parent. 0, or the error that ended the stream. */
static int produce(struct wic_channel *channel)
{
    for (uint64_t n = 0; n < TILES; n++) {
        struct wic_slot slot;
        int rc = wic_acquire(channel, PATIENCE_NS, &slot); /* -ETIMEDOUT: is it still alive? */
        if (rc != 0) {
            return rc;
        }
        unsigned char *tile = slot.data;
        for (size_t i = 0; i < slot.bytes; i++) {
            tile[i] = (unsigned char)(n + i);
        }
        rc = wic_publish(channel, &slot, slot.bytes);
        if (rc != 0) {
            return rc;
        }
    }
    wic_close(channel);
    return 0;
}

int main(void)
{
    struct wic_options options = {.slots = SLOTS, .slot_bytes = TILE_BYTES, .shared = true};
    size_t bytes = wic_channel_bytes(&options);
    int fd = memfd_create("wic-example", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        perror("memfd");
        return 1;
    }
    void *memory = map(fd, bytes);
    struct wic_channel *channel;
    if (memory == NULL || wic_channel_init(memory, &options, &channel) != 0) {
        fprintf(stderr, "no channel\n");
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        int status = consume(fd, bytes, memory);
        fflush(stdout);
        _exit(status);
    }
    int rc = child > 0 ? produce(channel) : -errno;
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || rc != 0) {
        fprintf(stderr, "producer: %s; consumer's status: %d\n", strerror(-rc), status);
        return 1;
    }
    wic_channel_fini(channel);
    printf("%d tiles went from process to process\n", TILES);
    return 0;
}
