/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_H
#define PB_PLAN_H
/* The plan of a run: config + image header -> compiled chain, tile grid and visiting order, slots,
 * threads and every byte of memory. It is made before the first tile is read, from the facts of
 * the request alone: no pixel is read while planning. A memory budget that is too small is refused
 * here, with the amount that would be enough. Owns the chain and the names; read-only afterwards,
 * any thread.
 *
 * A plan is a value: members that depend on the side of a tile are computed in a copy, and the
 * chosen copy becomes the plan; those that depend on threads and stripes are computed in place. */
#include "config/base/err.h"
#include "config/exchange.h"
#include "config/input_values.h"
#include "kernels/chain/chain.h"
#include "kernels/chain/chain_sums.h"
#include "kernels/tile_slot.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/device/mem.h"
#include "pipeline/grid/cell_shape.h"
#include "pipeline/grid/tile.h"
#include "pipeline/metadata/calibration.h"
#include "pipeline/product/product.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raw_blocks.h"

#include "wic/device/transfer_plan.h"

struct pb_config;
struct pb_pipeline_config;
struct pb_source_config;
struct pb_served_tail;
struct pb_way;

/* Work of a resident kernel on the tiles (engine.c). */
struct pb_plan_resident {
    bool used;
    const char *why_not; /* reason for the user if it is not used */
    /* true: slots hold all bands of a line side by side, and a piece is whole lines; false: bands
     * follow each other, and a piece is a part of the tile's core. */
    bool by_line;
    int px; /* pixels that a thread computes at a time */
    int32_t part_w, part_h;
    size_t scratch_bytes;                /* device memory of a block */
    size_t plane_px;                     /* distance of its planes in floats */
    struct pb_chain_sums_scratch places; /* for a pass that is summed up */
    struct wic_transfer_plan chunks;
    bool measured; /* true: from a row measured on this GPU; false: from the built-in table */
    bool shared;   /* the kernel may serve other jobs as well: the process computes for them */
    struct wic_gpu gpu;
};

enum {
    PB_OUT_PRODUCTS = 64, /* most products of a pipeline, all of which a device may make */
    PB_OUT_BATCHES = 3,   /* batches of blocks between the encoder and the host */
    PB_OUT_LEVELS = 32,
    PB_OUT_SIZES = 3, /* ways to use the device's memory */
    PB_BLOCK_SLOT_HEAD =
        4096 /* bytes; head of a result slot with blocks (run/stream/block_slot.h) */
};

/* A product that is made on the device. */
struct pb_plan_made {
    uint32_t product;               /* number of the product in the pipeline */
    uint32_t first_plane, n_planes; /* planes of tiles; format.plane counts from the first */
    struct pb_device_blocks blocks;
    uint32_t row_blocks; /* most blocks that a row of tiles can complete, over all levels */
    uint32_t batch[2];   /* blocks that are encoded at once: of values, of masks */
};

/* Products that are made on the device, and the planes that are copied to the host (staged.c). */
struct pb_plan_out {
    uint32_t n;
    struct pb_plan_made made[PB_OUT_PRODUCTS];
    uint64_t by_device; /* bit i: product i is made on the device */
    /* Why product i is not made there; static; NULL: it is, or needs no pixels. */
    const char *why[PB_OUT_PRODUCTS];
    uint64_t why_bytes;   /* compute.device_memory that would be enough; 0: not the reason */
    uint64_t host_planes; /* bit p: plane p of tiles is copied to the host */
    uint64_t reduced;     /* in an earlier pass, bit i: the device computes its reduction i */
    uint32_t size;        /* below PB_OUT_SIZES: index of the memory size */
    uint32_t strips;      /* rows of tiles on the device at a time; 0 if unused */
    uint64_t tile_bytes;  /* size of a tile's planes in a strip */
    uint64_t workspace_bytes, encoded_bytes; /* sizes for a batch */
    uint64_t spare_bytes;                    /* size of a spare table of values */
    uint32_t batch_most;                     /* blocks of the largest batch */
    uint64_t device_bytes;                   /* device memory of all that */
    uint64_t room_bytes; /* host memory for finished blocks: the rest of compute.memory */
    uint64_t most_bytes; /* largest size of the finished blocks of all products */
    uint64_t slot_bytes; /* least size of a slot of results */
};

/* Parts of tiles in a pass whose tiles a GPU sums up (engine.c). */
struct pb_plan_sums {
    struct pb_chain_sums chain; /* n 0: the results of tiles are planes */
    int32_t part_w, part_h;
};

/* Decoding on the GPU of blocks that are sent as their files store them (staged.c). */
struct pb_plan_whole {
    bool used;
    const char *why_not; /* reason for the user if it is not used; static */
    uint64_t why_bytes;  /* enough of the resource that the reason calls too small; 0: no amount */
    uint64_t device_bytes;               /* GPU memory for blocks, pixels and products */
    uint64_t least_bytes;                /* least part of it that decoding needs */
    uint64_t piece_bytes;                /* smallest size of a slot */
    uint64_t block_bytes;                /* largest decoded size of a compressed block */
    struct pb_raw_how how[PB_FILES_MAX]; /* for each source */
    const char *host_why; /* why the host decodes some of the blocks; NULL: it does not. Static */
    bool all_by_host;     /* no block of any source is decoded on the GPU */
    uint32_t streams;     /* count of blocks that the GPU decodes at once */
    bool in_place;        /* blocks are read, and results written, in the host's slots */
    bool keeps;           /* memory is enough for the whole scene, which stays for later passes */
    bool one_band;        /* all of the scene is there at once */
    bool managed;         /* planes of the scene are managed memory (run/whole/whole_pages.h) */
    /* Why they are not although compute.buffers is managed; else NULL. Static. */
    const char *managed_why;
    uint64_t planes_bytes; /* host memory for managed planes; 0: they are device memory */
    bool shares;           /* cores decode blocks, too, if the GPU is slower */
    /* Estimates in bytes/s: decoding by a core and by the GPU; transfer to it. */
    double core_rate, device_rate, link_rate;
};

/* Bands that are read from one file: the delivered scene, or another one of the pipeline. Files on
 * one grid and of one type share a window of the tile, in which their planes follow each other. */
struct pb_plan_source {
    uint32_t window; /* window of tiles: a source of the chain */
    size_t plane;    /* first plane of the file in it */
    /* 1-based numbers in the file, in the order of the chain's inputs. */
    int32_t bands[PB_BANDS_MAX];
    size_t n_bands; /* 0: the file is not read */
    /* Count of leading bands that are read after the gate has passed the tile; the mask is read
     * with the others. n_bands: no gate for this source. */
    size_t n_later;
    enum pb_type type;
    bool has_mask;
};

/* A source is read in two parts if a gate needs one of its bands: FIRST has the bands for the gate.
 */
enum pb_plan_part { PB_PLAN_LATER, PB_PLAN_FIRST, PB_PLAN_PARTS };
struct pb_plan_bands {
    const int32_t *bands; /* bands of the source: n planes of its window, beginning with `first` */
    size_t first, n;
    bool has_mask;
};
struct pb_plan_bands pb_plan_bands_of(const struct pb_plan_source *source, enum pb_plan_part part);

/* Decoded cells of one source in memory. */
struct pb_plan_cells {
    struct pb_cell_shape shape;
    uint32_t count; /* 0 = tiles are read straight into their slots */
};

/* Gate, which decides if the rest of a tile is read (run/stream/gate.c). */
struct pb_plan_gate {
    const struct pb_chain *chain;               /* NULL: every tile is read and computed */
    struct pb_slot_format format;               /* format of the bands that are read first */
    size_t read_bytes, scratch_bytes, plane_px; /* for a reader and the largest tile */
};

/* Decoding of blocks into slots, as cache.c computes it for threads and stripes. */
struct pb_plan_decoding {
    struct pb_plan_cells cells[PB_FILES_MAX];
    uint32_t readers; /* threads that can decode at the same time */
    double decodes; /* average number of times that a block is decoded; largest over the sources */
    uint64_t cells_bytes;
    uint64_t cache_bytes;  /* GDAL's block caches, of all readers */
    uint64_t reader_bytes; /* memory of their open files */
};

/* Kind of pixels that are counted in a band whose digits may exceed float32. */
enum pb_wide_count {
    PB_WIDE_NOT,
    PB_WIDE_ROUNDED, /* pixels that float32 rounds: steps or products use the rounded values */
    PB_WIDE_LOST     /* pixels beyond float32's range, lost although the band has residual planes */
};

/* A band of a source whose type has more digits than float32 (values.c). */
struct pb_plan_wide {
    uint32_t window, plane; /* place of its pixels in tiles */
    enum pb_type type;      /* I32, U32 or F64 */
    bool has_nodata;
    double nodata;
    bool shifts;    /* pixel x, y of the products' grid is x + dx, y + dy of the band's own */
    int32_t dx, dy; /* with shifts */
    enum pb_wide_count count;
    char name[64]; /* name in the pipeline */
};

/* Messages for the user (values.c). */
struct pb_plan_valid {
    char by[160]; /* source of the validity of the scene's pixels */
    /* Declared validity in files that is not used, separated by "; "; "" if absent. */
    char notes[800];
};

/* For each output of the pass: n of them. */
struct pb_plan_outputs {
    int32_t *bands; /* scene band that the output copies (1-based); 0 if it copies none */
    const struct pb_band_tags **tags; /* tags that the files declare; an entry may be NULL */
    struct pb_plane_kept *kept;       /* declarations of the scene's file that stay valid */
    struct pb_plane_rest *rest;       /* residual planes of each output */
    uint32_t *rest_of;                /* with residuals: index of its band in `wide` */
    uint32_t n_rest;                  /* count of residual planes in a tile */
    char **names;
    size_t n;
    size_t n_default; /* count of leading outputs that a product without `bands` gets */
};

/* Work of a pass: it follows from the configuration and the facts of the scene. */
struct pb_plan_work {
    struct pb_chain *chain;
    struct pb_geometry geometry; /* products' size, and the map from the scene's grid */
    int32_t halo;                /* halo of a chain that keeps the scene's grid */
    struct pb_plan_source source[PB_FILES_MAX]; /* the scene is first, alone in window 0 */
    size_t n_sources, n_windows;
    /* Facts of the sources, which are the scene, request->others and whole images: copies that the
     * last pass owns. */
    struct pb_raster_info *info;
    /* Ways to other coordinate systems, for another process that computes (ways.h); n_ways. */
    struct pb_way *ways;
    size_t n_ways;
    /* Whole images of all passes (pb_chain_images), which earlier passes make: the last sources,
     * from this one on. */
    uint32_t first_image;
    size_t n_images;
    struct pb_plan_wide *wide; /* n_wide */
    size_t n_wide;
    struct pb_plan_wide *floats; /* n_floats; bands of files of floats, which may be infinite */
    size_t n_floats;
    struct pb_plan_valid valid;
    struct pb_complex complex; /* kind of the scene's complex pixels */
    struct pb_plan_outputs outputs;
    struct pb_calibrated *calibrated; /* for the steps that calibrate; n_calibrated */
    size_t n_calibrated;
    /* Georeference of the products if it is of another coordinate system than the scene's; else
     * NULL. */
    struct pb_raster *placed;
    void *const *prepared; /* env.prepared of the products; borrowed */
    int32_t first_table;   /* number of the chain's first input that is a table (pb_plan_tables) */
    /* Number of the first one that is a plane of polygons (pb_plan_cutlines). */
    int32_t first_cutline;
    int32_t priority;        /* priority of its pipeline */
    enum pb_chain_warp warp; /* kind of warp in this pass or another one of the plan */
    bool has_far_ways;       /* another process that computes would refuse the tables of a way */
};

/* Tiles of a pass, their order, slots and threads. */
struct pb_plan_layout {
    struct pb_grid grid;
    enum pb_order order;
    bool whole_rows; /* tiles are visited by rows, never by stripes (layout.c) */
    /* true: this process computes on the CPU, and each thread processes a tile in all stages
     * (run/stream/tile_worker.h); false: each stage has its own threads. */
    bool by_workers;
    /* Most lines of a strip; 0: tiles are computed as a whole. A scene whose lines arrive is
     * computed in strips as soon as their lines are complete. Slots hold strips; computed strips
     * are joined to tiles (run/stream/strips.h). */
    int32_t lines;
    bool no_strips;               /* true if the budget is too small for strips: lines is 0 */
    uint32_t strip_cols;          /* strips that are computed next to each other */
    uint32_t strip_rows;          /* rows of tiles in memory, which strips fill and threads write */
    struct pb_slot_format format; /* format of input slots */
    struct pb_plan_gate gate;
    struct pb_plan_sums sums;
    /* Threads of the three stages; by_workers: `workers` threads in all, of which `readers` read at
     * a time. */
    uint32_t readers, workers, writers;
    uint32_t threads_wanted; /* largest useful number of threads for each stage */
    uint32_t in_slots, out_slots;
    uint32_t window_units; /* units of the visiting order that may be unfinished at one time */
    /* For tiles or their parts; pattern NULL = unidirectional. */
    struct pb_exchange_config exchange;
    size_t in_slot_bytes, out_slot_bytes;
    size_t scratch_bytes; /* per compute thread (CPU) or per stream (GPU, on the device) */
    struct pb_plan_decoding decoding;
    /* Cost of decoding and threads, compared among plans of this scene (memory.c). */
    double price;
};

/* Processor that computes a pass, and its way of doing it. */
struct pb_plan_engine {
    bool cuda;
    const char *cpu_why; /* why the CPU is used although there is a GPU; NULL = not the case */
    int32_t device_index;
    enum pb_mem_kind mem; /* kind of memory for the slots */
    /* Multiprocessors that kernels use, if compute.share limits them, else 0; count of all; and
     * why kernels that are launched may use all, "" = they do not. */
    uint32_t share, share_of;
    char share_why[120];
    struct pb_plan_resident resident;
    struct pb_plan_whole whole;
    struct pb_plan_out out; /* with whole.used */
};

/* Memory of a pass. */
struct pb_plan_memory {
    uint64_t total_bytes;  /* host memory of the pass, without that of earlier passes */
    uint64_t held_bytes;   /* memory of the products, in an earlier pass */
    uint64_t reduce_bytes; /* memory of the reductions, in an earlier pass */
    uint64_t image_bytes;  /* memory for making whole images, in an earlier pass */
    /* Memory of tiles that an earlier pass keeps from its first round for later ones; 0: each round
     * reads again. */
    uint64_t kept_bytes;
    uint64_t product_bytes; /* in an earlier pass: held_bytes */
    uint64_t reserve_bytes; /* least memory of earlier passes in addition to the products */
    /* Memory for layout.threads_wanted threads; 0: the plan has that many, or a GPU computes. */
    uint64_t wanted_bytes;
};

struct pb_plan {
    struct pb_plan_work work;
    struct pb_plan_layout layout;
    struct pb_plan_engine engine;
    struct pb_plan_memory memory;
    /* Passes before this one, in order: their chains belong to this one, and their memory includes
     * the bytes of its products. */
    struct pb_plan **earlier;
    size_t n_earlier;
    const struct pb_plan *next; /* for an earlier pass: the one after it */
    bool is_earlier;            /* this is a pass before the one that makes the products */
};

struct pb_device_traits;
struct pb_whole_device;
struct pb_tile_exchange;
struct pb_part_exchange;

/* Origin of a source's pixels. */
enum pb_plan_made_of {
    PB_MADE_OF_FILE,    /* a file */
    PB_MADE_OF_TABLES,  /* numbers of the metadata (pb_plan_tables) */
    PB_MADE_OF_POLYGONS /* planes that cut (pb_plan_cutlines) */
};

/* Facts of a source other than the scene. */
struct pb_plan_other {
    const struct pb_source_config *config; /* for a file; else NULL */
    enum pb_plan_made_of made_of;
    const struct pb_raster_info *info;
    struct pb_raster *raster; /* NULL: not open */
    bool is_absent;    /* an optional file that the scene lacks: its bands are valid nowhere */
    bool placed;       /* its grid can be mapped to the scene's */
    struct pb_map map; /* maps the scene's grid to its own */
};

/* Area of a step that names one (kernels/area.h). */
struct pb_plan_area {
    size_t step;
    struct pb_area area; /* its cutline: number among the planes of polygons */
};

/* Range of a band that has the heights of the ground, in an area of its file. */
struct pb_plan_heights_range {
    uint32_t input; /* number of the band among the inputs of the request's plans */
    struct pb_rect area;
    double range[2]; /* range[0] > range[1]: no pixel is valid there */
};

/* A range that a plan needs and that is not known. */
struct pb_plan_heights_lack {
    uint32_t input;
    struct pb_rect area;        /* w 0: all ranges are known */
    struct pb_chain_input band; /* meaning of its pixels */
    int32_t number;             /* band number in its file, from 1 */
    uint32_t file; /* 0: the scene's file; else the number in request->others, from 1 */
};

/* Ranges of heights for steps that warp over relief. Their areas follow from the grid, which grows
 * with the range; therefore a plan fails with `lacks` set until it knows all of them
 * (run/run_heights.h). */
struct pb_plan_heights {
    struct pb_plan_heights_range *known; /* n */
    size_t n;
    struct pb_plan_heights_lack lacks;
};

struct pb_plan_request {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    const struct pb_raster_info *info; /* facts of the scene */
    /* The scene, for steps that change its coordinate system; NULL: no such step. */
    struct pb_raster *raster;
    const struct pb_plan_other *others; /* n_others; NULL if 0 */
    size_t n_others;
    struct pb_plan_heights *heights; /* borrowed; NULL: no step warps over relief */
    bool cuda;
    int32_t device_index;
    const struct pb_device_traits *traits; /* NULL: no resident kernel is possible */
    /* Why no kernel may be resident, whatever compute.sync is; NULL: as configured. Borrowed for
     * the plan's life. */
    const char *stream_why;
    /* Prepares the products once their grid is known, before memory is planned, and sets
     * *out_prepared for env.prepared; env lives for the call. NULL: products need no data. */
    int (*prepare)(void *user, const struct pb_product_env *env, struct pb_err *err,
                   void *const **out_prepared);
    void *user;
    const struct pb_metadata *metadata; /* metadata of the scene; NULL: none were read */
    const char *const *file_names;     /* names of the scene's file, then of others; for metadata */
    const struct pb_calibrated *rules; /* n_rules; made by another process from its metadata */
    size_t n_rules;
    const struct pb_plan_area *areas; /* n_areas; NULL = no step names an area */
    size_t n_areas;
    /* Memory of the areas' polygons, in all and for each thread that reads. */
    uint64_t cutline_bytes, cutline_thread_bytes;
    /* Tile for which the products are made, for a step that cuts into tiles; NULL = no such step.
     */
    const struct pb_ground_tile *tile;
    /* For a request of another process: its ways to other coordinate systems (ways.h); else
     * NULL: they are made. */
    struct pb_served_tail *ways;
    /* For a request of another process: 1: blocks are sent as they are stored, -1: they are not; 0:
     * no such request. */
    int32_t whole_said;
    bool said_managed; /* in such a request: planes are managed memory */
    bool said_keeps;   /* in such a request: pixels stay on the GPU for later passes */
    const struct pb_plan_out *said_out; /* output side in such a request; else NULL */
    /* For tests, as in pb_stream; unused by the plan. */
    const struct pb_whole_device *whole_device;
    bool remote; /* another process computes: both map the slots */
};

/* Returns true if this pass or one before it reads that band (from 1) of a source; band 0: any
 * band. */
bool pb_plan_reads(const struct pb_plan *plan, size_t source, int32_t band);
/* Tile `number` of the grid, in that unit of the visiting order. */
struct pb_tile pb_plan_tile(const struct pb_plan *plan, uint32_t number, uint32_t unit);
/* Strip of n lines from line `first`, in column `col` < layout.strip_cols, as a tile whose number
 * is the line and whose unit is the count of lines. */
struct pb_tile pb_plan_strip(const struct pb_plan *plan, uint32_t col, int32_t first, int32_t n);
/* Most lines of a strip that begins at line `first`: a strip ends with the row of tiles. */
int32_t pb_plan_strip_lines(const struct pb_plan *plan, int32_t first);
/* Size in pixels of the largest core in a slot: that of a tile or a strip. */
void pb_plan_core_most(const struct pb_plan *plan, int32_t *out_w, int32_t *out_h);
/* Bytes of one tile in the rows of tiles that strips fill; bytes of all these rows. */
size_t pb_plan_strip_tile_bytes(const struct pb_plan *plan);
uint64_t pb_plan_strip_rows_bytes(const struct pb_plan *plan);
/* Count of the threads that deliver tiles to products or reductions: the writers, and readers of
 * tiles that are left out. */
uint32_t pb_plan_sink_workers(const struct pb_plan *plan);
/* Bytes of a tile when tiles are kept between rounds. */
size_t pb_plan_kept_bytes_of(const struct pb_plan *plan, uint32_t number);
/* Count of the cells of an image that the pass makes. */
uint64_t pb_plan_image_cells(const struct pb_plan *pass);
/* Count of the cells that passes of the whole plan sieve after their tiles have arrived, each
 * counted once a round. */
uint64_t pb_plan_image_steps(const struct pb_plan *plan);
/* Pass that needs the most memory. */
const struct pb_plan *pb_plan_largest(const struct pb_plan *plan);
/* Host memory of that pass. */
uint64_t pb_plan_total_bytes(const struct pb_plan *plan);
/* Memory that would leave no core idle, for the pass that would need the most of it; 0: no
 * core is idle. */
uint64_t pb_plan_wanted_bytes(const struct pb_plan *plan);
#endif
