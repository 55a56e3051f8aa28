/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_MAP_H
#define PB_WHOLE_MAP_H
/* Order in which the stored blocks of a pass's sources are sent to a device, and the addresses of
 * all data there. Arithmetic; made before the first tile, read-only afterwards, any thread.
 *
 * Part: one of the parts of a tile (pipeline/plan/exchange.h). The parts of a tile are sent
 * one after the other. Piece: a block of a source as it is stored, some rows of one that is not
 * compressed, or a plane of a block that the host decodes; the planes of one block follow each
 * other. Each piece is sent to the device once, in the order of the first tile that needs it.
 * Group: pieces decoded by one launch. Load: content of one slot, either stored pieces of one group
 * or a block that a core has decoded. Band: rows of tiles whose pixels are on the device together:
 * one band if all of the scene fits, else two at a time. Pixels that a band shares with the one
 * before it are copied from there. If planes are managed memory, one band has all of the scene.
 * Lot: groups whose blocks have memory together, those of a band or, if planes are managed, as many
 * as fit; two lots at a time.
 *
 * With a gate, its pieces for some rows of tiles are sent before the other pieces of the rows above
 * these. Another piece is sent when the answers for all tiles that need it are known
 * (run/stream/gate_answers.h), unless all of these tiles are left out. */
#include "pipeline/plan/pages.h"
#include "pipeline/plan/plan.h"
#include "pipeline/raster/raw_blocks.h"

enum { PB_WHOLE_ALIGN = 256 }; /* bytes; alignment of pieces on the device and of rows of planes */

struct pb_whole_piece {
    uint64_t block; /* number in its source */
    /* Range of the stored block; bytes 0: not stored, nothing is sent. */
    uint64_t from, bytes;
    uint64_t stored_at; /* offset in its lot's memory for stored bytes */
    /* Offset in its lot's memory for decoded blocks; 0 bytes: it is not compressed. */
    uint64_t decoded_at, decoded_bytes;
    uint64_t least;       /* smallest size that it decodes to, in bytes; at most block_bytes */
    uint32_t first, last; /* first and last tile, in visiting order, that need it */
    uint32_t part;        /* part of tiles to which it belongs (pb_plan_tile_parts) */
    uint32_t turn;        /* in a pass with a gate: the gate's pieces and others take turns */
    uint32_t source, plane, group;
    struct pb_rect rect; /* its pixels that are in the image */
    bool by_host;        /* pb_raster_read makes it: samples of the plane, or bytes of the mask */
    bool is_mask;        /* it is sent to the window's mask */
    bool is_apart;       /* ... and has rows of another size than the source's pixels */
};

struct pb_whole_load {
    uint32_t first, end; /* pieces, of one group */
    /* a core has decoded it: one block, with the predictor still applied */
    bool is_decoded;
};

struct pb_whole_group {
    uint32_t first, end; /* pieces, by source; those that are not stored are last */
    uint32_t stored_end; /* end of the stored pieces */
    uint32_t band, lot;
};

struct pb_whole_lot {
    uint32_t first_group, end_group; /* empty in a band without groups */
    uint64_t stored_bytes, decoded_bytes;
    uint64_t
        decoded_from; /* decoded blocks follow stored ones in one memory, if planes are managed */
};

struct pb_whole_band {
    uint32_t first, end;                          /* tiles, in visiting order */
    int32_t y[PB_SOURCES_MAX], h[PB_SOURCES_MAX]; /* rows of each window that have memory */
    /* For each source: the row after the last decoded one, here or in a band before, of its
     * pixels and of its mask. Sources of one window may have blocks of several heights. */
    int32_t end_row[PB_FILES_MAX], mask_end_row[PB_FILES_MAX];
};

/* Planes of a window in a band's memory, of native samples, as wide as the image. */
struct pb_whole_window {
    /* Offsets for the largest band; all 0 except `at`: nothing is read. */
    uint64_t at, row_bytes, plane_bytes;
    uint64_t mask_at, mask_row_bytes; /* a byte a pixel; mask_row_bytes 0: no mask */
    int32_t image_w, image_h;
};

struct pb_whole_map {
    const struct pb_plan *plan;
    const struct pb_raw_blocks *blocks; /* blocks of each source */
    struct pb_whole_piece *piece;
    struct pb_whole_group *group;
    struct pb_whole_band *band;
    struct pb_whole_lot *lot; /* without managed planes as many as bands */
    uint32_t n_pieces, n_groups, n_bands, n_lots;
    /* For each tile, in visiting order, and each of its parts: count of groups that must be
     * decoded. */
    uint32_t *need;
    uint32_t n_tiles, n_parts;
    struct pb_whole_window window[PB_SOURCES_MAX];
    bool is_planar[PB_FILES_MAX]; /* a piece has one plane */
    struct pb_plan_pages pages;   /* with managed planes */
    uint64_t pixel_bytes;         /* size for the largest band */
    /* Sizes for the largest lot; with managed planes stored_bytes is that of both. */
    uint64_t stored_bytes, decoded_bytes;
};

/* plan and blocks, one for each source of the plan, are borrowed until fini. slot_bytes: size of a
 * load. budget: limit of pb_whole_map_bytes, in bytes of device memory. leave_out: for each source,
 * true if its pixels have another origin and it has no pieces; NULL: all have pieces. memory;
 * plan.memory if not even two rows of tiles fit. *map needs fini in any case. */
int pb_whole_map_init(struct pb_whole_map *map, const struct pb_plan *plan,
                      const struct pb_raw_blocks *blocks, uint64_t slot_bytes, uint64_t budget,
                      const bool *leave_out, struct pb_err *err);
void pb_whole_map_fini(struct pb_whole_map *map);
/* Count of groups that must be decoded for a part of a tile. */
uint32_t pb_whole_map_need(const struct pb_whole_map *map, uint32_t tile, uint32_t part);
/* Device memory for pixels and blocks. */
uint64_t pb_whole_map_bytes(const struct pb_whole_map *map);
/* Count of lots that have memory at a time; without managed planes also that of bands. */
uint32_t pb_whole_map_rooms(const struct pb_whole_map *map);
struct pb_gate_answers;
enum pb_whole_next {
    PB_WHOLE_END,    /* all stored pieces have been in loads, or are left out */
    PB_WHOLE_LOAD,   /* *out is the next load */
    PB_WHOLE_UNKNOWN /* answers for the piece out->first are not known */
};
/* Next load of stored bytes: as many pieces from `first` on as fit in a slot. first: end of the
 * load before, or 0. answers: NULL without a gate. */
enum pb_whole_next pb_whole_map_load(const struct pb_whole_map *map, uint32_t first,
                                     uint64_t slot_bytes, const struct pb_gate_answers *answers,
                                     struct pb_whole_load *out);
/* Returns true if no tile that passes the gate needs the piece. answers: known for all tiles that
 * need it; NULL without a gate. */
bool pb_whole_is_left_out(const struct pb_whole_map *map, uint32_t piece,
                          const struct pb_gate_answers *answers);
/* Bytes of a load in a slot: its pieces have the same distances as in their room. */
uint64_t pb_whole_load_bytes(const struct pb_whole_map *map, const struct pb_whole_load *load);
/* Returns true if the load may follow when all pieces before `first` have arrived. Checks all of
 * its numbers. */
bool pb_whole_load_is_next(const struct pb_whole_map *map, uint32_t first,
                           const struct pb_whole_load *load, uint64_t slot_bytes,
                           const struct pb_gate_answers *answers);
/* Layout of the source's image, or that of its mask if the piece is a block of it. */
const struct pb_block_layout *pb_whole_layout(const struct pb_raw_blocks *blocks,
                                              const struct pb_whole_piece *piece);
/* Returns true if a piece of the source is decoded, and not only moved. */
bool pb_whole_is_compressed(const struct pb_raw_blocks *blocks, const struct pb_whole_piece *piece);
#endif
