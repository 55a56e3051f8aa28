/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_H
#define PB_PLAN_H
/* The plan of a run: config + image header -> compiled chain, tile grid and visiting order, slots,
 * threads and every byte that will be held. It is made before the first tile is read;
 * only warp with dem reads pixels while planning (the range of heights, plan_heights.c). A memory
 * budget that cannot be kept is refused here, with the amount that would be enough. Owns the chain
 * and the names; read-only afterwards, any thread.
 *
 * A plan is a value: what depends on a choice (the side of a tile, threads, stripes) is computed
 * into a copy, and the copy that is chosen becomes the plan. */
#include "config/config.h"
#include "config/base/err.h"
#include "kernels/chain/chain.h"
#include "kernels/chain/chain_sums.h"
#include "kernels/tile_slot.h"
#include "pipeline/grid/cell_shape.h"
#include "pipeline/device/mem.h"
#include "pipeline/metadata/calibration.h"
#include "pipeline/plan/plan_out.h"
#include "pipeline/product/product.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raw_blocks.h"
#include "pipeline/grid/tile.h"

#include "wic/device/transfer_plan.h"

/* How a resident kernel works on the tiles (plan_resident.c). */
struct pb_plan_resident {
    bool used;
    const char *why_not; /* for people, when it is not */
    bool alone;   /* used, but not by the service with this configuration: it has jobs beside it */
    bool by_line; /* slots hold all bands of a line side by side, and a piece is whole lines; else
                     bands one behind the other, and a piece is a part of the tile's core */
    int px;       /* pixels that a thread makes at a time */
    int32_t part_w, part_h;
    size_t scratch_bytes;                /* of device memory, a block */
    size_t plane_px;                     /* floats from plane to plane of it */
    struct pb_chain_sums_scratch places; /* of a pass that is summed up */
    struct wic_transfer_plan chunks;
    bool measured; /* by a row that was measured on this GPU; else by the built-in table */
    bool shared;   /* the kernel may serve other jobs as well: the process computes for them */
    struct wic_gpu gpu;
};

/* A pass whose tiles a GPU sums up (plan_sums.c): in what parts. */
struct pb_plan_sums {
    struct pb_chain_sums chain; /* n 0: what comes back of tiles are planes */
    int32_t part_w, part_h;
};

/* Whether blocks go to the GPU as their files store them, and are decoded there (plan_whole.c). */
struct pb_plan_whole {
    bool used;
    const char *why_not;   /* for people, when it is not; static */
    uint64_t why_bytes;    /* of what the reason calls too small: what would do; 0: no amount */
    uint64_t device_bytes; /* of the GPU's memory, for blocks and pixels and what is made of them */
    uint64_t least_bytes;  /* of it that decoding needs at least */
    uint64_t piece_bytes;  /* a slot has at least so many */
    struct pb_raw_how how[PB_FILES_MAX]; /* of each source */
    const char *host_why; /* why the host decodes some of what goes there; NULL: it does not. Static
                           */
    bool all_by_host;     /* no block of any source is decoded on the GPU */
    uint32_t streams;     /* that the GPU decodes at once */
    bool in_place;        /* blocks are read, and results written, where the host has its slots */
    bool keeps;           /* there is memory for the whole scene, which stays for later passes */
    bool shares;          /* cores decode blocks, too, where the GPU is behind */
    double core_rate, device_rate, link_rate; /* bytes/s, estimates: decoding, of a core and of the
                                                 GPU; sent to it */
};

/* What is read of one file: the delivered scene, or another one of the pipeline. Files on one grid
 * and of one type share a window of the tile, their planes one behind the other. */
struct pb_plan_source {
    uint32_t window; /* of tiles: a source of the chain */
    size_t plane;    /* the first one of the file's in it */
    int32_t
        bands[PB_BANDS_MAX]; /* 1-based numbers in the file, in the order of the chain's inputs */
    size_t n_bands;          /* 0: nothing is */
    size_t n_later;          /* the first so many are read when the gate has let the tile pass; the
                                mask is with the others; n_bands: there is no gate for this source */
    enum pb_type type;
    bool has_mask;
};

/* A source is read in two parts where a gate looks at one of its bands: FIRST is what decides. */
enum pb_plan_part { PB_PLAN_LATER, PB_PLAN_FIRST, PB_PLAN_PARTS };
struct pb_plan_bands {
    const int32_t *bands; /* of the source; planes first and on of its windows */
    size_t first, n;
    bool has_mask;
};
struct pb_plan_bands pb_plan_bands_of(const struct pb_plan_source *source, enum pb_plan_part part);

/* Decoded cells of one source that are kept in memory. */
struct pb_plan_cells {
    struct pb_cell_shape shape;
    uint32_t count; /* 0 = tiles are read straight into their slots */
};

/* What decides whether the rest of a tile is read (run/stream/gate.c). */
struct pb_plan_gate {
    const struct pb_chain *chain;               /* NULL: every tile is read and computed */
    struct pb_slot_format format;               /* of what is read first */
    size_t read_bytes, scratch_bytes, plane_px; /* of a reader, for the largest tile */
};

/* How blocks become pixels in slots: what plan_cache.c finds for threads and stripes. */
struct pb_plan_decoding {
    struct pb_plan_cells cells[PB_FILES_MAX];
    uint32_t readers; /* threads that can be busy with it */
    double decodes;   /* how often a block is decoded, on average; of the source that it is most
                         for */
    uint64_t cells_bytes;
    uint64_t cache_bytes;  /* GDAL's block cache, all readers together */
    uint64_t reader_bytes; /* what their open files hold */
};

/* What is counted of the pixels of a band whose digits float32 may not hold. */
enum pb_wide_count {
    PB_WIDE_NOT,
    PB_WIDE_ROUNDED, /* that float32 does not hold: steps or products take them rounded */
    PB_WIDE_LOST     /* that are not kept although the band has planes of rests: beyond float32's
                        range */
};

/* A band of a source whose type has more digits than float32 (plan_digits.c). */
struct pb_plan_wide {
    uint32_t window, plane; /* where its pixels are in tiles */
    enum pb_type type;      /* I32, U32 or F64 */
    bool has_nodata;
    double nodata;
    bool shifts;    /* pixel x, y of the products' grid is x + dx, y + dy of its own */
    int32_t dx, dy; /* with shifts */
    enum pb_wide_count count;
    char name[64]; /* in the pipeline */
};

/* In words, for people (plan_valid.c). */
struct pb_plan_valid {
    char by[160];    /* what decides which pixels of the scene are valid */
    char notes[800]; /* what the files declare and is not used so, "; " between two; "" = nothing */
};

/* A whole image of the chain (pb_chain_images) as a source behind those of files, whose pixels an
 * earlier pass keeps. */
struct pb_plan_image {
    struct pb_raster_info info;
    uint32_t file; /* number among the sources of the plan */
};

struct pb_plan {
    struct pb_chain *chain;
    struct pb_plan **earlier; /* passes before this one, in order: their chains belong to this one,
                                 and they hold its products' bytes as well */
    size_t n_earlier;
    struct pb_geometry geometry; /* of the products: size, and the map from the scene's grid */
    struct pb_grid grid;
    enum pb_order order;
    bool whole_rows; /* tiles are visited by rows, never by stripes (plan_order.c) */
    int32_t halo;    /* of a chain that keeps the scene's grid */
    struct pb_plan_source source[PB_FILES_MAX]; /* the scene first, alone in window 0 */
    size_t n_sources, n_windows;
    struct pb_plan_image *images; /* of the whole chain; those of an earlier pass belong to the last
                                     one */
    size_t n_images;
    struct pb_slot_format format; /* of input slots */
    struct pb_plan_gate gate;
    int32_t *output_bands; /* of the scene that outputs are, unchanged, 1-based; 0 = none */
    const struct pb_band_tags **tags; /* of each output, by the files; an entry NULL = none */
    struct pb_plane_kept *kept;       /* of each output, by the file of the scene */
    struct pb_plan_wide *wide;        /* n_wide */
    size_t n_wide;
    struct pb_plan_wide *floats; /* n_floats; bands of files of floats, which may be infinite */
    size_t n_floats;
    struct pb_plane_rest *rest; /* of each output */
    uint32_t *rest_of;          /* of each output with rests: the band in `wide` that it is */
    uint32_t n_rest;            /* planes of rests that a tile has */
    struct pb_plan_valid valid;
    struct pb_complex complex; /* of the scene's pixels */
    char **output_names;
    size_t n_outputs;
    struct pb_calibrated *calibrated; /* by the steps that calibrate; n_calibrated */
    size_t n_calibrated;
    struct pb_raster *placed; /* where the products lie, when that is another coordinate system than
                                 the scene's; else NULL */
    int32_t first_table;   /* number of the chain's first input that is a table (pb_plan_tables) */
    int32_t first_cutline; /* and of the first that is a plane of polygons (pb_plan_cutlines) */
    size_t n_default;      /* the first so many are what a product without a list of bands takes */

    bool cuda;
    const char *cpu_why; /* why it is the CPU although there is a GPU; NULL = it is not so */
    int32_t device_index;
    int32_t priority; /* of its pipeline */
    struct pb_plan_resident resident;
    struct pb_plan_whole whole;
    struct pb_plan_out out; /* with whole.used */
    struct pb_plan_sums sums;
    enum pb_mem_kind mem;
    bool by_workers; /* this process computes on the CPU: each thread takes a tile through all
                        stages (run/stream/tile_worker.h); else each stage has threads of its own */
    uint32_t readers, workers, writers; /* threads of the three stages; by_workers: workers in all,
                                           of which so many read at a time */
    uint32_t in_slots, out_slots;
    uint32_t window_units; /* units of the visiting order that may be unfinished at one time */
    struct pb_exchange_config exchange; /* of the tiles or their parts; pattern NULL =
                                           unidirectional */
    size_t in_slot_bytes, out_slot_bytes;
    size_t scratch_bytes; /* per compute thread (CPU) or per stream (GPU, on the device) */

    double price;            /* of decoding and threads, among plans of this scene (plan_fit.c) */
    uint32_t threads_wanted; /* of each stage */
    uint64_t wanted_bytes;   /* the memory with which there are so many; 0: there are, or a GPU
                                computes */
    struct pb_plan_decoding decoding;
    const struct pb_plan *next; /* of an earlier pass: the one after it */
    bool has_warp;              /* this pass or another one of the plan */
    bool is_earlier;            /* this is a pass before the one that makes the products */
    uint64_t held_bytes;        /* of the products, in an earlier pass */
    uint64_t reduce_bytes;      /* of the reductions, in an earlier pass */
    uint64_t image_bytes;       /* of what makes whole images, in an earlier pass */
    uint64_t kept_bytes;        /* of tiles, from the first round of an earlier pass for those after
                                   it; 0: each round reads again */
    uint64_t product_bytes;     /* in an earlier pass: held_bytes */
    uint64_t total_bytes;       /* host memory of all the above, without that of earlier passes */
    uint64_t reserve_bytes;     /* what earlier passes need beside the products, at least */
};

struct pb_device_traits;
struct pb_whole_device;
struct pb_tile_exchange;
struct pb_part_exchange;

/* A source whose pixels no file has. */
enum pb_plan_made_of {
    PB_MADE_OF_FILE,    /* it is a file */
    PB_MADE_OF_TABLES,  /* numbers of the metadata (pb_plan_tables) */
    PB_MADE_OF_POLYGONS /* planes that cut (pb_plan_cutlines) */
};

/* A source beside the scene, as it was found. */
struct pb_plan_other {
    const struct pb_source_config *config; /* of a file; NULL else */
    enum pb_plan_made_of made_of;
    const struct pb_raster_info *info;
    struct pb_raster *raster; /* NULL: nobody has it open */
    bool is_absent;    /* an optional file that the scene lacks: bands that are valid nowhere */
    bool placed;       /* whether its grid can be put onto the scene's */
    struct pb_map map; /* from the scene's grid */
};

/* The area of a step that names one (kernels/area.h). */
struct pb_plan_area {
    size_t step;
    struct pb_area area; /* its cutline: number among the planes of polygons */
};

struct pb_plan_request {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    const struct pb_raster_info *info;  /* of the scene */
    struct pb_raster *raster;           /* of the scene, for steps that change its coordinate
                                           system; NULL: there are none */
    const struct pb_plan_other *others; /* n_others; NULL = none */
    size_t n_others;
    bool cuda;
    int32_t device_index;
    const struct pb_device_traits *traits; /* NULL: no kernel stays there */
    int32_t jobs_beside;    /* processes that compute at the same time, up to so many; 0: none */
    const char *stream_why; /* why no kernel stays, whatever compute.sync says; NULL: as configured.
                               Borrowed for the plan's life */
    const struct pb_metadata *metadata; /* of the scene; NULL: none were read */
    const char *const *file_names;      /* of the scene, then of others; for metadata */
    const struct pb_calibrated *rules;  /* n_rules; that another process has made of its metadata */
    size_t n_rules;
    const struct pb_plan_area *areas; /* n_areas; NULL = no step names one */
    size_t n_areas;
    uint64_t cutline_bytes, cutline_thread_bytes; /* of the areas' polygons, in all and for each
                                                     thread that reads */
    const struct pb_ground_tile *tile; /* that the products are of, for a step that cuts them into
                                          tiles; NULL = none does */
    int32_t whole_said; /* of a request of another process: 1: blocks come as they are stored, -1:
                           they do not; 0: there is no such request */
    const struct pb_plan_out *said_out; /* of such a request: what becomes of tiles; NULL else */
    const struct pb_whole_device
        *whole_device; /* for tests: of pb_stream; the plan does not look */
    bool remote; /* another process computes: slots lie in memory that both map, so never managed */
};

int pb_plan_create(const struct pb_plan_request *request, struct pb_err *err,
                   struct pb_plan **out_plan);
void pb_plan_destroy(struct pb_plan *plan);
/* Whether the last pass, or one before it, reads that band (from 1) of a source; 0: any. */
bool pb_plan_reads(const struct pb_plan *plan, size_t source, int32_t band);
/* Of a source of the plan: the scene, one of request->others, or a whole image. */
const struct pb_raster_info *pb_plan_info(const struct pb_plan *plan,
                                          const struct pb_plan_request *request, size_t source);
/* Tile `number` of the grid, of that unit of the visiting order. */
struct pb_tile pb_plan_tile(const struct pb_plan *plan, uint32_t number, uint32_t unit);
/* Threads that hand tiles to products or reductions: the writers, and readers of tiles that are
 * left out. */
uint32_t pb_plan_sink_workers(const struct pb_plan *plan);
/* Bytes of the largest unit of the visiting order. */
uint64_t pb_plan_unit_bytes(const struct pb_plan *plan);
/* Begins one end's walk along the pass's exchange (pipeline/plan/tile_exchange.h), which the caller
 * ends. */
int pb_plan_exchange(const struct pb_plan *plan, struct pb_err *err,
                     struct pb_tile_exchange *out_walk);
/* The same of the parts of tiles (pipeline/plan/part_exchange.h), for one reader. */
int pb_plan_part_exchange(const struct pb_plan *plan, struct pb_err *err,
                          struct pb_part_exchange *out_walk);
/* Bytes that a tile takes where tiles are kept between rounds. */
size_t pb_plan_kept_bytes_of(const struct pb_plan *plan, uint32_t number);
/* Bytes that the tile's results take in an output slot. */
size_t pb_plan_out_bytes(const struct pb_plan *plan, const struct pb_tile *tile);
/* The environment that products see, as far as the plan knows it. */
void pb_plan_product_env(const struct pb_plan *plan, const struct pb_plan_request *request,
                         struct pb_product_env *out_env);
/* The pass that takes the most memory. */
const struct pb_plan *pb_plan_largest(const struct pb_plan *plan);
/* The most host memory that a pass takes. */
uint64_t pb_plan_total_bytes(const struct pb_plan *plan);
/* The memory with which no core is left idle, for the pass that would take the most of it; 0: no
 * core is idle. */
uint64_t pb_plan_wanted_bytes(const struct pb_plan *plan);
/* Formats a reason, with the amount that would be enough unless it is 0. Thread: any. */
void pb_plan_reason(const char *why, uint64_t would_do, char *text, size_t bytes);
/* Describes the plan in a few lines. Returns the length, as snprintf does. */
int pb_plan_describe(const struct pb_plan *plan, char *text, size_t bytes);
#endif
