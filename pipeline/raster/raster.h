/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_H
#define PB_RASTER_H
/* Reads scenes, and does everything else with rasters that needs GDAL: GDAL is included only by
 * the implementation in raster_gdal*.c. Only GDAL's drivers for TIFF and JPEG 2000 ever open a
 * file; sidecars and directory scans are off. Declarations of a header are checked against
 * limits before anything is read. A pb_raster belongs to one thread at a time; open one per
 * thread. */
#include "config/base/err.h"
#include "config/input_values.h"
#include "kernels/geometry.h"
#include "pipeline/raster/complex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_band_config;
struct pb_limits;
struct pb_raster;

struct pb_raster_band {
    bool has_nodata;
    bool nodata_unreadable; /* the file has a nodata tag that is not a number */
    bool nodata_unfit;      /* it declares a value that the type cannot hold (kernels/nodata.h):
                               has_nodata is false, nodata the value */
    double nodata;
    bool is_alpha;
    char description[128]; /* valid UTF-8, no control characters; "" = none */
    double scale, offset;  /* value of the tag; for information only, never applied automatically */
    char unit[32];         /* unit of the values: "m"; like description */
    int32_t color;         /* GDAL's colour interpretation: 0 none, 1 gray, 2 palette, 3 red, ... */
    bool is_class; /* integers with a colour table or category names, or a quality band according to
                      its description */
};

/* Blocks of a mask that is an image of its own in the scene's file, of the scene's size. */
struct pb_mask_blocks {
    int32_t block_w, block_h; /* 0: there is no such mask, or only GDAL decodes it */
    uint32_t bits;            /* bits of a pixel: 1 or 8 */
    bool tiled;
    uint16_t compression, predictor;
    uint64_t stored_max; /* bytes of the largest stored block */
};

struct pb_raster_info {
    int32_t width, height;
    int32_t n_bands;           /* 1 .. PB_BANDS_MAX */
    int32_t n_pages_more;      /* images of the file after the first, which are not read; without
                                  overviews and masks */
    enum pb_type type;         /* type of the pixels as read; complex ones are read as float32 */
    struct pb_complex complex; /* pb_raster_choose_complex */
    int32_t block_w, block_h;
    bool pixel_interleaved; /* all bands of a block decode together */
    bool has_mask;          /* a mask or an alpha band: pb_raster_read fills `mask` */
    int32_t alpha_band; /* 1-based band from which the mask is made; 0 = no such band, or a mask has
                           precedence */
    int32_t data_alpha; /* 1-based: a band tagged as alpha that is read as data, because the
                           configuration names it; 0 = none */
    const char *not_looked_at;   /* "its nodata values": validity source that pb_raster_choose_valid
                                    ignores; NULL = nothing ignored. Static */
    bool has_palette;            /* band 1 is an index into a colour table: usually classes */
    const uint8_t (*palette)[4]; /* its colours: red, green, blue, alpha; owned by the raster */
    size_t n_palette;
    bool lossy;
    bool top_down; /* one compressed strip holds the image: rows decode in order, and an earlier row
                      restarts decoding */
    uint64_t stored_block_bytes; /* bytes of the largest stored block */
    int32_t stored_block_h;      /* with own_blocks: rows of a stored block; block_h is less if GDAL
                                    splits uncompressed strips */
    bool is_made;                /* made by pb_raster_make: no file */
    bool is_growing; /* a segment of lines that arrive: reads wait for them. Never own_blocks */
    bool own_blocks; /* decoded by block_reader.c: GDAL caches none of them; then valid: */
    bool tiled, big_endian;
    uint16_t tiff_compression, tiff_predictor; /* values of tags 259 and 317 */
    struct pb_mask_blocks mask_blocks;         /* with has_mask */
    uint64_t decoder_bytes;                    /* memory of our own decoders */
    uint64_t spared_bytes; /* bytes of it that pb_raster_read_two does not need */
    char compression[32];  /* "NONE", "DEFLATE", ... */
    bool has_transform;
    double transform[6];        /* GDAL order: x0, dx/dcol, dx/drow, y0, dy/dcol, dy/drow; finite,
                                   invertible */
    struct pb_ground_unit unit; /* unit of the CRS's x and y */
    bool has_orientation;       /* orientation by the transform, else by GCPs or RPCs */
    double orientation[4];      /* approximate: dx/dcol, dx/drow, dy/dcol, dy/drow */
    bool has_crs;               /* CRS of the image, else of its GCPs */
    char crs_code[64];          /* "EPSG:32622" or "" */
    int32_t n_gcps;
    bool has_rpc;
    char datetime[32]; /* TIFFTAG_DATETIME as RFC 3339 (taken as UTC), or "" */
    uint64_t file_bytes;
    int64_t file_mtime_ns;
    struct pb_raster_band band[PB_BANDS_MAX];
};

/* Call once per process, before any other call, on the main thread. Idempotent. */
void pb_raster_init(void);

/* Checks that PROJ finds its database: without it no CRS can be read. Returns system, with a
 * message that names what to install or set. Calls pb_raster_init. Searches until it was found
 * once, in this process or in one that it was forked from. Thread: any. */
int pb_raster_ready(struct pb_err *err);
/* Makes GDAL and PROJ load what scenes of that CRS (an EPSG code) need: tables, the CRS, its
 * transformation to longitude and latitude. Reads a one-pixel scene in memory; tens of milliseconds
 * for the first CRS, few for others. For this thread and for forks of it. Failures are ignored: a
 * scene will report them. */
void pb_raster_warm(int epsg);

/* Opens and checks a file. On failure *err has the code (input.missing, input.not_tiff,
 * input.truncated, input.unsupported, input.limit, input.damaged) and a message with GDAL's
 * text; failures of the machine are input.io, memory or system.files. Later reads use the
 * descriptor opened here. */
int pb_raster_open(const char *path, const struct pb_limits *limits, struct pb_err *err,
                   struct pb_raster **out_raster);
/* The same for page number `page` of a TIFF, from 1; 0: its first image. pipeline.band: the file
 * has fewer pages. */
int pb_raster_open_page(const char *path, int32_t page, const struct pb_limits *limits,
                        struct pb_err *err, struct pb_raster **out_raster);
/* Opens the same file for another thread that reads its pixels: with its own descriptor and
 * decoders, and with the metadata that `first` has read; parsing the CRS again would take longer
 * than reading a small scene. Only for pb_raster_read. first stays open meanwhile. limits: those
 * of the first. Thread: any; first may be used by others at the same time. */
int pb_raster_open_again(const struct pb_raster *first, const struct pb_limits *limits,
                         struct pb_err *err, struct pb_raster **out_raster);
/* Makes the pixels of a raster without a file from `of`; both stay valid while the raster is
 * open. `fill` writes the pixels of rect, which is inside the raster, of band `band` (from 1);
 * several threads call it at the same time. Returns 0 or the result of pb_fail. Such a raster
 * supports those calls below that read pixels. */
typedef int pb_raster_fill(const void *of, int32_t band, const struct pb_rect *rect, void *out,
                           size_t row_bytes, struct pb_err *err);
struct pb_raster_made {
    int32_t width, height, n_bands;
    enum pb_type type; /* type of the pixels that fill writes */
    pb_raster_fill *fill;
    const void *of;
};
int pb_raster_make(const struct pb_raster_made *made, struct pb_err *err,
                   struct pb_raster **out_raster);
/* Gets the pb_raster_info of such a raster. */
void pb_raster_made_info(const struct pb_raster_made *made, struct pb_raster_info *out_info);
void pb_raster_close(struct pb_raster *raster);
const struct pb_raster_info *pb_raster_info(const struct pb_raster *raster);
/* Returns the cloud cover in percent from metadata in the file or its sidecars (CLOUDCOVER of
 * GDAL's domain IMAGERY); NaN: absent. */
double pb_raster_cloud_cover(struct pb_raster *raster);
/* Gets the acquisition time in UTC from the same metadata (ACQUISITIONDATETIME), as written
 * there; "" = absent. TIFFTAG_DATETIME is the time at which the file was made. */
void pb_raster_acquired(struct pb_raster *raster, char *out, size_t bytes);
/* Selects the source of pixel validity: removes mask or nodata values from the info if they are
 * ignored, and names them in info->not_looked_at. AUTO is the precedence of GDAL's RFC 15 (mask,
 * nodata, alpha), except that an alpha band which `bands` names is data: info->data_alpha.
 * bands: the n_bands configured for this file; borrowed. Call before the first read, and before
 * it is opened again. */
void pb_raster_choose_valid(struct pb_raster *raster, enum pb_valid valid,
                            const struct pb_band_config *bands, size_t n_bands);

/* Conversion of complex pixels as configured by input.complex and input.nodata. */
struct pb_complex_choice {
    bool is_given; /* false: a file of complex pixels is refused */
    enum pb_complex_as as;
    bool has_nodata; /* replaces the file's value */
    double nodata;
};
/* Sets how complex pixels are read; the nodata value is converted to NaN and removed from the
 * info. Nothing changes if pixels are real. Returns input.complex if the conversion is required
 * and not configured. Call after pb_raster_choose_valid, before the first read, and before it is
 * opened again. */
int pb_raster_choose_complex(struct pb_raster *raster, const struct pb_complex_choice *choice,
                             struct pb_err *err);

/* Reads the pixels to->rect, which is inside the image, in the type of the info; plane i is band
 * bands[i] (1-based). A mask, if the window has one, gets 0 for pixels that are invalid by mask
 * or alpha. The nodata value is not checked. A block that does not decode completely and
 * consistently fails the read: input.damaged or input.truncated with codec and block, or with
 * the window and GDAL's message; a read that the system refused: input.io, memory. A growing
 * raster is read when the lines are complete: input.shorter if they will not be, -ECANCELED
 * without an error after an abort. */
int pb_raster_read(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                   const struct pb_window *to, struct pb_err *err);

/* Progress of a growing raster: true if a read may still have to wait for lines. */
bool pb_raster_is_growing(const struct pb_raster *raster);
/* Waits until at least `lines` lines of a growing raster are complete. Returns the count of
 * complete lines, or the error of pb_raster_read. All lines of other rasters are complete. */
int pb_raster_await(const struct pb_raster *raster, int32_t lines, struct pb_err *err);
/* Sets the time in ns for which later calls of pb_raster_await poll before the thread sleeps; 0 by
 * default. No effect on NULL and on rasters that do not grow. Thread: the reader's. */
void pb_raster_poll(const struct pb_raster *raster, int64_t ns);
/* Time of publication of a line that was read, on the clock of wic_now_ns; 0 = unknown, or the
 * raster did not grow. Thread: any. */
int64_t pb_raster_published_ns(const struct pb_raster *raster, int32_t line);
/* Time at which a line was acquired, UTC in ns since 1970; 0 = unknown. Only of files that are or
 * were segments of lines. Thread: any. */
int64_t pb_raster_acquired_ns(const struct pb_raster *raster, int32_t line);
/* Returns true if such a line never arrived, and has the nodata value. Thread: any. */
bool pb_raster_is_gap(const struct pb_raster *raster, int32_t line);
/* Finds the first gap at or after line `from`. Returns the count of its lines and sets *out_first;
 * 0 = not found. NULL is allowed. Thread: any. */
int32_t pb_raster_next_gap(const struct pb_raster *raster, int32_t from, int32_t *out_first);
/* Returns true if the file is or was a segment of lines. NULL is allowed. Thread: any. */
bool pb_raster_has_lines(const struct pb_raster *raster);
/* Ends all reads that wait for lines, now and later: they return -ECANCELED. Thread: any. */
void pb_raster_abort(const struct pb_raster *raster);

/* Reads one or two windows as pb_raster_read does, each with its own result; with
 * pb_raster_is_ahead two at once, without whole blocks in memory. */
struct pb_read_result {
    int rc;
    struct pb_err err;
};
void pb_raster_read_two(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                        const struct pb_window *to, unsigned n, struct pb_read_result *out_result);

/* pb_raster_is_ahead: true if the decoder is faster when it knows the next read.
 * pb_raster_expect: sets the rectangle of the next read, inside the image; empty if unknown.
 * Only the speed depends on it. */
bool pb_raster_is_ahead(const struct pb_raster *raster);
void pb_raster_expect(struct pb_raster *raster, const struct pb_rect *rect);

/* Copies a compressed tile of a file with info->own_blocks, with all bands together or the only
 * one. *out_bytes is 0 if the tile is not stored or larger than `capacity`. Errors of reading,
 * as above. Thread: any, also while others use the raster. */
int pb_raster_stored_block(const struct pb_raster *raster, uint32_t col, uint32_t row, void *out,
                           size_t capacity, struct pb_err *err, size_t *out_bytes);

/* Returns -EAGAIN with input.changed if the file at the path is no longer the one that was
 * opened (inode, size, mtime, ctime). */
int pb_raster_unchanged(const struct pb_raster *raster, struct pb_err *err);

/* GDAL's block cache is one per process: every open run reserves its part, the limit is the sum
 * (and a small minimum). */
void pb_raster_cache_reserve(int64_t bytes); /* negative releases */

/* Memory of one reader, for the plan (raster_memory.c; pure). pb_raster_reader_bytes: memory of
 * an open raster outside the cache: one decoded and one stored block. pb_raster_cache_bytes:
 * least cache with which no block is decoded twice while windows like this one advance along a
 * row of the image: one block of every band if the window begins and ends on block columns or
 * spans the image, else every block of the rows it touches. */
uint64_t pb_raster_reader_bytes(const struct pb_raster_info *info);
/* Returns true if the blocks of its file are compressed. */
static inline bool pb_raster_is_compressed(const struct pb_raster_info *info)
{
    return info->tiff_compression != 1;
}
/* Returns the rows of a block as it is stored. */
static inline int32_t pb_raster_stored_rows(const struct pb_raster_info *info)
{
    return info->stored_block_h > 0 ? info->stored_block_h : info->block_h;
}
uint64_t pb_raster_sample_bytes(const struct pb_raster_info *info); /* bytes of a stored sample */
uint64_t pb_raster_cache_bytes(const struct pb_raster_info *info, const struct pb_rect *window);

/* TIFF tag to write into a product. */
struct pb_tiff_tag {
    uint16_t tag, type; /* TIFF field types: 2 ASCII, 3 SHORT, 12 DOUBLE, ... */
    uint64_t count;
    void *value; /* count values in host byte order, owned by the list */
};

struct pb_tiff_tags {
    struct pb_tiff_tag *tag; /* ascending by tag */
    size_t n;
};

/* Properties of one band of a product in addition to its pixels. */
struct pb_band_facts {
    double scale, offset;        /* value = stored * scale + offset; scale 0: not specified */
    char unit[32];               /* "" = not specified */
    int32_t color;               /* as in struct pb_raster_band; 0 = not specified */
    const uint8_t (*colours)[4]; /* colour table of n_colours entries; 0 = none. Borrowed. Only for
                                    a product of one band of unsigned 8 or 16 bits */
    size_t n_colours;
};

/* Metadata of a product in addition to those taken over from the scene. */
struct pb_geo_extra {
    const char *const *band_names;     /* descriptions of the product's bands; NULL = none */
    const struct pb_band_facts *facts; /* facts of the same bands; NULL = none */
    size_t n_bands;
    bool has_nodata;
    double nodata;
    enum pb_type type;              /* type of the product: decides how nodata is written */
    const struct pb_geometry *grid; /* grid of the product; NULL = the scene's */
    const struct pb_raster *placed; /* raster with the product's georeferencing; NULL = the scene */
};

/* Makes the tags with the scene's CRS, geotransform (or GCPs), RPCs and the extras: GeoKeys
 * (34735..34737), model tags (33550, 33922, 34264), RPC (50844), GDAL_METADATA (42112),
 * GDAL_NODATA (42113), and a colour map (320). GDAL writes them into a one-block file in memory,
 * from which they are extracted, so that metadata has only one encoding. */
int pb_raster_geo_tags(struct pb_raster *raster, const struct pb_geo_extra *extra,
                       struct pb_err *err, struct pb_tiff_tags *out_tags);
void pb_tiff_tags_free(struct pb_tiff_tags *tags);

/* Footprint in longitude/latitude (WGS 84): the outline of the image, or of a grid on it (of the
 * Earth, if a grid extends beyond it), in the form of GeoJSON: rings that are cut at the
 * antimeridian and routed over a pole inside, counter-clockwise, first point = last. Each ring
 * is a separate polygon; with has_hole the second one is a hole in the first, and there are no
 * others. From the geotransform, else GCPs, else RPC. bbox is the smallest box that contains the
 * rings. Returns 0; -ENODATA (no error filled) if the scene cannot be placed on the Earth. */
#define PB_FOOTPRINT_POINTS 640
#define PB_FOOTPRINT_RINGS  12
struct pb_footprint {
    double lonlat[PB_FOOTPRINT_POINTS][2]; /* -180 .. 180, -90 .. 90 */
    size_t n, n_rings;
    size_t first[PB_FOOTPRINT_RINGS + 1]; /* first[i] .. first[i + 1] - 1: the points of ring i */
    bool has_hole;
    double bbox[4]; /* west, south, east, north; west > east when it crosses the antimeridian */
    /* Corners of the image: upper left, lower left, lower right, upper right. Their longitudes are
     * continuous, therefore some may be beyond 180 degrees. */
    bool has_corners; /* false if one is not on the Earth */
    double corner[4][2];
};
int pb_raster_footprint(struct pb_raster *raster, const struct pb_geometry *grid,
                        struct pb_footprint *out_footprint);
/* Returns true if two scenes have the same coordinate system, or both have no system. */
bool pb_raster_same_crs(const struct pb_raster *a, const struct pb_raster *b);
/* The CRS as WKT2:2019 and as PROJJSON text; malloc'd, the caller's; NULL if absent or not
 * expressible. */
char *pb_raster_wkt2(struct pb_raster *raster);
char *pb_raster_projjson(struct pb_raster *raster);
/* Name and version for the processing record: "GDAL 3.6.2". Static. */
const char *pb_raster_library(void);
#endif
