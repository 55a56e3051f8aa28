/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 *   memfd    words of in | words of out
 *   mapping  page | words of in | page | words of out
 *   room     slots of in | slots of out
 *
 * The two pages are private to the process; the head of a channel is at the end of each. */
#include "pipeline/run/served/tile_pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct layout {
    size_t in_words, out_words, in_slots, out_slots; /* bytes, whole pages */
};

static bool layout_of(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                      struct layout *out)
{
    struct wic_options in = {.slots = shape->in_slots,
                             .slot_bytes = shape->in_slot_bytes,
                             .payload = room->slots,
                             .shared = true};
    struct wic_options out_options = {.slots = shape->out_slots,
                                      .slot_bytes = shape->out_slot_bytes,
                                      .payload = room->slots,
                                      .shared = true};
    size_t in_words = wic_join_bytes(&in), out_words = wic_join_bytes(&out_options);
    if (in_words == 0 || out_words == 0 || pb_tile_pool_room_bytes(shape) > room->bytes)
        return false;
    *out =
        (struct layout){(in_words + PAGE - 1) / PAGE * PAGE, (out_words + PAGE - 1) / PAGE * PAGE,
                        shape->in_slots * wic_slot_stride(shape->in_slot_bytes),
                        shape->out_slots * wic_slot_stride(shape->out_slot_bytes)};
    return true;
}

size_t pb_tile_pool_room_bytes(const struct pb_tile_pool_shape *shape)
{
    return shape->in_slots * wic_slot_stride(shape->in_slot_bytes) +
           shape->out_slots * wic_slot_stride(shape->out_slot_bytes);
}

static size_t file_bytes(const struct layout *l)
{
    return l->in_words + l->out_words;
}

static int map(const struct layout *l, int fd, struct pb_err *err, struct pb_tile_pool *pool)
{
    const int access = PROT_READ | PROT_WRITE;
    size_t bytes = file_bytes(l) + 2 * (size_t)PAGE;
    unsigned char *base = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return pb_fail(err, PB_E_MEMORY, "cannot map %zu bytes for tiles: %s", bytes,
                       strerror(errno));
    unsigned char *in = base + PAGE, *out = in + l->in_words + PAGE;
    *pool = (struct pb_tile_pool){.base = base, .bytes = bytes};
    if (mmap(in, l->in_words, access, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(out, l->out_words, access, MAP_SHARED | MAP_FIXED, fd, (off_t)l->in_words) ==
            MAP_FAILED)
        return pb_fail(err, PB_E_MEMORY, "cannot map memory for tiles: %s", strerror(errno));
    return 0;
}

static int join(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                const struct layout *l, bool first, const struct wic_join *consumer,
                struct pb_tile_pool *pool)
{
    unsigned char *in = (unsigned char *)pool->base + PAGE, *out = in + l->in_words + PAGE;
    struct wic_join j = *consumer;
    j.first = first;
    j.options = (struct wic_options){.slots = shape->in_slots,
                                     .slot_bytes = shape->in_slot_bytes,
                                     .payload = room->slots,
                                     .shared = true};
    int rc = wic_channel_join(in, &j, &pool->in);
    j = (struct wic_join){.first = first};
    j.options = (struct wic_options){.slots = shape->out_slots,
                                     .slot_bytes = shape->out_slot_bytes,
                                     .payload = (unsigned char *)room->slots + l->in_slots,
                                     .shared = true};
    return rc ? rc : wic_channel_join(out, &j, &pool->out);
}

static int no_shape(struct pb_err *err)
{
    return pb_fail(err, PB_E_SYSTEM, "slots of a shape that cannot be; please report it");
}

int pb_tile_pool_create(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                        int (*check)(void *context, struct wic_slot *slot), void *context,
                        struct pb_err *err, struct pb_tile_pool *out_pool, int *out_fd)
{
    struct layout l;
    struct pb_tile_pool pool = {0};
    const struct wic_join consumer = {.check = check, .context = context};
    if (!layout_of(shape, room, &l))
        return no_shape(err);
    int fd = pb_tile_room_file(file_bytes(&l), err);
    if (fd < 0)
        return fd;
    int rc = map(&l, fd, err, &pool);
    if (rc == 0 && join(shape, room, &l, true, &consumer, &pool) != 0)
        rc = no_shape(err);
    if (rc < 0) {
        pb_tile_pool_close(&pool);
        (void)close(fd);
        return rc;
    }
    *out_pool = pool;
    *out_fd = fd;
    return 0;
}

int pb_tile_pool_open(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                      int fd, struct pb_err *err, struct pb_tile_pool *out_pool)
{
    struct layout l;
    struct stat st;
    struct pb_tile_pool pool = {0};
    const struct wic_join nothing = {.check = NULL};
    if (!layout_of(shape, room, &l) || fstat(fd, &st) != 0 || (size_t)st.st_size != file_bytes(&l))
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "the memory for tiles is not of the size that the plan has");
    int rc = map(&l, fd, err, &pool);
    if (rc == 0 && join(shape, room, &l, false, &nothing, &pool) != 0)
        rc = no_shape(err);
    if (rc < 0) {
        pb_tile_pool_close(&pool);
        return rc;
    }
    *out_pool = pool;
    return 0;
}

void pb_tile_pool_close(struct pb_tile_pool *pool)
{
    if (pool->base != NULL)
        (void)munmap(pool->base, pool->bytes);
    *pool = (struct pb_tile_pool){0};
}
