/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_FILE_H
#define PB_RASTER_FILE_H
/* The file below a raster: one descriptor through which everything is read, the identity the file
 * had when it was opened, and the errno of the first read that failed. GDAL hides errno; a read
 * through this descriptor keeps it, so a failing disk is distinguished from a damaged file. A
 * pb_raster_file belongs to one thread at a time. */
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct pb_raster_file {
    int fd;            /* -1 = not open */
    uint64_t base;     /* where it begins in what fd has open: a member of an archive; else 0 */
    uint64_t bytes;    /* its size */
    char *path;        /* owned; as it was given */
    int64_t mtime_ns;  /* when it was changed last; of a member: the archive */
    struct stat stat;  /* of what fd has open, as of open */
    size_t stem;       /* of a sidecar: so many bytes its name has of its file's name */
    bool handed;       /* the descriptor was not opened by path, see pb_raster_file_hand */
    int error;         /* errno of the first read that failed; 0 = none did */
    uint64_t error_at; /* byte where it began */
};

/* From now on "opening" path gives copies of fd, as this process may not open it itself; the
 * process that opened it checks that the path still names that file. fd is borrowed until the next
 * call; -1 = no such path any more. Thread: any, while no raster is being opened. */
void pb_raster_file_hand(const char *path, int fd);
/* The same for an open file, which may be a part of one; as `number` 0 in place of the scene's,
 * else of source number - 1. NULL: no such path any more. */
void pb_raster_file_hand_open(size_t number, const struct pb_raster_file *file);
/* The same for source `number`, from 0; fd: a descriptor, or a negative errno, which an open then
 * returns. */
void pb_raster_file_hand_source(size_t number, const char *path, int fd);

/* From now on these n open files are there for who reads sidecars, beside the files whose
 * directories they lie in. Borrowed until the next call; NULL, 0: none. */
void pb_raster_file_hand_sidecars(const struct pb_raster_file *file, size_t n);
/* Of that number; NULL = there is none. Thread: any, while none is handed. */
const struct pb_raster_file *pb_raster_file_sidecar(size_t i);

/* Opens a regular file to read. On failure *err has input.missing, input.not_tiff, or what
 * pb_raster_file_fail says; *file needs close in any case. Thread: any. */
int pb_raster_file_open(struct pb_raster_file *file, const char *path, struct pb_err *err);
/* The file that `first` has open, through another descriptor. *file needs close in any case. */
int pb_raster_file_again(struct pb_raster_file *file, const struct pb_raster_file *first,
                         struct pb_err *err);
void pb_raster_file_close(struct pb_raster_file *file);
int64_t pb_raster_file_mtime_ns(const struct stat *stat);
struct pb_file_part pb_raster_file_part(const struct pb_raster_file *file);

/* Reads up to `bytes` at `at`: how many, fewer only at the end of the file, or a negative errno,
 * which is kept in file->error. */
ssize_t pb_raster_file_read(struct pb_raster_file *file, uint64_t at, void *out, size_t bytes);

/* Fails with the code that belongs to an errno of open, stat or read on an input: system.files,
 * memory, else input.io. None of them is caused by the input. what: "cannot read it". */
int pb_raster_file_fail(struct pb_err *err, int error, const char *path, const char *what);

/* 0, or what file->error means. */
int pb_raster_file_check(const struct pb_raster_file *file, struct pb_err *err);

/* -EAGAIN with input.changed when the file at the path is no longer the one that was opened
 * (device, inode, size, mtime, ctime: a rewrite that restores the mtime changes the ctime). */
int pb_raster_file_unchanged(const struct pb_raster_file *file, struct pb_err *err);
#endif
