/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ZIP is read only by its directory at the end: data between the members that it names, or a
 * truncated ZIP, are never searched for members. Only filters that are built into libarchive are
 * used; others would start programs. */
#include "pipeline/archive/archive_inside.h"

#include "config/limits_config.h"
#include "pipeline/archive/archive_names.h"
#include "pipeline/raster/raster_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Archives with at most this many bytes are accepted at any compression ratio. */
#define RATIO_FLOOR (UINT64_C(1) << 30)

/* --- the file, as libarchive reads it ---------------------------------------------------------*/

static la_ssize_t read_some(struct archive *a, void *user, const void **out)
{
    struct pb_archive_reader *r = user;
    const struct pb_archive *archive = r->archive;
    (void)a;
    *out = r->chunk;
    if (archive->goes_on != NULL && !archive->goes_on(archive->user, r->at)) {
        r->cancelled = true;
        return ARCHIVE_FATAL;
    }
    ssize_t n = pb_file_part_read(&archive->file, r->at, r->chunk, sizeof r->chunk, NULL);
    if (n < 0) {
        r->error = (int)-n;
        return ARCHIVE_FATAL;
    }
    r->at += (uint64_t)n;
    return n;
}

static la_int64_t skip_some(struct archive *a, void *user, la_int64_t wanted)
{
    struct pb_archive_reader *r = user;
    uint64_t left = r->archive->file.bytes > r->at ? r->archive->file.bytes - r->at : 0;
    (void)a;
    if (wanted < 0 || (uint64_t)wanted > left)
        wanted = (la_int64_t)left; /* the next read detects the end */
    r->at += (uint64_t)wanted;
    return wanted;
}

static la_int64_t seek_to(struct archive *a, void *user, la_int64_t offset, int whence)
{
    struct pb_archive_reader *r = user;
    int64_t from = whence == SEEK_CUR   ? (int64_t)r->at
                   : whence == SEEK_END ? (int64_t)r->archive->file.bytes
                                        : 0;
    (void)a;
    if (offset < -from || offset > (int64_t)r->archive->file.bytes - from)
        return ARCHIVE_FATAL;
    r->at = (uint64_t)(from + offset);
    return (la_int64_t)r->at;
}

/* --- errors ----------------------------------------------------------------------------------*/

static bool says(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

static int not_recognized(struct pb_archive_reader *r)
{
    unsigned char head[4] = {0};
    ssize_t n = pb_file_part_read(&r->archive->file, 0, head, sizeof head, NULL);
    if (n == 0)
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_TRUNCATED, "the archive is empty");
    if (n == 4 && memcmp(head, "PK\3\4", 4) == 0)
        return PB_ARCHIVE_FAIL(
            r, PB_E_INPUT_TRUNCATED,
            "it begins as a ZIP file, and the list of members at its end is missing");
    return PB_ARCHIVE_FAIL(r, PB_E_INPUT_NOT_ARCHIVE, "it is neither a ZIP nor a TAR file");
}

/* Reports the last error of libarchive. */
int pb_archive_reader_fail(struct pb_archive_reader *r, const char *what)
{
    const char *text = archive_error_string(r->a);
    if (r->cancelled)
        return -ECANCELED;
    if (r->error != 0)
        return pb_raster_file_fail(r->err, r->error, r->archive->name, "cannot read it");
    text = text ? text : "libarchive reported no reason";
    if (says(text, "Unrecognized archive format"))
        return not_recognized(r);
    if (archive_errno(r->a) == ENOMEM)
        return pb_fail(r->err, PB_E_MEMORY, "out of memory for the archive %s", r->archive->name);
    if (says(text, "encrypt") || says(text, "passphrase"))
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_ARCHIVE_ENCRYPTED, "%s is encrypted", what);
    return PB_ARCHIVE_FAIL(r,
                           says(text, "truncated") || says(text, "premature") ? PB_E_INPUT_TRUNCATED
                                                                              : PB_E_INPUT_DAMAGED,
                           "%s cannot be read: %s", what, text);
}

/* --- opening ---------------------------------------------------------------------------------*/

static bool add_filters(struct archive *a)
{
    int (*const filters[])(struct archive *) = {
        archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
        archive_read_support_filter_xz, archive_read_support_filter_zstd};
    bool good = true;
    for (size_t i = 0; i < sizeof filters / sizeof *filters && good; i++) {
        struct archive *trial = archive_read_new();
        bool built_in = trial != NULL && filters[i](trial) == ARCHIVE_OK;
        (void)archive_read_free(trial);
        good = !built_in || filters[i](a) == ARCHIVE_OK;
    }
    return good;
}

void pb_archive_reader_end(struct pb_archive_reader *r)
{
    if (r == NULL)
        return;
    if (r->a != NULL)
        (void)archive_read_free(r->a);
    if (r->utf8 != (locale_t)0) {
        (void)uselocale(r->before);
        freelocale(r->utf8);
    }
    free(r);
}

int pb_archive_reader_begin(struct pb_archive *archive, struct pb_err *err,
                            struct pb_archive_reader **out)
{
    struct pb_archive_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the archive %s", archive->name);
    r->archive = archive;
    r->err = err;
    r->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (r->utf8 != (locale_t)0)
        r->before = uselocale(r->utf8);
    r->a = archive_read_new();
    bool good = r->a != NULL && add_filters(r->a) &&
                archive_read_support_format_tar(r->a) == ARCHIVE_OK &&
                archive_read_support_format_zip_seekable(r->a) == ARCHIVE_OK &&
                archive_read_set_callback_data(r->a, r) == ARCHIVE_OK &&
                archive_read_set_read_callback(r->a, read_some) == ARCHIVE_OK &&
                archive_read_set_skip_callback(r->a, skip_some) == ARCHIVE_OK &&
                archive_read_set_seek_callback(r->a, seek_to) == ARCHIVE_OK;
    int rc = 0;
    if (!good)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the archive %s", archive->name);
    else if (archive_read_open1(r->a) != ARCHIVE_OK)
        rc = pb_archive_reader_fail(r, "the archive");
    if (rc == 0)
        *out = r;
    else
        pb_archive_reader_end(r);
    return rc;
}

/* --- members -----------------------------------------------------------------------------------*/

static int unsafe(struct pb_archive_reader *r, const char *name, const char *why)
{
    return PB_ARCHIVE_FAIL(r, PB_E_INPUT_ARCHIVE_UNSAFE, "its member %.160s %s", name, why);
}

static int check_kind(struct pb_archive_reader *r, struct archive_entry *entry, const char *name)
{
    if (archive_entry_is_encrypted(entry))
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_ARCHIVE_ENCRYPTED, "its member %.160s is encrypted",
                               name);
    if (archive_entry_hardlink(entry) != NULL)
        return unsafe(r, name, "is a hard link to another one");
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
        return 0;
    case AE_IFLNK:
        return unsafe(r, name, "is a symbolic link");
    default:
        return unsafe(r, name, "is a device, a pipe or a socket");
    }
}

bool pb_archive_reader_stays(const struct pb_archive_reader *r, struct archive_entry *entry)
{
    const char *format = archive_format_name(r->a);
    if (r->archive->compressed)
        return false;
    if ((archive_format(r->a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR)
        return archive_entry_sparse_count(entry) == 0;
    return format != NULL && strstr(format, "(uncompressed)") != NULL;
}

/* Checks the declared size of a header and the bytes unpacked to find it against the limits. */
int pb_archive_reader_allow(struct pb_archive_reader *r, uint64_t bytes)
{
    const struct pb_limits *limits = r->archive->limits;
    if (bytes > limits->archive_bytes)
        return PB_ARCHIVE_FAIL(
            r, PB_E_INPUT_LIMIT,
            "its members have more than %llu bytes together (limits.archive_bytes)",
            (unsigned long long)limits->archive_bytes);
    if (bytes > RATIO_FLOOR && bytes / limits->archive_ratio > r->archive->file.bytes)
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_LIMIT,
                               "its %llu bytes hold more than %llu, over %llu for each "
                               "(limits.archive_ratio)",
                               (unsigned long long)r->archive->file.bytes,
                               (unsigned long long)bytes,
                               (unsigned long long)limits->archive_ratio);
    return 0;
}

/* Reads the next member's header. Returns 1, 0 at the end, or the error. */
int pb_archive_reader_next(struct pb_archive_reader *r, struct archive_entry **out)
{
    const char *why = NULL, *name;
    int rc = archive_read_next_header(r->a, out);
    if (rc == ARCHIVE_EOF)
        return 0;
    if (rc < ARCHIVE_WARN)
        return pb_archive_reader_fail(r, "the list of its members");
    name = archive_entry_pathname(*out);
    if (name == NULL)
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_ARCHIVE_UNSAFE, "it has a member without a name");
    if (archive_filter_count(r->a) > 2)
        return PB_ARCHIVE_FAIL(r, PB_E_INPUT_NOT_ARCHIVE, "it is compressed more than once");
    r->archive->compressed = archive_filter_code(r->a, 0) != ARCHIVE_FILTER_NONE;
    rc = check_kind(r, *out, name);
    r->path[0] = '\0';
    if (rc == 0 && strcmp(name, ".") != 0 && strcmp(name, "./") != 0 &&
        !pb_archive_member_name(name, r->archive->limits->archive_depth + 1, r->path,
                                sizeof r->path, &why))
        rc = unsafe(r, name, why);
    return rc ? rc : 1;
}
