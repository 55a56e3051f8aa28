/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/vector_file.h"
#include "config/base/base_name.h"
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/vector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files that were opened before the process dropped the permission; filled by one thread, at its
 * start. */
static struct {
    char path[4096];
    int fd, error;
} handed[PB_VECTOR_HANDED_MAX];
static size_t n_handed;

static int open_path(const char *path)
{
    for (size_t i = 0; i < n_handed; i++) {
        if (strcmp(handed[i].path, path) != 0)
            continue;
        errno = handed[i].error;
        return handed[i].fd >= 0 ? fcntl(handed[i].fd, F_DUPFD_CLOEXEC, 0) : -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static void hand(const char *path)
{
    if (n_handed == PB_VECTOR_HANDED_MAX || strlen(path) >= sizeof handed[0].path)
        return;
    const int fd = open_path(path);
    handed[n_handed].fd = fd;
    handed[n_handed].error = fd < 0 ? errno : 0;
    memcpy(handed[n_handed++].path, path, strlen(path) + 1);
}

/* FNV-1a of the metadata that identifies a state of a file. */
static uint64_t stamped(uint64_t stamp, const struct stat *status)
{
    const uint64_t part[] = {(uint64_t)status->st_dev, (uint64_t)status->st_ino,
                             (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
                             (uint64_t)status->st_mtim.tv_nsec};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        for (unsigned bit = 0; bit < 64; bit += 8)
            stamp = (stamp ^ (part[i] >> bit & 0xff)) * UINT64_C(0x100000001b3);
    return stamp != 0 ? stamp : 1;
}

/* Reads the complete file at fd into *out_bytes of GDAL's memory. */
static int read_all(int fd, const char *path, struct pb_err *err, GByte **out, uint64_t *out_bytes,
                    uint64_t *io_stamp)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return pb_fail_at(err, PB_E_VECTOR_MISSING, path, 0, 0, "cannot read it: %s",
                          strerror(errno));
    if (!S_ISREG(status.st_mode))
        return pb_fail_at(err, PB_E_VECTOR_MISSING, path, 0, 0, "it is no regular file");
    if ((uint64_t)status.st_size > PB_VECTOR_BYTES_MAX)
        return pb_fail_at(err, PB_E_VECTOR_LIMIT, path, 0, 0,
                          "it has %llu MiB; at most %llu are read",
                          (unsigned long long)status.st_size >> 20,
                          (unsigned long long)PB_VECTOR_BYTES_MAX >> 20);
    const size_t bytes = (size_t)status.st_size;
    GByte *data = VSIMalloc(bytes + 1);
    size_t at = 0;
    ssize_t n = 1;
    if (data == NULL)
        return pb_fail_at(err, PB_E_MEMORY, path, 0, 0, "no memory for its %zu bytes", bytes);
    while (at < bytes && (n = pread(fd, data + at, bytes - at, (off_t)at)) > 0)
        at += (size_t)n;
    if (at == bytes) {
        *out = data;
        *out_bytes = bytes;
        *io_stamp = stamped(*io_stamp, &status);
        return 0;
    }
    VSIFree(data);
    if (n == 0)
        return pb_fail_at(err, PB_E_VECTOR_INVALID, path, 0, 0,
                          "it became shorter while it was read");
    return pb_fail_at(err, PB_E_VECTOR_MISSING, path, 0, 0, "cannot read it: %s", strerror(errno));
}

/* Adds a copy of the file at the path to the folder; -ENOENT without an error: not found. */
static int add(struct pb_vector_file *file, const char *path, struct pb_err *err)
{
    char name[sizeof file->name];
    GByte *data = NULL;
    uint64_t bytes = 0;
    int fd = open_path(path);
    if (fd < 0 && errno == ENOENT)
        return -ENOENT;
    if (fd < 0)
        return pb_fail_at(err, PB_E_VECTOR_MISSING, path, 0, 0, "cannot open it: %s",
                          strerror(errno));
    int rc = read_all(fd, path, err, &data, &bytes, &file->stamp);
    (void)close(fd);
    if (rc < 0)
        return rc;
    (void)snprintf(name, sizeof name, "%s/%.255s", file->folder, pb_base_name(path));
    VSILFILE *in_memory = VSIFileFromMemBuffer(name, data, bytes, TRUE);
    if (in_memory == NULL) {
        VSIFree(data);
        return pb_fail_at(err, PB_E_MEMORY, path, 0, 0, "no memory for its %llu bytes",
                          (unsigned long long)bytes);
    }
    (void)VSIFCloseL(in_memory);
    file->bytes += bytes;
    file->siblings = CSLAddString(file->siblings, pb_base_name(path));
    return 0;
}

/* Makes the path of another file of a Shapefile, in the letter case of the .shp; returns false
 * if not found. */
static bool part_of(const char *path, size_t i, char out[4096])
{
    static const char *const endings[][2] = {
        {"shx", "SHX"}, {"dbf", "DBF"}, {"prj", "PRJ"}, {"cpg", "CPG"}};
    const size_t n = strlen(path);
    if (i >= sizeof endings / sizeof endings[0] || n <= 4 || n >= 4096 ||
        strcasecmp(path + n - 4, ".shp") != 0)
        return false;
    memcpy(out, path, n + 1);
    memcpy(out + n - 3, endings[i][path[n - 1] == 'P'], 3);
    return true;
}

/* Makes the path of the log of a GeoPackage in SQLite's WAL mode; returns false if the name is
 * too long. */
static bool log_of(const char *path, char out[4096])
{
    const int n = snprintf(out, 4096, "%s-wal", path);
    return n > 0 && n < 4096;
}

/* Refuses a log with content, because the file lacks it. */
static int check_log(const char *path, struct pb_err *err)
{
    char name[4096];
    struct stat status = {.st_size = 0};
    int fd = log_of(path, name) ? open_path(name) : -1;
    if (fd >= 0 ? fstat(fd, &status) != 0 : stat(name, &status) != 0)
        status.st_size = 0;
    if (fd >= 0)
        (void)close(fd);
    if (status.st_size == 0)
        return 0;
    return pb_fail_at(err, PB_E_VECTOR_INVALID, path, 0, 0,
                      "a program writes to it, and what it wrote is in %s-wal still; close that "
                      "program (QGIS), or copy the file with ogr2ogr",
                      pb_base_name(path));
}

void pb_vector_hand(const char *path)
{
    char part[4096];
    hand(path);
    if (log_of(path, part) && access(part, F_OK) == 0)
        hand(part);
    for (size_t i = 0; part_of(path, i, part); i++)
        hand(part);
}

int pb_vector_file_open(struct pb_vector_file *file, const char *path, struct pb_err *err)
{
    static atomic_uint last;
    char part[4096];
    memset(file, 0, sizeof *file);
    file->stamp = UINT64_C(0xcbf29ce484222325);
    (void)snprintf(file->folder, sizeof file->folder, "/vsimem/pb_vector_%u",
                   atomic_fetch_add(&last, 1) + 1);
    int rc = add(file, path, err);
    if (rc == -ENOENT)
        return pb_fail_at(err, PB_E_VECTOR_MISSING, path, 0, 0, "there is no such file");
    if (rc == 0)
        rc = check_log(path, err);
    if (rc == 0)
        (void)snprintf(file->name, sizeof file->name, "%s/%.255s", file->folder,
                       pb_base_name(path));
    for (size_t i = 0; rc == 0 && part_of(path, i, part); i++) {
        rc = add(file, part, err);
        rc = rc == -ENOENT ? 0 : rc;
    }
    return rc;
}

void pb_vector_file_blame(const struct pb_vector_file *file, const char *path, struct pb_err *err)
{
    const size_t n = strlen(file->folder);
    const char *base = pb_base_name(path);
    char text[sizeof err->msg];
    for (char *at; err != NULL && n > 0 && (at = strstr(err->msg, file->folder)) != NULL;) {
        const char *rest = at + n + (at[n] == '/');
        (void)snprintf(text, sizeof text, "%.*s%.*s%s", (int)(at - err->msg), err->msg,
                       (int)(base - path), path, rest);
        (void)snprintf(err->msg, sizeof err->msg, "%s", text);
    }
}

void pb_vector_file_close(struct pb_vector_file *file)
{
    for (int i = 0; i < CSLCount(file->siblings); i++) {
        char name[sizeof file->name];
        (void)snprintf(name, sizeof name, "%s/%.255s", file->folder, file->siblings[i]);
        (void)VSIUnlink(name);
    }
    CSLDestroy(file->siblings);
    file->siblings = NULL;
}
