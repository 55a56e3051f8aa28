/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* SEEK_HOLE and SEEK_DATA report space that was reserved and never written as a hole, but not
 * pages that are only in the cache. FIEMAP then distinguishes a reserved range (an extent marked
 * as unwritten) from a true hole, which is how 'cp --sparse' stores zeros. */
#include "pipeline/io/file_holes.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EXTENTS 16 /* entries of one FIEMAP call */

/* lseek within the part, limited to its end. Negative: see errno. */
static int64_t seek(const struct pb_file_holes *holes, uint64_t at, int what)
{
    const struct pb_file_part *file = &holes->file;
    off_t found = lseek(file->fd, (off_t)(file->base + at), what);
    uint64_t to = found < 0 ? 0 : (uint64_t)found - file->base;
    return found < 0 ? -1 : (int64_t)(to < file->bytes ? to : file->bytes);
}

void pb_file_holes_init(struct pb_file_holes *holes, const struct pb_file_part *file)
{
    *holes = (struct pb_file_holes){.file = *file};
    int64_t first = file->bytes > 0 && !file->is_growing ? seek(holes, 0, SEEK_HOLE) : -1;
    holes->any = first >= 0 && (uint64_t)first < file->bytes;
}

/* Makes the segment that contains `at` the current one. */
static void find_segment(struct pb_file_holes *holes, uint64_t at)
{
    if (at >= holes->from && at < holes->to)
        return;
    int64_t data = seek(holes, at, SEEK_DATA);
    holes->from = at;
    holes->is_hole = data >= 0 ? (uint64_t)data > at : errno == ENXIO;
    int64_t end = holes->is_hole ? data : seek(holes, at, SEEK_HOLE);
    holes->to = end > (int64_t)at ? (uint64_t)end : holes->file.bytes;
    if (holes->to <= at)
        holes->to = at + 1;
}

static bool is_reserved(int fd, uint64_t at, uint64_t bytes)
{
    union {
        struct fiemap map;
        char room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
    } ask;
    const uint64_t end = at + bytes;
    while (at < end) {
        memset(&ask, 0, sizeof ask);
        ask.map.fm_start = at;
        ask.map.fm_length = end - at;
        ask.map.fm_extent_count = EXTENTS;
        if (ioctl(fd, FS_IOC_FIEMAP, &ask.map) < 0 || ask.map.fm_mapped_extents == 0)
            return false;
        for (uint32_t i = 0; i < ask.map.fm_mapped_extents; i++) {
            const struct fiemap_extent *extent = &ask.map.fm_extents[i];
            if (extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
                return true;
            if ((extent->fe_flags & FIEMAP_EXTENT_LAST) || extent->fe_length == 0)
                return false;
            at = extent->fe_logical + extent->fe_length;
        }
    }
    return false;
}

struct pb_holes_found pb_file_holes_look(struct pb_file_holes *holes, uint64_t at, uint64_t bytes,
                                         bool ask_reserved)
{
    struct pb_holes_found found = {.data = !holes->any};
    uint64_t end = at + bytes;
    while (holes->any && at < end) {
        find_segment(holes, at);
        uint64_t to = holes->to < end ? holes->to : end;
        found.data |= !holes->is_hole;
        found.hole |= holes->is_hole;
        if (holes->is_hole && ask_reserved && !found.reserved)
            found.reserved = is_reserved(holes->file.fd, holes->file.base + at, to - at);
        at = to;
    }
    return found;
}

bool pb_file_holes_data(struct pb_file_holes *holes, uint64_t enough)
{
    uint64_t data = holes->any ? 0 : holes->file.bytes;
    for (uint64_t at = 0; holes->any && at < holes->file.bytes && data < enough; at = holes->to) {
        find_segment(holes, at);
        data += holes->is_hole ? 0 : holes->to - at;
    }
    return data >= enough;
}
