/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_H
#define PB_PRODUCT_H
/* The products that a job publishes. Every kind is a descriptor of the same type in files of its
 * own (products.def lists them): how it is made, and its asset in a STAC item. The writers hand
 * each finished tile to every product of the pipeline, on several threads at once and in any order,
 * and each product's bytes must not depend on that order, on the number of threads or on the tile
 * size. */
#include "config/config.h"
#include "config/base/err.h"
#include "config/output/output_path.h"
#include "pipeline/io/file_out.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/raster/raster.h"
#include "pipeline/grid/tile.h"
#include "kernels/band_tags.h"
#include "kernels/tile_slot.h"
#include "kernels/tiling.h"

#include <stdint.h>

/* A finished tile: planes of values, invalid pixels NaN, and planes of rests, of bands that have
 * them (struct pb_plane_rest). Tightly packed, plane_px apart; plane_px 0: no pixel is valid, and
 * there are none. */
struct pb_tile_planes {
    const float *data;
    size_t plane_px;
    const float *rest;
};

/* A plane that is a band of the scene, each pixel in its place and as the file has it, where no
 * step has made it invalid. */
struct pb_plane_kept {
    int32_t band;   /* 1-based; 0 = it is none */
    bool untouched; /* no step masks it */
    bool has_nodata;
    double nodata; /* what is read as invalid */
};

/* What float32 does not hold of a band of tiles (codec/rest.h): planes first .. first + n - 1 of
 * the rests; n 0 = nothing is kept. */
struct pb_plane_rest {
    uint32_t first, n;
};

/* Pixels of an input band that have more digits than float32. */
struct pb_digits_report {
    char band[64];    /* in the pipeline */
    const char *type; /* of the file: "uint32". Static */
    bool kept; /* the band keeps its digits in a product, but for these pixels, which are beyond
                  float32's range; else steps or products take them rounded */
    uint64_t pixels; /* at least 1 */
};

/* How a product stores values. */
enum pb_digits {
    PB_DIGITS_SOME, /* it shows them, or in fewer digits than float32 has, as it was asked to */
    PB_DIGITS_FLOAT,
    PB_DIGITS_ALL /* in a type of more digits */
};

struct pb_chain;
struct pb_cog_block;
struct pb_device_blocks;
struct pb_json;
struct pb_metadata;
struct pb_notes;
struct pb_observations;
struct pb_calibrated;
struct pb_input_files;
struct pb_paint_config;
struct pb_stac_item;

/* The environment of all products of a run; everything is borrowed and outlives them. */
struct pb_sidecars;

struct pb_product_env {
    const struct pb_config *config;
    const struct pb_pipeline_config *pipeline;
    struct pb_raster *raster; /* for metadata; used by create and by the finish of STAC items only,
                                 never at the same time as another */
    const struct pb_raster_info *info;
    struct pb_raster *placed; /* where the products lie; NULL: where the scene does */
    const struct pb_raster_info *place_info; /* of placed, else info: CRS and transform of the
                                                grid that geometry maps from */
    struct pb_geometry geometry;             /* of the products: size, and the map from that grid */
    double transform[6];                     /* of the products, where the scene has one */
    const struct pb_grid *grid; /* tiles; side_px is a multiple of every COG's block size (or the
                                   one tile holds all) */
    enum pb_order order;
    uint32_t tiles_in_flight; /* at most so many tiles are between the first unfinished one and the
                               * last started one, in visiting order, counted in whole units */
    uint32_t workers;         /* tile() and block() are called with worker < workers */
    uint64_t by_device;       /* bit i: all blocks of product i of the pipeline are made by a
                                 device, and come by block() instead of tile() */
    const char *scene;        /* base name of the products, unless `name` is */
    const char *name;         /* of a tile: scene and tile; NULL = scene */
    const struct pb_ground_tile *tile; /* of a grid, that the products are; NULL = they are not */
    const char *place; /* scene directory below products: scene, scene~N, a/b/scene; NULL = scene */
    struct pb_output_facts facts; /* of the metadata, for output.name; zeroed: none is known */
    const char *input;            /* path of the scene */
    const char *const *files;     /* n_files: what is read of a scene of many, paths inside it */
    size_t n_files;
    const struct pb_sidecars *sidecars; /* of the scene; NULL = none */
    struct pb_file_progress *progress;  /* of the files that finish writes; NULL = none */
    enum pb_checksum checksum;          /* of the same files */
    const char *directory; /* where files are written (temporary, published by one rename) */
    const char *const *band_names; /* of the planes of tiles */
    const int32_t *scene_bands; /* of the same planes: the band of the scene whose pixels they are,
                                   as stored, 1-based; 0 = none; NULL = not known yet */
    const struct pb_band_tags *const *tags; /* of the same planes: pb_chain_output_tags; NULL = not
                                                    known yet */
    const struct pb_plane_kept *kept; /* of the same planes; NULL = not known yet, or none is */
    const char *valid_notes; /* what the files declare of validity and is not used so, for people;
                                NULL or "" = nothing (plan_valid.c) */
    const bool *classes; /* of the same planes: pb_chain_classes; NULL = not known yet, or none */
    const struct pb_digits_report *digits; /* n_digits; known when products are finished */
    size_t n_digits;
    const struct pb_notes *notes;       /* known when products are finished; NULL = none */
    const struct pb_plane_rest *rest;   /* of the same planes; NULL = not known yet, or none */
    const struct pb_metadata *metadata; /* of the scene; NULL or family NULL = none */
    const struct pb_observations *observations; /* of a scene whose files they order; NULL or n 0 =
                                                   none */
    const char *const *file_names; /* of the scene's file and of each of input.sources, as they were
                                      delivered; NULL = not known */
    const struct pb_calibrated *calibrated; /* n_calibrated, by steps that calibrate */
    size_t n_calibrated;
    const struct pb_chain *chain; /* what steps have reduced the image to; NULL = not known yet */
    size_t n_bands;
    size_t n_default;   /* a product that names no bands takes the first n_default; 0 = all */
    const char *device; /* "cpu", "cuda:0": for the processing record */
    /* The files that were read, with their checksums; waits for these, and is called when all
     * pixels were read. Borrowed as the rest. NULL = they are not known. */
    int (*inputs)(void *user, struct pb_err *err, const struct pb_input_files **out);
    void *inputs_user;
};

/* Fills geometry, transform and place_info, unless that is set, for products on the grid of
 * env->info, or on `grid` when that is not NULL. */
void pb_product_place(struct pb_product_env *env, const struct pb_geometry *grid);

#define PB_STATISTICS_PERCENTILES_MAX 32

/* Percentile p, 0 .. 100, of a band. */
struct pb_band_percentile {
    double p;
    double value, error; /* by how much it may be wrong; both NaN when there is no value */
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

/* How a picture shows values: those of 1 or 3 planes as levels or colours. */
struct pb_shown {
    uint32_t n;
    uint32_t plane[3];
    bool has_ends;          /* else the ramp has values of its own */
    double low[3], high[3]; /* values that become the two ends; low may be the greater */
    const struct pb_paint_config *paint; /* its ramp; borrowed from the configuration */
};

/* Where a product has the values of a plane: value = stored * scale + offset. */
struct pb_stored_band {
    uint32_t number; /* in the file, from 1 */
    double scale, offset;
};

struct pb_product_result {
    const struct pb_product_kind *kind;
    const char *name; /* from the config, may be NULL */
    char file[300];   /* file name inside the directory */
    uint64_t bytes;
    char checksum[PB_CHECKSUM_TEXT_BYTES];
    uint64_t moved_off_nodata; /* valid values that were nodata and are stored beside it */
    const char *media_type;
    const struct pb_product_config *config;
    const struct pb_band_statistics *statistics; /* statistics product only; n_statistics entries */
    size_t n_statistics;
    const struct pb_shown *shown; /* of pictures, owned by the product; NULL = by a table of
                                     colours, or nothing is shown */
    int32_t width, height;        /* of raster products */
    char warning[200];            /* of what it leaves out, for people; "" = nothing */
};

struct pb_product_type {
    const struct pb_product_kind *kind; /* its part for the configuration */
    const char *suffix;                 /* of the file's name: ".tif" */
    /* The same where it depends on the configuration; static words. NULL = it never does. */
    const char *(*suffix_of)(const struct pb_product_config *config);

    /* As an asset of a STAC item. */
    const char *asset; /* key, when the product has no name */
    const char *title;
    const char *role;      /* "data", "overview", "metadata" */
    const char *extension; /* STAC extension whose fields its asset has; NULL = none */
    /* Whether it tells names of classes, by an extension of their own. NULL = never. */
    bool (*names_classes)(const struct pb_product_env *env, const struct pb_product_config *config);
    /* Writes its own members of the asset; NULL = there are none. */
    int (*describe)(const struct pb_stac_item *item, const struct pb_product_result *result,
                    struct pb_err *err);
    /* Whether its asset has the values of a plane, and where; NULL = it has none. */
    bool (*stored)(const struct pb_product_env *env, const struct pb_product_config *config,
                   uint32_t plane, struct pb_stored_band *out);
    /* Bytes by which it makes the text of a STAC item longer; NULL = few. */
    uint64_t (*item_bytes)(const struct pb_product_env *env,
                           const struct pb_product_config *config);

    /* The collection that it makes its item a member of, or NULL. NULL = it makes none. */
    const char *(*collection)(const struct pb_product_config *config);

    /* When the scene was taken, as RFC 3339, of a day its beginning, into out (40 bytes): whether
     * it knows. NULL = it does not say. */
    bool (*time)(const struct pb_product_env *env, const struct pb_product_config *config,
                 char *out);

    /* Of the files of all products; NULL = it says nothing of them. */
    enum pb_checksum (*checksum)(const struct pb_product_config *config,
                                 const struct pb_pipeline_config *pipeline);

    /* Resident bytes it will hold besides the tiles, for the plan; env->raster and directory may be
     * NULL. */
    uint64_t (*bytes)(const struct pb_product_env *env, const struct pb_product_config *config);
    /* Bytes of its file before compression, and whether it has any; environment as for bytes. NULL
     * = the file is small, whatever the size of the grid. */
    uint64_t (*file_bytes)(const struct pb_product_env *env, const struct pb_product_config *config,
                           bool *out_packed);
    /* Tiles must be a multiple of so many pixels a side, a power of two; NULL = any. */
    int32_t (*block_px)(const struct pb_product_config *config);
    /* Whether it is made faster of tiles that come by whole rows. NULL = the order is all the same.
     */
    bool (*wants_rows)(const struct pb_product_config *config);
    /* NULL = PB_DIGITS_SOME. */
    enum pb_digits (*digits)(const struct pb_product_config *config);
    /* Whether it can be made of this scene, before a pixel is read, also when nothing is to be made
     * (dry run): input.* says what is missing. env has no directory. NULL = always. */
    int (*ready)(const struct pb_product_env *env, const struct pb_product_config *config,
                 struct pb_err *err);
    /* Writes what the product will be as members of the open JSON object, after ready(); NULL = its
     * name says it all. */
    void (*explain)(const struct pb_product_env *env, const struct pb_product_config *config,
                    struct pb_json *json);
    int (*create)(const struct pb_product_env *env, const struct pb_product_config *config,
                  struct pb_err *err, void **out_product);
    /* Takes one finished tile; all is borrowed for the call, the pixels are read only. Allocates
     * nothing. NULL = the kind needs no tiles. */
    int (*tile)(void *product, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                uint32_t worker, struct pb_err *err);
    /* What a device needs to make all blocks of the product, also of its overviews. NULL, or why it
     * cannot: static words. A NULL function: it never can. Pure. */
    const char *(*on_device)(const struct pb_product_env *env,
                             const struct pb_product_config *config, struct pb_device_blocks *out);
    /* Takes such a block, where env->by_device said so; as tile(). NULL where on_device is. */
    int (*block)(void *product, const struct pb_cog_block *block, uint32_t worker,
                 struct pb_err *err);
    /* It writes blocks that stay in memory from there, when it is finished. */
    bool keeps_blocks;
    /* After the last tile, once: writes and fsyncs <directory>/<file>. earlier: the results of all
     * other products, for a kind that describes them and so is finished last. The others finish at
     * the same time, each on one thread. */
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

/* When the scene was taken, RFC 3339, by what a product of the pipeline says of it, else by the
 * metadata; "" = not known. */
#define PB_PRODUCT_DATETIME_BYTES 40
void pb_product_datetime(const struct pb_product_env *env, char out[PB_PRODUCT_DATETIME_BYTES]);
/* What the products are named by. */
static inline const char *pb_product_base(const struct pb_product_env *env)
{
    return env->name != NULL ? env->name : env->scene;
}
/* Whether output.name can be expanded for every product; output.path if not. */
int pb_product_names_check(const struct pb_product_env *env, struct pb_err *err);
/* The STAC collection that the pipeline's item belongs to; NULL = none. Borrowed from the pipeline.
 */
const char *pb_products_collection(const struct pb_pipeline_config *pipeline);
/* The series that a product of the pipeline is put into, by kind and name (NULL = none); NULL = it
 * is in none. Borrowed from the pipeline. */
const char *pb_products_series(const struct pb_pipeline_config *pipeline, const char *kind,
                               const char *name);
/* The checksum that the files of the pipeline's products get. */
enum pb_checksum pb_products_checksum(const struct pb_pipeline_config *pipeline);
/* Whether all products of the pipeline can be made: ready() of each. */
int pb_products_ready(const struct pb_product_env *env, struct pb_err *err);
/* "<scene>.tif", "<scene>.<name>.png", "<scene>.statistics.json", "<scene>.stac.json", or by
 * output.name: what finish writes. */
void pb_product_file(const struct pb_product_env *env, const struct pb_product_config *config,
                     char *out, size_t bytes);
/* Whether the product's blocks are made by a device: env->by_device. */
bool pb_product_by_device(const struct pb_product_env *env, const struct pb_product_config *config);
/* Bands of a product: those it names, else the default ones. */
size_t pb_product_band_count(const struct pb_product_env *env,
                             const struct pb_product_config *config);
/* Indices into env->band_names of the product's bands (all of them when the config names none).
 * Returns how many; out holds PB_BANDS_MAX. Unknown names: negative errno with pipeline.product. */
int pb_product_bands(const struct pb_product_env *env, const struct pb_product_config *config,
                     uint32_t *out, struct pb_err *err);
/* The name of the product's band i as the configuration says it, or of the default one. */
const char *pb_product_band_name(const struct pb_product_env *env,
                                 const struct pb_product_config *config, size_t i);
#endif
