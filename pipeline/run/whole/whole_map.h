/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WHOLE_MAP_H
#define PB_WHOLE_MAP_H
/* In what order the stored blocks of a pass's sources go to a device, and where everything lies
 * there. Arithmetic; made before the first tile, read-only afterwards, any thread.
 *
 * A piece is a block of a source as it is stored, some rows of one that is not compressed, or a
 * plane of a block that the host decodes; the planes of one follow each other. Each piece goes to
 * the device once, in the order of the first tile that needs it. A group is what is
 * decoded at once, a load what a slot brings: pieces of a group as they are stored, or a block that
 * a core has decoded. Bands are rows of tiles whose pixels are on the
 * device together: one where all of the scene fits, else two at a time. Pixels that a band shares
 * with the one before it are copied from there. */
#include "pipeline/plan/plan.h"
#include "pipeline/raster/raw_blocks.h"

enum { PB_WHOLE_ALIGN = 256 }; /* bytes; of pieces on the device, and of rows of planes */

struct pb_whole_piece {
    uint64_t block;       /* number in its source */
    uint64_t from, bytes; /* of the stored block; bytes 0: it is not stored, and nothing is sent */
    uint64_t stored_at;   /* in its band's room for stored bytes */
    uint64_t decoded_at, decoded_bytes; /* in its band's room for decoded blocks; 0 bytes: it is
                                           not compressed */
    uint64_t least; /* bytes that it decodes to, at least; at most block_bytes */
    uint32_t first; /* tile, in visiting order, that needs it first */
    uint32_t source, plane, group;
    struct pb_rect rect; /* its pixels that are in the image */
    bool by_host;        /* pb_raster_read makes it: samples of the plane, or bytes of the mask */
    bool is_mask;        /* it goes to the window's mask */
    bool is_apart;       /* ... and has rows of another size than the source's pixels */
};

struct pb_whole_load {
    uint32_t first, end; /* pieces, of one group */
    bool is_decoded;     /* a core has decoded it: one block, as the predictor has left it */
};

struct pb_whole_group {
    uint32_t first, end; /* pieces, by source; those that are not stored last */
    uint32_t stored_end; /* of those that are stored */
    uint32_t band;
};

struct pb_whole_band {
    uint32_t first, end;                          /* tiles, in visiting order */
    uint32_t first_group, end_group;              /* none, where the band before has all pixels */
    int32_t y[PB_SOURCES_MAX], h[PB_SOURCES_MAX]; /* rows of each window that there is memory for */
    /* Of each source: the row after the last one that was decoded, here or in a band before, of its
     * pixels and of its mask. Sources of one window may have blocks of several heights. */
    int32_t end_row[PB_FILES_MAX], mask_end_row[PB_FILES_MAX];
    uint64_t stored_bytes, decoded_bytes;
};

/* Planes of a window in a band's memory, of native samples, as wide as the image. */
struct pb_whole_window {
    uint64_t at, row_bytes, plane_bytes; /* of the largest band; all but at 0: nothing is read */
    uint64_t mask_at, mask_row_bytes;    /* a byte a pixel; mask_row_bytes 0: there is no mask */
    int32_t image_w, image_h;
};

struct pb_whole_map {
    const struct pb_plan *plan;
    const struct pb_raw_blocks *blocks; /* of each source */
    struct pb_whole_piece *piece;
    struct pb_whole_group *group;
    struct pb_whole_band *band;
    uint32_t n_pieces, n_groups, n_bands;
    uint32_t *need; /* of each tile, in visiting order: groups that must have been decoded */
    uint32_t n_tiles;
    struct pb_whole_window window[PB_SOURCES_MAX];
    uint64_t pixel_bytes, stored_bytes, decoded_bytes; /* of the largest band */
};

/* plan and blocks, one for each source of the plan, are borrowed until fini. slot_bytes: of a
 * load. budget: device memory that pb_whole_map_bytes may be. leave_out: of each source, whether
 * its pixels come from elsewhere and it has no pieces; NULL: all have. memory; plan.memory where
 * not even two rows of tiles fit. *map needs fini in any case. */
int pb_whole_map_init(struct pb_whole_map *map, const struct pb_plan *plan,
                      const struct pb_raw_blocks *blocks, uint64_t slot_bytes, uint64_t budget,
                      const bool *leave_out, struct pb_err *err);
void pb_whole_map_fini(struct pb_whole_map *map);
/* Device memory for pixels and blocks. */
uint64_t pb_whole_map_bytes(const struct pb_whole_map *map);
/* Bands whose memory is there at a time. */
uint32_t pb_whole_map_rooms(const struct pb_whole_map *map);
/* The next load of stored bytes: from piece `first` on as many as a slot takes. first: that of the
 * load before, whose end it is, or 0. False: all pieces that are stored have been in loads. */
bool pb_whole_map_load(const struct pb_whole_map *map, uint32_t first, uint64_t slot_bytes,
                       struct pb_whole_load *out);
/* What it takes of a slot: pieces lie there as they do in their room. */
uint64_t pb_whole_load_bytes(const struct pb_whole_map *map, const struct pb_whole_load *load);
/* Whether the load may come when all pieces before `first` have come: it does not trust its
 * numbers. */
bool pb_whole_load_is_next(const struct pb_whole_map *map, uint32_t first,
                           const struct pb_whole_load *load, uint64_t slot_bytes);
/* Whether a piece of the source is decoded, and not only moved. */
bool pb_whole_is_compressed(const struct pb_raw_blocks *blocks, const struct pb_whole_piece *piece);
#endif
