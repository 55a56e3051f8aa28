/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_READER_H
#define PB_READER_H
/* A reader: the open files of a scene, with which one thread at a time reads tiles. Each reader has
 * its own datasets, because GDAL datasets must not be shared. */
#include "pipeline/plan/exchange.h"
#include "pipeline/run/stream/gate.h"
#include "pipeline/run/stream/stream.h"

struct pb_reader {
    struct pb_stream *stream;               /* NULL: not open */
    struct pb_raster *source[PB_FILES_MAX]; /* datasets; NULL for unread sources */
    struct pb_gate_reader gate;
    struct pb_part_exchange parts;
    uint64_t parked;
    uint32_t unit, number; /* the tile that was begun last */
    bool has_next;         /* this reader reads tile `next` of unit `next_unit` next */
    uint32_t next_unit, next;
};

/* A tile after reading. */
struct pb_tile_read {
    struct pb_tile tile;
    bool passes; /* true: to be computed; false: left out by a gate, without a slot */
    bool has_slot;
    /* With the tile in `user`. It is a slot of stream->in; without channels the caller sets data
     * and user before. */
    struct wic_slot slot;
    struct pb_tile_in in; /* planes in the slot */
};

/* reader: zeroed; must be closed also after a failure. */
int pb_reader_open(struct pb_reader *reader, struct pb_stream *stream, struct pb_err *err);
void pb_reader_close(struct pb_reader *reader); /* zeroed is fine */
/* Reads a tile of a unit of the visiting order. 0, or a code that ends the thread; *err is filled
 * if it is a failure. */
int pb_reader_tile(struct pb_reader *reader, uint32_t unit, uint32_t number, struct pb_err *err,
                   struct pb_tile_read *read);
/* Waits until the first of `rows` lines of the tiles' grid from `line` can be computed. Returns the
 * count of those that can, at least 1; or a code that ends the thread. */
int pb_reader_await(struct pb_reader *reader, int32_t line, int32_t rows, struct pb_err *err);
/* Reads the pixels of a strip (pb_plan_strip) into `slot`, memory of an input slot. */
int pb_reader_rows(struct pb_reader *reader, const struct pb_tile *rows, void *slot,
                   struct pb_err *err);
/* Returns true if a file that is read without a cache reads faster when the reader's next tile is
 * known: `next` if has_next, or the next one of the visiting order if there is no other reader. */
bool pb_reader_is_ahead(const struct pb_reader *reader);
/* Delivers the result of a left-out tile to the sinks: no pixel is valid. worker <
 * pb_plan_sink_workers. */
int pb_reader_leave_out(struct pb_stream *stream, const struct pb_tile *tile, uint32_t worker,
                        struct pb_err *err);
#endif
