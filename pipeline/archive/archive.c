/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/limits_config.h"
#include "pipeline/archive/archive_inside.h"

#include <stdlib.h>
#include <string.h>

static int add(struct pb_archive_reader *r, struct archive_entry *entry)
{
    struct pb_archive *archive = r->archive;
    int64_t bytes = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
    bool is_folder = archive_entry_filetype(entry) == AE_IFDIR;
    if (bytes < 0 || (!is_folder && !archive_entry_size_is_set(entry)))
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_DAMAGED, "its member %.160s has no size", r->path);
    if (archive->n >= (size_t)archive->limits->archive_members)
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_LIMIT,
                               "it has more than %d members (limits.archive_members)",
                               (int)archive->limits->archive_members);
    if (archive->n == archive->room) {
        size_t room = archive->room ? 2 * archive->room : 64;
        struct pb_archive_member *more = realloc(archive->member, room * sizeof *more);
        if (more == NULL)
            return pb_fail(r->err, PB_E_MEMORY, "out of memory for the members of an archive");
        archive->member = more;
        archive->room = room;
    }
    struct pb_archive_member *member = &archive->member[archive->n];
    *member = (struct pb_archive_member){.path = strdup(r->path),
                                         .bytes = is_folder ? 0 : (uint64_t)bytes,
                                         .is_folder = is_folder,
                                         .stays = pb_archive_reader_stays(r, entry)};
    if (member->path == NULL)
        return pb_fail(r->err, PB_E_MEMORY, "out of memory for the members of an archive");
    archive->n++;
    archive->bytes += member->bytes;
    uint64_t unpacked = archive->compressed ? (uint64_t)archive_filter_bytes(r->a, 0) : 0;
    return pb_archive_reader_allow(r, unpacked > archive->bytes ? unpacked : archive->bytes);
}

static int by_path(const void *a, const void *b)
{
    return strcmp((*(struct pb_archive_member *const *)a)->path,
                  (*(struct pb_archive_member *const *)b)->path);
}

/* Folders may be repeated, because they are not unpacked. */
static int check_twice(struct pb_archive_reader *r)
{
    const struct pb_archive *archive = r->archive;
    struct pb_archive_member **sorted = calloc(archive->n + 1, sizeof *sorted);
    int rc = 0;
    if (sorted == NULL)
        return pb_fail(r->err, PB_E_MEMORY, "out of memory for the members of an archive");
    for (size_t i = 0; i < archive->n; i++)
        sorted[i] = &archive->member[i];
    qsort(sorted, archive->n, sizeof *sorted, by_path);
    for (size_t i = 1; i < archive->n && rc == 0; i++)
        if (strcmp(sorted[i - 1]->path, sorted[i]->path) == 0 &&
            !(sorted[i - 1]->is_folder && sorted[i]->is_folder))
            rc = PB_ARCHIVE_FAIL(r, PB_E_INPUT_ARCHIVE_UNSAFE, "its member %.160s is there twice",
                                 sorted[i]->path);
    free(sorted);
    return rc;
}

int pb_archive_list(struct pb_archive *archive, const struct pb_file_part *file, const char *name,
                    const struct pb_limits *limits, struct pb_err *err)
{
    struct pb_archive_reader *r = NULL;
    struct archive_entry *entry;
    archive->file = *file;
    archive->name = name;
    archive->limits = limits;
    int rc = pb_archive_reader_begin(archive, err, &r);
    if (rc < 0)
        return rc;
    while ((rc = pb_archive_reader_next(r, &entry)) == 1) {
        rc = r->path[0] != '\0' ? add(r, entry) : 0;
        if (rc < 0)
            break;
    }
    rc = rc ? rc : check_twice(r);
    pb_archive_reader_end(r);
    return rc;
}

void pb_archive_close(struct pb_archive *archive)
{
    for (size_t i = 0; i < archive->n; i++)
        free(archive->member[i].path);
    free(archive->member);
    archive->member = NULL;
    archive->n = archive->room = 0;
}
