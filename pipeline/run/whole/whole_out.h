/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_OUT_H
#define PB_WHOLE_OUT_H
/* What is made of computed tiles on the device. A row of tiles lies in a strip; when the last of
 * them is queued, each consumer of whole_out.c's table queues its work on the row. Private to
 * run/whole.
 *
 * The encoder's work goes in batches to the collector, which brings the blocks to slots of results
 * (run/stream/block_slot.h). Overviews of a product are made level by level: the rows of a level
 * that are on the device are passed on when there are as many as a row of its blocks has, or no
 * more come.
 */
#include "kernels/codec/halve_device.h"
#include "pipeline/run/stream/block_slot.h"

struct pb_exec_whole;

enum {
    WHOLE_FOUND_AT = 16, /* of the results of a batch, behind the bytes that are taken */
    WHOLE_DOWNS = 8      /* slots of results to which blocks are on their way */
};

/* A level of overviews: rows base .. end of it are there. */
struct whole_level {
    struct pb_out_level size;
    float *pixels;
    int32_t base, end;
};

struct whole_block {
    uint32_t level, col, row;
};

/* A product whose blocks are made. */
struct whole_made {
    const struct pb_plan_made *plan;
    struct whole_level level[PB_OUT_LEVELS]; /* from 1 */
};

/* What the encoder gets and leaves, by slot of the channel of batches. */
struct whole_batch {
    unsigned char *workspace, *encoded, *found; /* of the device */
    unsigned char *told;                        /* the host's copy of `found` */
    struct pb_encode_block *input;              /* a table */
    struct whole_block *block;
};

/* In the user bytes of that channel. */
struct whole_batch_note {
    uint32_t made, layer, n;
    uint32_t first_tile, n_tiles; /* of struct pb_block_slot */
};

struct whole_out {
    unsigned char *strips; /* of the device */
    uint32_t *lane_row;    /* the row of the last tile of each lane, from 1 */
    struct whole_made made[PB_OUT_MADE];
    struct whole_batch batch[PB_OUT_BATCHES];
    struct pb_halve_part *parts; /* a table: of each strip, parts_each */
    uint32_t parts_each;
    /* The dispatcher's: of the row that is worked on, and of its blocks those of a product. */
    uint32_t row, n_parts, n_ready;
    struct pb_halve_part *row_parts;
    struct pb_encode_block *ready;
    struct whole_block *ready_block;
};

/* Memory and tables; nothing where no product is made on the device. */
int whole_out_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_out_close(struct pb_exec_whole *e);
/* Where the planes of a tile go; NULL: there are no strips. */
float *whole_out_place(const struct pb_exec_whole *e, uint32_t tile);
/* Before a tile is queued on the lane: what is made of the row that was there goes before it. */
int whole_out_before(struct pb_exec_whole *e, uint32_t lane, uint32_t tile, struct pb_err *err);
/* The tile is queued. After the last one of a row: the consumers' work. Thread: dispatcher. */
int whole_out_after(struct pb_exec_whole *e, uint32_t tile, struct pb_err *err);

/* whole_encode.c */
int whole_encode_open(struct pb_exec_whole *e, struct pb_err *err);
void whole_encode_close(struct pb_exec_whole *e);
int whole_encode_row(struct pb_exec_whole *e, struct pb_err *err);
static inline size_t whole_found_bytes(uint32_t n)
{
    return WHOLE_FOUND_AT + n * sizeof(struct pb_encoded);
}
#endif
