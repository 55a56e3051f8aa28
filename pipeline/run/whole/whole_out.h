/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_OUT_H
#define PB_WHOLE_OUT_H
/* Products of computed tiles on the device. A row of tiles is in a strip; when the last of
 * them is queued, each consumer of whole_out.c's table queues its work on the row. Private to
 * run/whole.
 *
 * The encoder's work is sent in batches to the collector, which copies the blocks to slots of
 * results (run/stream/block_slot.h). Overviews of a product are made level by level: the rows of a
 * level that are on the device are processed when they fill a row of its blocks, or at the last
 * row.
 */
#include "kernels/codec/halve_device.h"
#include "pipeline/run/stream/block_slot.h"

struct pb_exec_whole;

enum {
    /* bytes; offset of a batch's results, after the count of used bytes */
    WHOLE_FOUND_AT = 16,
    WHOLE_DOWNS = 8 /* slots of results with copies of blocks in flight */
};

/* A level of overviews, of which rows base .. end are on the device. */
struct whole_level {
    struct pb_out_level size;
    float *pixels;
    int32_t base, end;
};

struct whole_block {
    uint32_t level, col, row;
};

/* A product whose blocks are made on the device. */
struct whole_made {
    const struct pb_plan_made *plan;
    struct whole_level level[PB_OUT_LEVELS]; /* from 1 */
    struct pb_paint_step *steps;             /* in device memory; NULL: it is not painted */
    /* For each band a table of its values in device memory, table_bytes apart; NULL: they are not
     * counted. */
    unsigned char *tables;
    size_t table_bytes;
};

/* Input and output of the encoder, by slot of the channel of batches. */
struct whole_batch {
    unsigned char *workspace, *encoded, *found; /* in device memory */
    unsigned char *told;                        /* host copy of `found` */
    struct pb_encode_block *input;              /* a table */
    struct whole_block *block;
};

/* User bytes of a slot of that channel. */
struct whole_batch_note {
    uint32_t made, layer, n;
    bool values;                  /* the batch has the values of a band (whole_values.c) */
    uint32_t first_tile, n_tiles; /* as in struct pb_block_slot */
};

/* Thread: dispatcher. */
struct whole_out {
    unsigned char *strips; /* in device memory */
    uint32_t *lane_row;    /* row of the last tile of each lane, from 1 */
    struct whole_made made[PB_OUT_PRODUCTS];
    struct pb_value_table *spare; /* in device memory: for making tables fit */
    struct pb_halve_part *parts;  /* a table: parts_each for each strip */
    uint32_t parts_each;
    /* The current row, and the blocks of one product in it. */
    uint32_t row, n_parts, n_ready;
    struct pb_halve_part *row_parts;
    struct pb_encode_block *ready;
    struct whole_block *ready_block;
};

/* Allocates memory and tables; nothing if no product is made on the device. */
int whole_out_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_out_close(struct pb_exec_whole *e);
/* Device address of the planes of a tile; NULL: no strips. */
float *whole_out_place(const struct pb_exec_whole *e, uint32_t tile);
/* Call it before a tile is queued on the lane: the tile waits for the products of the strip's old
 * row. */
int whole_out_before(struct pb_exec_whole *e, uint32_t lane, uint32_t tile, struct pb_err *err);
/* Call it after the tile is queued. After the last one of a row it queues the consumers' work.
 * Thread: dispatcher. */
int whole_out_after(struct pb_exec_whole *e, uint32_t tile, struct pb_err *err);

/* whole_values.c: tables of the values of a product's bands. open: empty tables; nothing unless
 * values are counted. add: queues counting of a batch of parts. list: queues the parts of a band's
 * table as the results of a batch; pb_value_table_parts() of them. */
int whole_values_open(struct pb_exec_whole *e, uint32_t made, struct pb_err *err);
int whole_values_add(struct pb_exec_whole *e, const struct whole_batch_note *note,
                     const struct whole_batch *batch, struct pb_err *err);
int whole_values_list(struct pb_exec_whole *e, const struct whole_batch_note *note,
                      const struct whole_batch *batch, struct pb_err *err);

/* whole_encode.c */
int whole_encode_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_encode_close(struct pb_exec_whole *e);
int whole_encode_row(struct pb_exec_whole *e, struct pb_err *err);
static inline size_t whole_found_bytes(uint32_t n)
{
    return WHOLE_FOUND_AT + n * sizeof(struct pb_encoded);
}
#endif
