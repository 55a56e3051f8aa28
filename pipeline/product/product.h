/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_H
#define PB_PRODUCT_H
/* Products that a job publishes. Every kind is a descriptor of the same type in its own files
 * (products.def lists them): its functions, and its asset in a STAC item. The writers pass each
 * finished tile to every product of the pipeline, on several threads at once and in any order,
 * and each product's bytes must not depend on that order, on the number of threads or on the
 * tile size. */
#include "config/base/err.h"
#include "config/output/output_path.h"
#include "kernels/band_tags.h"
#include "kernels/tile_slot.h"
#include "kernels/tiling.h"
#include "pipeline/grid/tile.h"
#include "pipeline/io/file_out.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/raster/raster.h"

#include <stdint.h>

struct pb_config;
struct pb_pipeline_config;
struct pb_product_config;
struct pb_product_kind;

/* A finished tile: planes of values, with NaN for invalid pixels, and residual planes of bands
 * that have them (struct pb_plane_rest). Tightly packed, plane_px apart; plane_px 0: no pixel is
 * valid, and there are no planes. */
struct pb_tile_planes {
    const float *data;
    size_t plane_px;
    const float *rest;
};

/* Plane that is a band of the scene, with each pixel at its place and with its stored value
 * unless a step has made it invalid. */
struct pb_plane_kept {
    int32_t band;   /* 1-based; 0 = not a band of the scene */
    bool untouched; /* no step masks it */
    bool has_nodata;
    double nodata; /* value that is read as invalid */
};

/* Residual planes of a band of tiles, the digits that float32 loses (codec/rest.h): planes first
 * .. first + n - 1; n 0 = no residual. */
struct pb_plane_rest {
    uint32_t first, n;
};

/* Pixels of an input band that have more digits than float32. */
struct pb_digits_report {
    char band[64];    /* name in the pipeline */
    const char *type; /* type in the file: "uint32". Static */
    bool kept; /* true: a product has all digits of the band, except for these pixels, which are
                  beyond float32's range; false: steps or products use them rounded */
    uint64_t pixels; /* at least 1 */
};

/* How a product stores values. */
enum pb_digits {
    PB_DIGITS_SOME, /* displays them, or is configured for fewer digits than float32 */
    PB_DIGITS_FLOAT,
    PB_DIGITS_ALL /* stores them in a type with more digits */
};

struct pb_chain;
struct pb_cog_block;
struct pb_device_blocks;
struct pb_json;
struct pb_metadata;
struct pb_notes;
struct pb_observations;
struct pb_calibrated;
struct pb_paint_config;
struct pb_scene_manifest;
struct pb_stac_item;

/* A line with values beyond a limit (product/alert), for reports while the scene is computed. */
struct pb_alert {
    const char *name; /* name of the product; NULL if it has no name */
    const char *band; /* band whose values are beyond */
    uint32_t number;  /* from 1, in the order of lines: the same when a scene is computed again */
    int32_t line, sample; /* pixel of the products' grid with the value */
    uint32_t pixels;      /* pixels of the line beyond the limit */
    float value;          /* value that is farthest beyond */
    bool has_place;       /* lon and lat are known */
    double lon, lat;      /* WGS 84 */
    int64_t acquired_ns;  /* time of the line, UTC since 1970; 0 = unknown */
};

/* Environment of all products of a run; everything is borrowed and outlives them. */
struct pb_sidecars;

struct pb_product_env {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    struct pb_raster *raster; /* for metadata; used by create and by the finish of STAC items only,
                                 never at the same time as another */
    const struct pb_raster_info *info;
    struct pb_raster *placed; /* raster with the products' georeferencing; NULL: the scene's */
    const struct pb_raster_info *place_info; /* info of placed, else info: CRS and transform of the
                                                grid from which geometry maps */
    struct pb_geometry geometry;             /* size of the products, and the map from that grid */
    double transform[6];                     /* transform of the products, if the scene has one */
    const struct pb_grid *grid; /* tiles; side_px is a multiple of every COG's block size (or the
                                   one tile holds all) */
    enum pb_order order;
    uint32_t tiles_in_flight; /* most tiles between the first unfinished and the last started one,
                                 in visiting order, counted in whole units */
    uint32_t workers;         /* tile() and block() are called with worker < workers */
    uint64_t by_device; /* bit i: a device makes all blocks of product i of the pipeline, which
                           receives them by block() instead of tile() */
    const char *scene;  /* base name of the products, unless `name` is */
    const char *name;   /* name of a tile: scene and tile; NULL = scene */
    const struct pb_ground_tile *tile; /* tile of a grid that the products cover; NULL = no grid */
    const char *place; /* scene directory below products: scene, scene~N, a/b/scene; NULL = scene */
    struct pb_output_facts facts; /* facts from the metadata for output.name; zeroed: unknown */
    const char *input;            /* path of the scene */
    const char *const *files; /* n_files: files read of a scene of several files, paths inside it */
    size_t n_files;
    const struct pb_sidecars *sidecars; /* sidecars of the scene; NULL = absent */
    struct pb_file_progress
        *progress;             /* progress of the files that finish writes; NULL = not reported */
    enum pb_checksum checksum; /* checksum of the same files */
    const char *directory;     /* folder of the files (temporary, published by one rename) */
    const char *const *band_names; /* names of the planes of tiles */
    const int32_t *scene_bands;    /* for the same planes: 1-based band of the scene whose stored
                                      pixels they have; 0 = computed; NULL = not yet known */
    /* for the same planes: pb_chain_output_tags; NULL = not yet known */
    const struct pb_band_tags *const *tags;
    const struct pb_plane_kept
        *kept;               /* for the same planes; NULL = not yet known, or no plane is a band */
    const char *valid_notes; /* validity declared by the files that is not used, for users; NULL or
                                "" = nothing (plan/values.c) */
    /* for the same planes: pb_chain_classes; NULL = not yet known, or no classes */
    const bool *classes;
    const struct pb_digits_report *digits; /* n_digits; known when products are finished */
    size_t n_digits;
    const struct pb_notes *notes; /* known when products are finished; NULL = none */
    /* for the same planes; NULL = not yet known, or no residuals */
    const struct pb_plane_rest *rest;
    const struct pb_metadata *metadata; /* metadata of the scene; NULL or family NULL = absent */
    /* observations that order the scene's files; NULL or n 0 = absent */
    const struct pb_observations *observations;
    const char *const *file_names;          /* delivered names of the scene's file and of each of
                                               input.sources; NULL = unknown */
    const struct pb_calibrated *calibrated; /* n_calibrated, made by steps that calibrate */
    size_t n_calibrated;
    /* for the results of reductions of the image; NULL = not yet known */
    const struct pb_chain *chain;
    size_t n_bands;
    size_t n_default;      /* a product that names no bands gets the first n_default; 0 = all */
    void *const *prepared; /* data of each product of the pipeline; NULL = none is prepared */
    /* Reports an alert at once; borrowed for the call. Thread: that of tile(). NULL = not wanted.
     */
    void (*alert)(void *user, const struct pb_alert *alert);
    void *alert_user;
    const char *device; /* "cpu", "cuda:0": for the processing record */
    /* Returns the files that were read, with their checksums; waits for these. Called after all
     * pixels were read. Borrowed like the rest. NULL = unknown. */
    int (*inputs)(void *user, struct pb_err *err, const struct pb_scene_manifest **out);
    void *inputs_user;
};

/* Fills geometry, transform and, unless set, place_info for products on the grid of env->info,
 * or on `grid` if not NULL. */
void pb_product_place(struct pb_product_env *env, const struct pb_geometry *grid);

#define PB_STATISTICS_PERCENTILES_MAX 32

/* Percentile p, 0 .. 100, of a band. */
struct pb_band_percentile {
    double p;
    double value, error; /* error: largest possible deviation; both NaN if there is no value */
};

/* Per-band results that STAC repeats; made by the statistics product. */
struct pb_band_statistics {
    char name[64];
    uint64_t count, valid;
    double minimum, maximum, mean, stddev; /* NaN when valid == 0 */
    double histogram_min, histogram_max;
    uint32_t n_buckets;
    uint64_t *bucket; /* owned by the product */
    uint32_t n_percentiles;
    struct pb_band_percentile percentile[PB_STATISTICS_PERCENTILES_MAX];
};

/* Display of values in a picture: 1 or 3 planes as levels or colours. */
struct pb_shown {
    uint32_t n;
    uint32_t plane[3];
    bool has_ends;                       /* false: the ramp has its own values */
    double low[3], high[3];              /* values of the two ends; low may be greater than high */
    const struct pb_paint_config *paint; /* its ramp; borrowed from the configuration */
};

/* Storage of a plane's values in a product: value = stored * scale + offset. */
struct pb_stored_band {
    uint32_t number; /* in the file, from 1 */
    double scale, offset;
};

struct pb_product_result {
    const struct pb_product_kind *kind;
    const char *name; /* name in the configuration, may be NULL */
    char file[300];   /* file name inside the directory */
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    uint64_t moved_off_nodata; /* count of valid values equal to nodata that are stored as a
                                  neighbouring value */
    const char *media_type;
    const struct pb_product_config *config;
    const struct pb_band_statistics *statistics; /* statistics product only; n_statistics entries */
    size_t n_statistics;
    const struct pb_shown *shown; /* for pictures, owned by the product; NULL = displayed by a
                                     colour table, or no picture */
    int32_t width, height;        /* for raster products */
    bool is_map; /* a picture of the whole grid; then: corners of the grid (0 .. 3 as in struct
                    pb_footprint) at its upper left, upper right, lower right and lower left */
    int8_t corner[4];
    char warning[200]; /* omissions of the product, for users; "" = nothing */
};

struct pb_product_type {
    const struct pb_product_kind *kind; /* its part for the configuration */
    const char *suffix;                 /* suffix of the file's name: ".tif" */
    /* Suffix that depends on the configuration; static text. NULL = `suffix` always. */
    const char *(*suffix_of)(const struct pb_product_config *config);

    /* Asset in a STAC item. */
    const char *asset; /* key if the product has no name */
    const char *title;
    const char *role;      /* "data", "overview", "metadata" */
    const char *extension; /* STAC extension whose fields its asset has; NULL = no extension */
    /* Returns true if its asset has names of classes, by their own extension. NULL = never. */
    bool (*names_classes)(const struct pb_product_env *env, const struct pb_product_config *config);
    /* Writes the kind's members of the asset; NULL = no members. */
    int (*describe)(const struct pb_stac_item *item, const struct pb_product_result *result,
                    struct pb_err *err);
    /* Returns true if its asset has the values of a plane, with their place in *out; NULL =
     * never. */
    bool (*stored)(const struct pb_product_env *env, const struct pb_product_config *config,
                   uint32_t plane, struct pb_stored_band *out);
    /* Bytes that it adds to the text of a STAC item; NULL = few. */
    uint64_t (*item_bytes)(const struct pb_product_env *env,
                           const struct pb_product_config *config);

    /* Returns the collection of its item, or NULL. A NULL function = never. */
    const char *(*collection)(const struct pb_product_config *config);

    /* Writes the acquisition time of the scene, as RFC 3339 (for a day its beginning), to out
     * (40 bytes); returns false if unknown. NULL = not supported. */
    bool (*time)(const struct pb_product_env *env, const struct pb_product_config *config,
                 char *out);

    /* Returns the checksum kind for the files of all products; NULL = not configured by this
     * kind. */
    enum pb_checksum (*checksum)(const struct pb_product_config *config,
                                 const struct pb_pipeline_config *pipeline);

    /* Reads data whose size the plan must know, such as the polygons of a file; env has the
     * products' grid and its raster, but no tiles. *out_prepared: for bytes and create, may be
     * shared with an earlier product of env->prepared; to be discarded. NULL = no such data. */
    int (*prepare)(const struct pb_product_env *env, const struct pb_product_config *config,
                   struct pb_err *err, void **out_prepared);
    void (*discard)(void *prepared); /* NULL is fine */

    /* Resident bytes in addition to the tiles, for the plan; env->raster and directory may be
     * NULL. */
    uint64_t (*bytes)(const struct pb_product_env *env, const struct pb_product_config *config);
    /* Bytes of its file before compression; *out_packed: it is compressed; environment as for
     * bytes. NULL = the file is small, whatever the size of the grid. */
    uint64_t (*file_bytes)(const struct pb_product_env *env, const struct pb_product_config *config,
                           bool *out_packed);
    /* Side in pixels, a power of two, of which tile sides must be a multiple; NULL = any. */
    int32_t (*block_px)(const struct pb_product_config *config);
    /* Returns true if tiles in whole rows are faster. NULL = the order is irrelevant. */
    bool (*wants_rows)(const struct pb_product_config *config);
    /* NULL = PB_DIGITS_SOME. */
    enum pb_digits (*digits)(const struct pb_product_config *config);
    /* Checks before a pixel is read, also in a dry run, that the product can be made of this
     * scene: errors input.* name what is missing. env has no directory. NULL = always. */
    int (*ready)(const struct pb_product_env *env, const struct pb_product_config *config,
                 struct pb_err *err);
    /* Writes a description of the product as members of the open JSON object, after ready();
     * NULL = the name suffices. */
    void (*explain)(const struct pb_product_env *env, const struct pb_product_config *config,
                    struct pb_json *json);
    int (*create)(const struct pb_product_env *env, const struct pb_product_config *config,
                  struct pb_err *err, void **out_product);
    /* Consumes one finished tile; all is borrowed for the call, the pixels are read only.
     * Allocates nothing. NULL = the kind needs no tiles. */
    int (*tile)(void *product, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                uint32_t worker, struct pb_err *err);
    /* True if tile() may get rows of a tile as soon as they are computed, each row once, instead of
     * the complete tile: of a scene whose lines arrive. */
    bool by_lines;
    /* Gets the requirements of making all blocks of the product, also of its overviews, on a
     * device. Returns NULL, or the reason why it cannot: static text. A NULL function: never.
     * Pure. */
    const char *(*on_device)(const struct pb_product_env *env,
                             const struct pb_product_config *config, struct pb_device_blocks *out);
    /* Consumes such a block if set in env->by_device; contract as tile(). NULL if on_device is
     * NULL. */
    int (*block)(void *product, const struct pb_cog_block *block, uint32_t worker,
                 struct pb_err *err);
    /* Announces such a block, whose data are not used. NULL if that has no effect. */
    void (*expect)(void *product, const struct pb_cog_block *block);
    /* True if it has blocks that stay in memory until finish writes them. */
    bool keeps_blocks;
    /* Called once after the last tile: writes and fsyncs <directory>/<file>. earlier: the
     * results of all other products, for a kind that describes them and is therefore finished
     * last. The others finish at the same time, each on one thread. */
    int (*finish)(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                  struct pb_err *err, struct pb_product_result *out_result);
    void (*destroy)(void *product); /* NULL is fine; removes nothing from the directory */
};

/* The types of products.def. */
#define PB_PRODUCT(name) extern const struct pb_product_type pb_product_##name;
#include "pipeline/product/products.def"
#undef PB_PRODUCT

/* The type of one of the kinds in pb_products. Static. */
const struct pb_product_type *pb_product_type(const struct pb_product_kind *kind);

/* Gets the acquisition time, RFC 3339, from a product of the pipeline, else from the metadata;
 * "" = unknown. */
#define PB_PRODUCT_DATETIME_BYTES 40
void pb_product_datetime(const struct pb_product_env *env, char out[PB_PRODUCT_DATETIME_BYTES]);
/* Base name of the products. */
static inline const char *pb_product_base(const struct pb_product_env *env)
{
    return env->name != NULL ? env->name : env->scene;
}
/* Checks that output.name can be expanded for every product; else output.path. */
int pb_product_names_check(const struct pb_product_env *env, struct pb_err *err);
/* Returns the STAC collection of the pipeline's item; NULL = no collection. Borrowed from the
 * pipeline. */
const char *pb_products_collection(const struct pb_pipeline_config *pipeline);
/* Returns the series to which a product of the pipeline, by kind and name (NULL = no name), is
 * added; NULL = no series. Borrowed from the pipeline. */
const char *pb_products_series(const struct pb_pipeline_config *pipeline, const char *kind,
                               const char *name);
/* Returns true if publishing a scene changes files of several scenes, in the order of the scenes: a
 * series, or a STAC collection. */
bool pb_products_share(const struct pb_pipeline_config *pipeline);
/* Returns the checksum kind of the files of the pipeline's products. */
enum pb_checksum pb_products_checksum(const struct pb_pipeline_config *pipeline);
/* Data of the product among env->prepared, and the product's number in the pipeline; NULL = not
 * prepared. */
void *pb_product_prepared(const struct pb_product_env *env, const struct pb_product_config *config,
                          size_t *out_number);
/* Prepares all products of the pipeline into `prepared`, an entry for each, all NULL before. Needs
 * discard in any case, which sets them NULL. */
int pb_products_prepare(const struct pb_product_env *env, void **prepared, struct pb_err *err);
void pb_products_discard(const struct pb_pipeline_config *pipeline, void **prepared);
/* Checks that all products of the pipeline can be made: ready() of each. */
int pb_products_ready(const struct pb_product_env *env, struct pb_err *err);
/* Writes the name of the file that finish makes: "<scene>.tif", "<scene>.<name>.png",
 * "<scene>.statistics.json", "<scene>.stac.json", or by output.name. */
void pb_product_file(const struct pb_product_env *env, const struct pb_product_config *config,
                     char *out, size_t bytes);
/* Returns true if a device makes the product's blocks: env->by_device. */
bool pb_product_by_device(const struct pb_product_env *env, const struct pb_product_config *config);
/* Count of bands of a product: those it names, else the default ones. */
size_t pb_product_band_count(const struct pb_product_env *env,
                             const struct pb_product_config *config);
/* Finds the indices into env->band_names of the product's bands (all of them if the
 * configuration names none). Returns their count; out holds PB_BANDS_MAX. Unknown names:
 * negative errno with pipeline.product. */
int pb_product_bands(const struct pb_product_env *env, const struct pb_product_config *config,
                     uint32_t *out, struct pb_err *err);
/* Name of the product's band i in the configuration, or of the default band. */
const char *pb_product_band_name(const struct pb_product_env *env,
                                 const struct pb_product_config *config, size_t i);
#endif
