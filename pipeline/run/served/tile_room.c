/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/served/tile_room.h"

#include "pipeline/device/device.h"
#include "pipeline/device/mem.h"

#include "wic/device/pause.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Allocates all pages at once: an allocation cannot fail in the middle of a run. */
int pb_tile_room_file(size_t bytes, struct pb_err *err)
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
    int fd = pb_tile_room_file(whole, err);
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
