/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a ZIP or TAR: refused with a code and clean words, or a list of members whose names
 * stay inside, once each, within the limits; and members that are taken are within the archive, or
 * within the unpacked files, and have the size that was declared. */
#include "config/limits_config.h"
#include "fuzz_check.h"
#include "pipeline/archive/archive.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MEMBERS = 64, DEPTH = 4, WISHES = 8, BYTES = 1 << 20 };

static const struct pb_limits limits = {.archive_members = MEMBERS,
                                        .archive_depth = DEPTH,
                                        .archive_bytes = BYTES,
                                        .archive_ratio = 100};

static void check_name(const char *path)
{
    int depth = 0;
    require(path[0] != '\0' && path[0] != '/', "an empty or an absolute name");
    for (const char *at = path; *at != '\0'; depth++) {
        size_t n = strcspn(at, "/");
        require(n > 0 && n <= 255, "the length of a component");
        require(!(n == 1 && at[0] == '.') && !(n == 2 && at[0] == '.' && at[1] == '.'), "dots");
        require(at[n] == '\0' || at[n + 1] != '\0', "a slash at the end");
        at += n + (at[n] == '/');
    }
    require(depth <= DEPTH + 1, "depth");
}

static void check_list(const struct pb_archive *archive)
{
    uint64_t bytes = 0;
    require(archive->n <= MEMBERS, "members");
    for (size_t i = 0; i < archive->n; i++) {
        const struct pb_archive_member *member = &archive->member[i];
        check_name(member->path);
        bytes += member->bytes;
        for (size_t k = 0; k < i; k++)
            require(strcmp(member->path, archive->member[k].path) != 0 ||
                        (member->is_folder && archive->member[k].is_folder),
                    "a name twice");
    }
    require(bytes <= BYTES && bytes == archive->bytes, "bytes");
}

static void take(struct pb_archive *archive, int room)
{
    struct pb_archive_wish wish[WISHES];
    struct pb_err err = {0};
    struct stat st;
    size_t n = 0;
    for (size_t i = archive->n; i-- > 0 && n < WISHES;)
        if (!archive->member[i].is_folder)
            wish[n++] = (struct pb_archive_wish){.member = i};
    if (pb_archive_take(archive, wish, n, room, "room", 0, &err) < 0) {
        check_err(&err);
        return;
    }
    require(fstat(room, &st) == 0, "fstat");
    for (size_t i = 0; i < n; i++) {
        const struct pb_file_part *part = &wish[i].part;
        const uint64_t size = wish[i].in_place ? archive->file.bytes : (uint64_t)st.st_size;
        require(part->fd == (wish[i].in_place ? archive->file.fd : room), "the descriptor");
        require(part->bytes == archive->member[wish[i].member].bytes, "the size of a member");
        require(part->base <= size && part->bytes <= size - part->base, "a member's place");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_archive archive = {.n = 0};
    struct pb_err err = {0};
    int fd = memfd_create("fuzz", MFD_CLOEXEC), room = memfd_create("room", MFD_CLOEXEC);
    require(fd >= 0 && room >= 0 && write(fd, data, bytes) == (ssize_t)bytes, "no memory file");
    const struct pb_file_part part = {.fd = fd, .bytes = bytes};
    if (pb_archive_list(&archive, &part, "fuzz", &limits, &err) < 0) {
        check_err(&err);
    } else {
        check_list(&archive);
        take(&archive, room);
    }
    pb_archive_close(&archive);
    (void)close(room);
    (void)close(fd);
    return 0;
}
