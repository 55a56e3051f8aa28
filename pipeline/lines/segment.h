/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SEGMENT_H
#define PB_SEGMENT_H
/* A scene that arrives line by line: an uncompressed BigTIFF to which one process appends groups of
 * lines while others read those that are complete. The file is a TIFF only after it was closed:
 * until then its first bytes are PB_SEGMENT_MAGIC and other programs refuse it. Next to the header
 * the file has a state that all processes map: count of complete lines, with a futex on which
 * readers are parked, and times and gaps of all lines. The state stays in the closed file.
 *
 * The planes are separate, in strips of PB_SEGMENT_ROWS rows; the strips of all bands of the same
 * rows follow each other, hence the file grows from its top to its end. A gap, which is a line that
 * never arrived, has the nodata value in all bands: the closed file has the same values as the
 * growing one. All space is reserved at creation: on a full disk the creation fails.
 *
 * A struct pb_segment is of one process. One thread appends; any threads wait and read. The reader
 * trusts the writer's lines, and checks the declared sizes against the file. */
#include "config/base/err.h"
#include "config/input_values.h"
#include "kernels/view.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_SEGMENT_MAGIC      "PBLINES1"
#define PB_SEGMENT_HEAD_BYTES 16
#define PB_SEGMENT_ROWS       16
#define PB_SEGMENT_LINES_MAX  (1 << 20)
/* For pb_segment_wait: no time limit. */
#define PB_SEGMENT_NO_DEADLINE INT64_MAX

struct pb_segment;

struct pb_segment_spec {
    int32_t width, height; /* height: lines for which space is reserved */
    int32_t n_bands;       /* 1 .. PB_BANDS_MAX */
    enum pb_type type;
    bool has_nodata; /* required for gaps */
    double nodata;
    bool has_transform;
    double transform[6]; /* GDAL order, of the first line */
    uint16_t epsg;       /* 0 = no coordinate system */
    bool is_geographic;  /* true if the coordinates of `epsg` are degrees */
};

enum pb_segment_state {
    PB_SEGMENT_OPEN,
    PB_SEGMENT_CLOSED,    /* complete, perhaps with fewer lines than its spec has */
    PB_SEGMENT_ABANDONED, /* its writer failed; pb_segment_recover may continue it */
};

/* Facts of a line. */
struct pb_segment_line {
    int64_t acquired_ns;  /* UTC since 1970; 0 = unknown */
    int64_t published_ns; /* wic_now_ns() of its writer when the line arrived; 0 = unknown */
    uint32_t is_gap;
    uint32_t spare;
};

/* Lines to append: sample s of band b of line i is at data + i * line_bytes + b * band_bytes +
 * s * size of the type. */
struct pb_segment_group {
    const void *data;
    size_t line_bytes, band_bytes;
    uint32_t n;
    const int64_t *acquired_ns; /* n times; NULL = unknown */
    int64_t published_ns;       /* 0: the time of the call */
};

/* Creates the file, which must not exist, and becomes its writer. Returns -EEXIST; output.full and
 * other errors of the disk; input.limit: the sizes are out of range. */
int pb_segment_create(const char *path, const struct pb_segment_spec *spec, struct pb_err *err,
                      struct pb_segment **out_segment);
/* Continues a segment whose writer is gone: its complete lines stay, the next line to append is the
 * one after them. Returns -EBUSY if the writer lives, -EALREADY if the segment is closed, -EINVAL
 * if the file is no segment. */
int pb_segment_recover(const char *path, struct pb_err *err, struct pb_segment **out_segment);
/* Opens a segment, open or closed, to read; the descriptor is borrowed for the call. -EINVAL: the
 * file is no segment. */
int pb_segment_open(int fd, const char *path, struct pb_err *err, struct pb_segment **out_segment);
/* Returns 1 if the file is a segment that is not closed, 0 if it is not, or a negative errno if it
 * cannot be read. */
int pb_segment_is_growing(int fd);
/* The same for a segment that is closed: its lines have times. */
int pb_segment_is_closed(int fd);
/* Ends the use of a segment; of a writer whose segment is open: abandons it. NULL is fine. */
void pb_segment_destroy(struct pb_segment *segment);

/* Appends as many lines as still fit, and wakes the readers. Returns their count; or negative and
 * *err: the disk failed, no line was added, and the call may be repeated. Writer only. */
int pb_segment_append(struct pb_segment *segment, const struct pb_segment_group *group,
                      struct pb_err *err);
/* The same for n lines that never arrived; input.limit: there is no nodata value. */
int pb_segment_gap(struct pb_segment *segment, uint32_t n, struct pb_err *err);
/* Makes the file a TIFF of the complete lines, and wakes the readers. The data reach the disk at
 * pb_segment_sync. -ENODATA: it has no line. Writer only. */
int pb_segment_close(struct pb_segment *segment, struct pb_err *err);
/* Writes the file to the disk; takes long. Thread: any. */
int pb_segment_sync(const struct pb_segment *segment, struct pb_err *err);

const struct pb_segment_spec *pb_segment_spec(const struct pb_segment *segment);
enum pb_segment_state pb_segment_state(const struct pb_segment *segment);
/* Count of complete lines; the pixels and facts of these never change. */
int32_t pb_segment_lines(const struct pb_segment *segment);
/* Facts of a complete line. */
struct pb_segment_line pb_segment_line(const struct pb_segment *segment, int32_t line);
/* Header of the complete file as if all lines of the spec were there, in place of its first
 * PB_SEGMENT_HEAD_BYTES bytes. */
void pb_segment_head(const struct pb_segment *segment, unsigned char out[PB_SEGMENT_HEAD_BYTES]);

/* Size of that file in bytes, with the rows of the last strips. */
uint64_t pb_segment_bytes(const struct pb_segment *segment);

/* Waits until `lines` lines are complete. Returns 0; -ENODATA: closed or abandoned with fewer;
 * -ETIMEDOUT: deadline_ns (on wic_now_ns) passed; -ECANCELED: pb_segment_abort was called. Thread:
 * any. */
int pb_segment_wait(const struct pb_segment *segment, int32_t lines, int64_t deadline_ns);
/* Waits until the segment is closed or abandoned. Results as above; 0 also if it was abandoned. */
int pb_segment_wait_end(const struct pb_segment *segment, int64_t deadline_ns);
/* Makes all present and future waits of this process end. Thread: any. */
void pb_segment_abort(struct pb_segment *segment);
/* Time for which a wait polls before it parks, in ns; 0 at first. Call before the first wait. */
void pb_segment_spin(struct pb_segment *segment, int64_t spin_ns);
/* Copies pixels of complete lines of band `band`, from 1, in the segment's type. Thread: any. */
void pb_segment_copy(const struct pb_segment *segment, int32_t band, const struct pb_rect *rect,
                     void *out, size_t row_bytes);
#endif
