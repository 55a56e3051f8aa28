/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The thread that makes a room also keeps it until it is taken or its time is over. */
#include "pipeline/run/served/spare_room.h"

#include "pipeline/device/device.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

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

void pb_spare_room_drop(void)
{
    struct pb_tile_room unwanted = {0};
    (void)pthread_mutex_lock(&spare.lock);
    while (spare.state == MAKING)
        (void)pthread_cond_wait(&spare.changed, &spare.lock);
    if (spare.state == KEPT) {
        unwanted = spare.room;
        spare.room = (struct pb_tile_room){0};
        become(TAKEN);
    }
    while (spare.state != NONE)
        (void)pthread_cond_wait(&spare.changed, &spare.lock);
    (void)pthread_mutex_unlock(&spare.lock);
    pb_tile_room_close(&unwanted);
}
