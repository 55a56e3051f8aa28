/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A member of a plain TAR, or one that a ZIP stores uncompressed, is used in the archive: its
 * bytes begin at libarchive's position after the header. They are compared with the data that
 * libarchive then returns, and a member that differs is unpacked. Therefore a Landsat bundle
 * needs no disk space and no time. The check sum of a ZIP's member is computed in both cases; a
 * TAR has no check sum of data. */
#include "pipeline/archive/archive_inside.h"

#include "pipeline/io/io_watch.h"
#include "pipeline/raster/raster_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define COMPARE_BYTES 4096u
#define ALIGN_BYTES   4096u

struct taking {
    struct pb_archive_reader *reader;
    int room;
    const char *room_name;
    uint64_t room_end; /* offset of the next member */
    uint64_t least_free, still_wanted;
    bool has_space; /* the disk space was checked */
    char what[200];
};

static int full(struct taking *t, uint64_t free_bytes)
{
    const unsigned long long needed_mb = t->still_wanted / 1000000 + 1;
    return pb_fail(t->reader->err, PB_E_OUTPUT_FULL,
                   "unpacking %.200s needs %llu MB below %.200s, where %llu MB are free%s",
                   t->reader->archive->name, needed_mb, t->room_name,
                   (unsigned long long)(free_bytes / 1000000),
                   t->least_free > 0 ? " beyond service.retention.min_free" : "");
}

static int check_space(struct taking *t)
{
    struct statvfs fs;
    if (t->has_space || fstatvfs(t->room, &fs) != 0)
        return 0;
    uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    free_bytes = free_bytes > t->least_free ? free_bytes - t->least_free : 0;
    t->has_space = free_bytes >= t->still_wanted;
    return t->has_space ? 0 : full(t, free_bytes);
}

static int write_at(struct taking *t, uint64_t at, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        pb_io_begin();
        ssize_t n = pwrite(t->room, from + done, bytes - done, (off_t)(at + done));
        pb_io_end();
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno == ENOSPC || errno == EDQUOT)
            return full(t, 0);
        else if (errno != EINTR)
            return pb_fail(t->reader->err, PB_E_OUTPUT_WRITE, "cannot write below %.300s: %s",
                           t->room_name, strerror(errno));
    }
    return 0;
}

static bool lies_at(const struct pb_archive *archive, uint64_t at, uint64_t bytes, const void *data,
                    size_t n)
{
    unsigned char found[COMPARE_BYTES];
    if (at > archive->file.bytes || bytes > archive->file.bytes - at)
        return false;
    n = n < sizeof found ? n : sizeof found;
    return pb_file_part_read(&archive->file, at, found, n, NULL) == (ssize_t)n &&
           memcmp(found, data, n) == 0;
}

static int too_long(struct taking *t, uint64_t bytes)
{
    return PB_ARCHIVE_FAIL(t->reader, PB_E_INPUT_ARCHIVE_UNSAFE,
                           "%s unpacks to more than the %llu bytes that it declares", t->what,
                           (unsigned long long)bytes);
}

/* Copies all of a member's data; begins: their offset in the archive if stored there. */
static int take_data(struct taking *t, struct pb_archive_wish *wish, struct archive_entry *entry,
                     uint64_t begins)
{
    struct pb_archive_reader *r = t->reader;
    const bool stays = pb_archive_reader_stays(r, entry);
    const bool is_sparse = archive_entry_sparse_count(entry) > 0;
    const bool is_tar = (archive_format(r->a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    const uint64_t bytes = wish->part.bytes;
    const void *data;
    size_t n;
    la_int64_t offset;
    uint64_t end = 0;
    int rc = 0, got;
    while ((got = archive_read_data_block(r->a, &data, &n, &offset)) == ARCHIVE_OK) {
        if (offset < 0 || (uint64_t)offset > bytes || n > bytes - (uint64_t)offset)
            return too_long(t, bytes);
        if (end == 0 && offset == 0 && n > 0)
            wish->in_place = stays && lies_at(r->archive, begins, bytes, data, n);
        if (wish->in_place && is_tar)
            return 0;
        rc = wish->in_place || n == 0 ? 0 : check_space(t);
        if (rc == 0 && !wish->in_place)
            rc = write_at(t, t->room_end + (uint64_t)offset, data, n);
        if (rc < 0)
            return rc;
        end = (uint64_t)offset + n;
    }
    if (got != ARCHIVE_EOF)
        return pb_archive_reader_fail(r, t->what);
    return end == bytes || is_sparse
               ? 0
               : PB_ARCHIVE_FAIL(r, PB_E_INPUT_TRUNCATED, "%s ends after %llu of its %llu bytes",
                                 t->what, (unsigned long long)end, (unsigned long long)bytes);
}

static int take_member(struct taking *t, struct pb_archive_wish *wish, struct archive_entry *entry)
{
    struct pb_archive_reader *r = t->reader;
    const struct pb_archive *archive = r->archive;
    const struct pb_archive_member *member = &archive->member[wish->member];
    const uint64_t begins = (uint64_t)archive_filter_bytes(r->a, 0);
    (void)snprintf(t->what, sizeof t->what, "its member %.160s", member->path);
    wish->part = (struct pb_file_part){.fd = t->room, .base = t->room_end, .bytes = member->bytes};
    int rc = take_data(t, wish, entry, begins);
    if (rc < 0)
        return rc;
    if (wish->in_place)
        wish->part = (struct pb_file_part){
            .fd = archive->file.fd, .base = archive->file.base + begins, .bytes = member->bytes};
    else
        t->room_end += (member->bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    t->still_wanted -= member->stays ? 0 : member->bytes;
    return 0;
}

/* Sets the length of the file, which may end with a hole. */
static int finish_room(const struct taking *t)
{
    if (t->room_end == 0 || ftruncate(t->room, (off_t)t->room_end) == 0)
        return 0;
    return pb_fail(t->reader->err, PB_E_OUTPUT_WRITE, "cannot write below %.300s: %s", t->room_name,
                   strerror(errno));
}

/* Checks that each member is the listed one, and therefore within the limits, even if it is
 * skipped. */
static int check_listed(struct pb_archive_reader *r, size_t i, struct archive_entry *entry)
{
    const struct pb_archive *archive = r->archive;
    bool is_folder = archive_entry_filetype(entry) == AE_IFDIR;
    if (i < archive->n && strcmp(archive->member[i].path, r->path) == 0 &&
        archive->member[i].is_folder == is_folder &&
        (is_folder || (uint64_t)archive_entry_size(entry) == archive->member[i].bytes))
        return 0;
    return PB_ARCHIVE_FAIL(r, PB_E_INPUT_CHANGED, "the archive was changed while it was read");
}

static int by_member(const void *a, const void *b)
{
    size_t left = (*(struct pb_archive_wish *const *)a)->member;
    size_t right = (*(struct pb_archive_wish *const *)b)->member;
    return (left > right) - (left < right);
}

/* Copies in the order of the archive. Two wishes may refer to one member. */
static int take_all(struct taking *t, struct pb_archive_wish **sorted, size_t n)
{
    struct archive_entry *entry;
    size_t at = 0;
    int rc = 1;
    for (size_t i = 0; at < n && rc == 1;) {
        rc = pb_archive_reader_next(t->reader, &entry);
        if (rc != 1 || t->reader->path[0] == '\0')
            continue;
        rc = check_listed(t->reader, i, entry);
        if (rc < 0)
            break;
        rc = 1;
        if (i++ != sorted[at]->member)
            continue;
        rc = take_member(t, sorted[at++], entry);
        for (; rc == 0 && at < n && sorted[at]->member == sorted[at - 1]->member; at++) {
            sorted[at]->part = sorted[at - 1]->part;
            sorted[at]->in_place = sorted[at - 1]->in_place;
        }
        rc = rc ? rc : 1;
    }
    if (rc == 0)
        return PB_ARCHIVE_FAIL(t->reader, PB_E_INPUT_CHANGED,
                               "the archive was changed while it was read");
    return rc < 0 ? rc : finish_room(t);
}

int pb_archive_take(struct pb_archive *archive, struct pb_archive_wish *wish, size_t n, int room,
                    const char *room_name, uint64_t least_free, struct pb_err *err)
{
    struct taking t = {.room = room, .room_name = room_name, .least_free = least_free};
    struct pb_archive_wish **sorted = calloc(n + 1, sizeof *sorted);
    if (sorted == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the members of an archive");
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &wish[i];
        wish[i].in_place = false;
    }
    qsort(sorted, n, sizeof *sorted, by_member);
    for (size_t i = 0; i < n; i++) {
        const struct pb_archive_member *member = &archive->member[sorted[i]->member];
        bool again = i > 0 && sorted[i]->member == sorted[i - 1]->member;
        t.still_wanted += again || member->stays ? 0 : member->bytes;
    }
    int rc = pb_archive_reader_begin(archive, err, &t.reader);
    rc = rc ? rc : take_all(&t, sorted, n);
    pb_archive_reader_end(t.reader);
    free(sorted);
    return rc;
}
