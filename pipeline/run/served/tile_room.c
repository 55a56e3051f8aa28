/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/served/tile_room.h"

#include "pipeline/device/device.h"
#include "pipeline/device/mem.h"

#include "wic/device/pause.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Makes a sealed memfd of that size. Allocates all pages at once: an allocation cannot fail in the
 * middle of a run. */
static int make_file(size_t bytes, struct pb_err *err)
{
    int fd = memfd_create("pushbroom-tiles", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return pb_fail(err, errno == EMFILE || errno == ENFILE ? PB_E_SYSTEM_FILES : PB_E_MEMORY,
                       "cannot make memory for tiles: %s", strerror(errno));
    int rc = fallocate(fd, 0, 0, (off_t)bytes) != 0 ? -errno : 0;
    if (rc == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        rc = -errno;
    if (rc == 0)
        return fd;
    (void)close(fd);
    return pb_fail(err, PB_E_MEMORY, "cannot get %zu bytes of memory for tiles: %s", bytes,
                   strerror(-rc));
}

static int map(int fd, size_t bytes, struct pb_err *err, struct pb_tile_room *room)
{
    void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (slots == MAP_FAILED)
        return pb_fail(err, PB_E_MEMORY, "cannot map %zu bytes for tiles: %s", bytes,
                       strerror(errno));
    *room = (struct pb_tile_room){.slots = slots, .bytes = bytes, .fd = -1};
    return 0;
}

int pb_tile_room_make(size_t bytes, bool pin, struct pb_err *err, struct pb_tile_room *out_room)
{
    struct pb_tile_room room = {0};
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    int fd = make_file(whole, err);
    if (fd < 0)
        return fd;
    int rc = map(fd, whole, err, &room);
    if (rc < 0) {
        (void)close(fd);
        return rc;
    }
    room.fd = fd;
    rc = pin ? pb_mem_pin(room.slots, room.bytes, err) : 0;
    room.pinned = rc == 0 && pin;
    if (rc < 0) {
        pb_tile_room_close(&room);
        return rc;
    }
    *out_room = room;
    return 0;
}

int pb_tile_room_open(int fd, size_t bytes, struct pb_err *err, struct pb_tile_room *out_room)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < 0 || (size_t)st.st_size < bytes)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "the memory for tiles is not of the size that the plan has");
    return map(fd, bytes, err, out_room);
}

/* Called while no kernel is resident. */
static void unmake(void *own)
{
    struct pb_tile_room *room = own;
    if (room->pinned && !pb_device_left_behind())
        pb_mem_unpin(room->slots);
    if (!pb_device_left_behind())
        (void)munmap(room->slots, room->bytes);
    free(room);
}

void pb_tile_room_close(struct pb_tile_room *room)
{
    if (room->slots == NULL)
        return;
    if (room->fd >= 0)
        (void)close(room->fd);
    struct pb_tile_room *own = room->pinned ? malloc(sizeof *own) : NULL;
    if (own != NULL) {
        *own = *room;
        wic_gpu_free_later(unmake, own, room->bytes);
    } else if (!pb_device_left_behind()) {
        bool none = !room->pinned || wic_gpu_pause(WIC_GPU_PAUSE_NS) == 0;
        if (room->pinned && none)
            pb_mem_unpin(room->slots);
        if (none)
            (void)munmap(room->slots, room->bytes);
        if (room->pinned)
            wic_gpu_resume();
    }
    *room = (struct pb_tile_room){0};
}

/* --- the pool of a pass
 * --------------------------------------------------------------------------- */

/* Layout of a pool:
 *
 *   memfd    words of in | words of out
 *   mapping  page | words of in | page | words of out
 *   room     slots of in | slots of out
 *
 * The two pages are private to the process; the head of a channel is at the end of each. */
struct pool_layout {
    size_t in_words, out_words, in_slots, out_slots; /* bytes, whole pages */
};

static bool layout_of(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                      struct pool_layout *out)
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
    *out = (struct pool_layout){(in_words + PAGE - 1) / PAGE * PAGE,
                                (out_words + PAGE - 1) / PAGE * PAGE,
                                shape->in_slots * wic_slot_stride(shape->in_slot_bytes),
                                shape->out_slots * wic_slot_stride(shape->out_slot_bytes)};
    return true;
}

size_t pb_tile_pool_room_bytes(const struct pb_tile_pool_shape *shape)
{
    return shape->in_slots * wic_slot_stride(shape->in_slot_bytes) +
           shape->out_slots * wic_slot_stride(shape->out_slot_bytes);
}

static size_t file_bytes(const struct pool_layout *l)
{
    return l->in_words + l->out_words;
}

static int map_words(const struct pool_layout *l, int fd, struct pb_err *err,
                     struct pb_tile_pool *pool)
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
                const struct pool_layout *l, bool first, const struct wic_join *consumer,
                struct pb_tile_pool *pool)
{
    unsigned char *in = (unsigned char *)pool->base + PAGE, *out = in + l->in_words + PAGE;
    struct wic_join j = *consumer;
    j.first = first;
    j.options = (struct wic_options){.slots = shape->in_slots,
                                     .slot_bytes = shape->in_slot_bytes,
                                     .payload = room->slots,
                                     .shared = true,
                                     .spin_limit = shape->spin_limit};
    int rc = wic_channel_join(in, &j, &pool->in);
    j = (struct wic_join){.first = first};
    j.options = (struct wic_options){.slots = shape->out_slots,
                                     .slot_bytes = shape->out_slot_bytes,
                                     .payload = (unsigned char *)room->slots + l->in_slots,
                                     .shared = true,
                                     .spin_limit = shape->spin_limit};
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
    struct pool_layout l;
    struct pb_tile_pool pool = {0};
    const struct wic_join consumer = {.check = check, .context = context};
    if (!layout_of(shape, room, &l))
        return no_shape(err);
    int fd = make_file(file_bytes(&l), err);
    if (fd < 0)
        return fd;
    int rc = map_words(&l, fd, err, &pool);
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
    struct pool_layout l;
    struct stat st;
    struct pb_tile_pool pool = {0};
    const struct wic_join nothing = {.check = NULL};
    if (!layout_of(shape, room, &l) || fstat(fd, &st) != 0 || (size_t)st.st_size != file_bytes(&l))
        return pb_fail(err, PB_E_SERVICE_PROTOCOL,
                       "the memory for tiles is not of the size that the plan has");
    int rc = map_words(&l, fd, err, &pool);
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

/* --- a spare room
 * --------------------------------------------------------------------------------- */

/* The thread that makes a room also keeps it until it is taken or its time is over. */
enum state { NONE, MAKING, KEPT, TAKEN };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum state state; /* TAKEN: the thread that kept it has not ended yet */
    size_t bytes;
    int32_t device;
    struct pb_tile_room room; /* KEPT */
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void become(enum state state)
{
    spare.state = state;
    (void)pthread_cond_broadcast(&spare.changed);
}

static int make(struct pb_tile_room *out)
{
    struct pb_err err = {0};
    int rc = spare.device >= 0 ? pb_device_use(spare.device, &err) : 0;
    return rc ? rc : pb_tile_room_make(spare.bytes, spare.device >= 0, &err, out);
}

static void *keep(void *unused)
{
    struct pb_tile_room room = {0};
    struct timespec end;
    int rc = make(&room); /* no thread changes its inputs while it runs */
    (void)unused;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += PB_SPARE_ROOM_KEEP_MS / 1000;
    (void)pthread_mutex_lock(&spare.lock);
    spare.room = room;
    become(rc == 0 ? KEPT : TAKEN);
    rc = 0;
    while (spare.state == KEPT && rc != ETIMEDOUT)
        rc = pthread_cond_clockwait(&spare.changed, &spare.lock, CLOCK_MONOTONIC, &end);
    room = spare.state == KEPT ? spare.room : (struct pb_tile_room){0};
    become(NONE);
    (void)pthread_mutex_unlock(&spare.lock);
    pb_tile_room_close(&room);
    return NULL;
}

void pb_spare_room_make(size_t bytes, int32_t device)
{
    pthread_t thread;
    (void)pthread_mutex_lock(&spare.lock);
    if (spare.state == NONE && bytes > 0 && bytes <= PB_SPARE_ROOM_MOST) {
        spare.bytes = bytes;
        spare.device = device;
        spare.state = MAKING;
        if (pthread_create(&thread, NULL, keep, NULL) == 0)
            (void)pthread_detach(thread);
        else
            spare.state = NONE;
    }
    (void)pthread_mutex_unlock(&spare.lock);
}

/* Call it with the lock held. */
static bool suits(size_t least, size_t most, bool pin)
{
    return spare.bytes >= least && spare.bytes <= most && (spare.device >= 0) == pin;
}

bool pb_spare_room_take(size_t least, size_t most, bool pin, struct pb_tile_room *out_room)
{
    struct pb_tile_room unwanted = {0};
    bool taken = false;
    (void)pthread_mutex_lock(&spare.lock);
    while (spare.state == MAKING)
        (void)pthread_cond_wait(&spare.changed, &spare.lock);
    if (spare.state == KEPT) {
        taken = suits(least, most, pin);
        *(taken ? out_room : &unwanted) = spare.room;
        spare.room = (struct pb_tile_room){0};
        become(TAKEN);
    }
    (void)pthread_mutex_unlock(&spare.lock);
    pb_tile_room_close(&unwanted);
    return taken;
}
