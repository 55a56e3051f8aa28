/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_FILE_H
#define PB_RASTER_FILE_H
/* File of a raster: one descriptor for all reads, the identity of the file when it was opened,
 * and the errno of the first read that failed. GDAL hides errno; a read through this descriptor
 * stores it, so that a failing disk is distinguished from a damaged file. A pb_raster_file
 * belongs to one thread at a time. */
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct pb_segment;

struct pb_raster_file {
    int fd;         /* -1 = not open */
    uint64_t base;  /* offset of the file in what fd has open: of a member of an archive; else 0 */
    uint64_t bytes; /* size of the file */
    char *path;     /* owned; as given to open */
    /* Header that readers get in place of the file's: of a TIFF whose first image is another page
     * (pb_tiff_page_head); head_bytes 0: the file's own. */
    unsigned char head[16];
    size_t head_bytes;
    /* The file as a segment that grew when it was opened; NULL: a complete file. Then `head` is its
     * future header and `bytes` its future size. */
    struct pb_segment *segment;
    bool segment_is_borrowed; /* it belongs to the file of which this one was opened again */
    int64_t mtime_ns;         /* time of the last change; of the archive if the file is a member */
    struct stat stat;         /* state of what fd has open, at open */
    size_t stem;              /* bytes that a sidecar's name shares with its file's name */
    bool handed;              /* the descriptor was not opened by path, see pb_raster_file_hand */
    int error;                /* errno of the first read that failed; 0 = no failure */
    uint64_t error_at;        /* offset of that read */
};

/* From now on "opening" path duplicates fd, because this process may not open files; the process
 * that opened it checks that the path still names that file. fd is borrowed until the next call;
 * -1 removes the path. Thread: any, while no raster is being opened. */
void pb_raster_file_hand(const char *path, int fd);
/* The same for an open file, which may be a part of one; number 0 replaces the scene's file,
 * others the file of source number - 1. NULL removes the path. */
void pb_raster_file_hand_open(size_t number, const struct pb_raster_file *file);
/* The same for source `number`, from 0; fd: a descriptor, or a negative errno that an open then
 * returns. */
void pb_raster_file_hand_source(size_t number, const char *path, int fd);

/* Registers n open files as sidecars for GDAL, each in the directory of its file. Borrowed until
 * the next call; NULL, 0: no sidecars. */
void pb_raster_file_hand_sidecars(const struct pb_raster_file *file, size_t n);
/* Returns sidecar number i; NULL if absent. Thread: any, while no sidecars are being registered. */
const struct pb_raster_file *pb_raster_file_sidecar(size_t i);

/* Opens a regular file to read. On failure *err has input.missing, input.not_tiff, or an error
 * of pb_raster_file_fail; *file needs close in any case. Thread: any. */
int pb_raster_file_open(struct pb_raster_file *file, const char *path, struct pb_err *err);
/* Opens the file of `first` through another descriptor. *file needs close in any case. */
int pb_raster_file_again(struct pb_raster_file *file, const struct pb_raster_file *first,
                         struct pb_err *err);
void pb_raster_file_close(struct pb_raster_file *file);
int64_t pb_raster_file_mtime_ns(const struct stat *stat);
/* The part borrows the file's header. */
struct pb_file_part pb_raster_file_part(const struct pb_raster_file *file);

/* Reads up to `bytes` at `at`. Returns the count, fewer only at the end of the file, or a
 * negative errno, which is stored in file->error. */
ssize_t pb_raster_file_read(struct pb_raster_file *file, uint64_t at, void *out, size_t bytes);

/* Fails with the code for an errno of open, stat or read on an input: system.files, memory, else
 * input.io. None of them is caused by the input. `what` is the failed operation: "cannot read
 * it". */
int pb_raster_file_fail(struct pb_err *err, int error, const char *path, const char *what);

/* Returns 0, or the error for file->error. */
int pb_raster_file_check(const struct pb_raster_file *file, struct pb_err *err);

/* Returns -EAGAIN with input.changed if the file at the path is no longer the one that was
 * opened (device, inode, size, mtime, ctime: a rewrite that restores the mtime changes the
 * ctime). A growing segment may change; only device and inode count. */
int pb_raster_file_unchanged(const struct pb_raster_file *file, struct pb_err *err);
#endif
