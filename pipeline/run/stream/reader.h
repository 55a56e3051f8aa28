/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_READER_H
#define PB_READER_H
/* A reader: the open files of a scene, with which one thread at a time reads tiles. Each reader has
 * datasets of its own, as GDAL's are not to be shared. */
#include "pipeline/plan/part_exchange.h"
#include "pipeline/run/stream/gate.h"
#include "pipeline/run/stream/stream.h"

struct pb_reader {
    struct pb_stream *stream;               /* NULL: it is not open */
    struct pb_raster *source[PB_FILES_MAX]; /* datasets; NULL where nothing is read */
    struct pb_gate_reader gate;
    struct pb_part_exchange parts;
    uint64_t parked;
    bool has_next; /* tile `next` of unit `next_unit` is the one to be read next with it */
    uint32_t next_unit, next;
};

/* A tile that was read. */
struct pb_tile_read {
    struct pb_tile tile;
    bool passes; /* it is to be computed; else a gate leaves it out, and there is no slot */
    bool has_slot;
    struct wic_slot slot; /* with the tile in `user`; of stream->in, or set by the caller before,
                             data and user, where the stream has no channels */
    struct pb_tile_in in; /* in the slot */
};

/* reader: zeroed; to be closed also after a failure. */
int pb_reader_open(struct pb_reader *reader, struct pb_stream *stream, struct pb_err *err);
void pb_reader_close(struct pb_reader *reader); /* zeroed is fine */
/* Reads a tile of a unit of the visiting order. 0, or what ends the thread; *err is filled where
 * that is a failure. */
int pb_reader_tile(struct pb_reader *reader, uint32_t unit, uint32_t number, struct pb_err *err,
                   struct pb_tile_read *read);
/* Whether a file gains from being told what is read next; and tells them all: the tile `next`, or,
 * where there is none, that it is unknown. */
bool pb_reader_is_ahead(const struct pb_reader *reader);
void pb_reader_expect(struct pb_reader *reader);
/* Hands the result of a tile that is left out to the sinks: no pixel is valid. worker <
 * pb_plan_sink_workers. */
int pb_reader_leave_out(struct pb_stream *stream, const struct pb_tile *tile, uint32_t worker,
                        struct pb_err *err);
#endif
