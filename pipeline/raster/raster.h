/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_H
#define PB_RASTER_H
/* Reading scenes, and everything else of rasters that needs GDAL: only raster_gdal*.c behind it
 * know GDAL. Only GDAL's drivers for TIFF and JPEG 2000 ever open a
 * file; sidecars and directory scans are
 * off. What a header declares is held against limits before anything is read. A pb_raster belongs
 * to one thread at a time; open one per thread. */
#include "config/config.h"
#include "kernels/geometry.h"
#include "pipeline/raster/complex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_raster;

struct pb_raster_band {
    bool has_nodata;
    bool nodata_unreadable; /* the file has a nodata tag, but it is no number */
    bool nodata_unfit;      /* it declares a value that the type cannot hold (kernels/nodata.h):
                               has_nodata is false, nodata the value */
    double nodata;
    bool is_alpha;
    char description[128]; /* valid UTF-8, no control characters; "" = none */
    double scale, offset;  /* as tagged; for information only, never applied by itself */
    char unit[32];         /* of the values: "m"; like description */
    int32_t color;         /* GDAL's colour interpretation: 0 none, 1 gray, 2 palette, 3 red, ... */
    bool is_class; /* integers with a colour table or names of categories, or a quality band by its
                      description */
};

struct pb_raster_info {
    int32_t width, height;
    int32_t n_bands;      /* 1 .. PB_BANDS_MAX */
    int32_t n_pages_more; /* images of the file behind the first, which are not read; no overviews,
                             no masks */
    enum pb_type type;    /* of the pixels that are read; complex ones are read as float32 */
    struct pb_complex complex; /* pb_raster_choose_complex */
    int32_t block_w, block_h;
    bool pixel_interleaved; /* all bands of a block decode together */
    bool has_mask;          /* a mask or an alpha band: pb_raster_read fills `mask` */
    int32_t alpha_band;     /* 1-based, what it is made from; 0 = none, or a mask goes before it */
    int32_t data_alpha;     /* 1-based: a band tagged as alpha that is read as data, because the
                               configuration names it; 0 = none */
    const char *not_looked_at; /* "its nodata values": what pb_raster_choose_valid left out; NULL =
                                  nothing. Static */
    bool has_palette;          /* band 1 is an index into a colour table: classes, as a rule */
    const uint8_t (*palette)[4]; /* its colours: red, green, blue, alpha; owned by the raster */
    size_t n_palette;
    bool lossy;
    bool top_down; /* one compressed strip holds the image: rows decode in order, and going back
                      starts over */
    uint64_t stored_block_bytes; /* of the largest block as it lies in the file */
    bool is_made;                /* pb_raster_make: there is no file */
    bool own_blocks;             /* decoded by block_reader.c: GDAL caches none of them; then: */
    bool tiled, big_endian;
    uint16_t tiff_compression, tiff_predictor; /* of tags 259 and 317 */
    uint64_t decoder_bytes;                    /* what our own decoders hold */
    char compression[32];                      /* "NONE", "DEFLATE", ... */
    bool has_transform;
    double transform[6];        /* GDAL order: x0, dx/dcol, dx/drow, y0, dy/dcol, dy/drow; finite,
                                   invertible */
    struct pb_ground_unit unit; /* of the CRS's x and y */
    bool has_orientation;       /* by the transform, else by GCPs or RPCs */
    double orientation[4];      /* about: dx/dcol, dx/drow, dy/dcol, dy/drow */
    bool has_crs;               /* of the image, else of its GCPs */
    char crs_code[64];          /* "EPSG:32622" or "" */
    int32_t n_gcps;
    bool has_rpc;
    char datetime[32]; /* TIFFTAG_DATETIME as RFC 3339 (taken as UTC), or "" */
    uint64_t file_bytes;
    int64_t file_mtime_ns;
    struct pb_raster_band band[PB_BANDS_MAX];
};

/* Once per process, before any other call, on the main thread. Idempotent. */
void pb_raster_init(void);

/* Whether PROJ finds its database: without it a CRS is not there. system, with a message that says
 * what to install or set. Does what pb_raster_init does. Looks until it was found once, in this
 * process or in one that it was forked from. Thread: any. */
int pb_raster_ready(struct pb_err *err);
/* Makes GDAL and PROJ load their tables for CRSs (tens of milliseconds), by a one-pixel scene in
 * memory, for this thread and for forks of it. Failures are ignored: a scene will report them. */
void pb_raster_warm(void);

/* Opens and checks. On failure *err has the code (input.missing, input.not_tiff,
 * input.truncated, input.unsupported, input.limit, input.damaged) and a message with GDAL's
 * text; failures of the machine are input.io, memory or system.files. Later reads go through the
 * descriptor opened here. */
int pb_raster_open(const char *path, const struct pb_limits *limits, struct pb_err *err,
                   struct pb_raster **out_raster);
/* The same file for another thread that reads its pixels: through a descriptor and with decoders of
 * its own, with the metadata that `first` has read, so without parsing the CRS, which takes longer
 * than a small scene. Only for pb_raster_read. first stays open meanwhile. limits: those of the
 * first. Thread: any; first may be used by others at the same time. */
int pb_raster_open_again(const struct pb_raster *first, const struct pb_limits *limits,
                         struct pb_err *err, struct pb_raster **out_raster);
/* A raster without a file: pixels that a function makes of `of`, both of which stay. `fill`
 * writes the pixels of rect, which lies inside, of band `band` (from 1); it is called by several
 * threads at the same time. 0, or what pb_fail returns. Of the calls below it takes those that read
 * pixels. */
typedef int pb_raster_fill(const void *of, int32_t band, const struct pb_rect *rect, void *out,
                           size_t row_bytes, struct pb_err *err);
struct pb_raster_made {
    int32_t width, height, n_bands;
    enum pb_type type; /* of what fill makes */
    pb_raster_fill *fill;
    const void *of;
};
int pb_raster_make(const struct pb_raster_made *made, struct pb_err *err,
                   struct pb_raster **out_raster);
/* What pb_raster_info says of it. */
void pb_raster_made_info(const struct pb_raster_made *made, struct pb_raster_info *out_info);
void pb_raster_close(struct pb_raster *raster);
const struct pb_raster_info *pb_raster_info(const struct pb_raster *raster);
/* How cloudy it is in percent, by metadata in the file or its sidecars (CLOUDCOVER of GDAL's domain
 * IMAGERY); NaN: they do not say it. */
double pb_raster_cloud_cover(struct pb_raster *raster);
/* When it was taken, in UTC, by the same (ACQUISITIONDATETIME), as it is written there; "" = they
 * do not say it. TIFFTAG_DATETIME is when the file was made. */
void pb_raster_acquired(struct pb_raster *raster, char *out, size_t bytes);
/* What says from now on which pixels are valid: takes mask or nodata values out of the info where
 * they do not count, and says so in info->not_looked_at. AUTO is the precedence of GDAL's RFC 15
 * (mask, nodata, alpha), but that an alpha band which `bands` names is data: info->data_alpha.
 * bands: n of them, of the configuration of this file; borrowed. Before the first read, and before
 * it is opened again. */
void pb_raster_choose_valid(struct pb_raster *raster, enum pb_valid valid,
                            const struct pb_band_config *bands, size_t n_bands);

/* What complex pixels become, as input.complex and input.nodata say. */
struct pb_complex_choice {
    bool is_given; /* else a file of complex pixels is refused */
    enum pb_complex_as as;
    bool has_nodata; /* in place of the file's */
    double nodata;
};
/* How complex pixels are read from now on; nodata becomes NaN as they are and is no more in the
 * info. Nothing changes where pixels are real. input.complex when it has to be given and is not.
 * After pb_raster_choose_valid, before the first read, and before it is opened again. */
int pb_raster_choose_complex(struct pb_raster *raster, const struct pb_complex_choice *choice,
                             struct pb_err *err);

/* Reads the pixels to->rect, which lies inside the image, in the type of the info; plane i is band
 * bands[i] (1-based). A mask, where the window has one, gets 0 for pixels that are invalid by mask
 * or alpha. The nodata value is not looked at. A block that does not decode completely and
 * consistently fails the read: input.damaged or input.truncated with codec and block, or with the
 * window and GDAL's words; a read that the system refused: input.io, memory. */
int pb_raster_read(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                   const struct pb_window *to, struct pb_err *err);

/* Whether the decoder gains from being told what will be read next; and the rectangle of the next
 * read, in the image; an empty one when it is unknown. Nothing depends on it but the speed. */
bool pb_raster_is_ahead(const struct pb_raster *raster);
void pb_raster_expect(struct pb_raster *raster, const struct pb_rect *rect);

/* A tile of a file with info->own_blocks, all bands together or the only one, as the file has it:
 * compressed. *out_bytes is 0 when it is not stored, or takes more than `capacity`. Errors of
 * reading, as above. Thread: any, also while others use the raster. */
int pb_raster_stored_block(const struct pb_raster *raster, uint32_t col, uint32_t row, void *out,
                           size_t capacity, struct pb_err *err, size_t *out_bytes);

/* -EAGAIN with input.changed when the file at the path is no longer the one that was opened (inode,
 * size, mtime, ctime). */
int pb_raster_unchanged(const struct pb_raster *raster, struct pb_err *err);

/* GDAL's block cache is one per process: every open run reserves its part, the cap is the sum (and
 * a small floor). */
void pb_raster_cache_reserve(int64_t bytes); /* negative gives back */

/* The memory of one reader, for the plan (raster_memory.c; pure). pb_raster_reader_bytes: what an
 * open raster holds outside the cache: one decoded and one stored block. pb_raster_cache_bytes: the
 * part of the cache without which blocks are decoded more than once when windows like this one go
 * along a row of the image: one block of every band when the window begins and ends on block
 * columns or spans the image, else every block of the rows it touches. */
uint64_t pb_raster_reader_bytes(const struct pb_raster_info *info);
uint64_t pb_raster_sample_bytes(const struct pb_raster_info *info); /* as the file has them */
uint64_t pb_raster_cache_bytes(const struct pb_raster_info *info, const struct pb_rect *window);

/* A TIFF tag as it goes into a product. */
struct pb_tiff_tag {
    uint16_t tag, type; /* TIFF field types: 2 ASCII, 3 SHORT, 12 DOUBLE, ... */
    uint64_t count;
    void *value; /* count values in host byte order, owned by the list */
};

struct pb_tiff_tags {
    struct pb_tiff_tag *tag; /* ascending by tag */
    size_t n;
};

/* What one band of a product is besides pixels. */
struct pb_band_facts {
    double scale, offset;        /* value = stored * scale + offset; scale 0: nothing is said */
    char unit[32];               /* "": nothing is said */
    int32_t color;               /* as in struct pb_raster_band; 0: nothing is said */
    const uint8_t (*colours)[4]; /* n_colours, its colour table; 0 = none. Borrowed. Of a product of
                                    one band of 8 or 16 bits without a sign */
    size_t n_colours;
};

/* Metadata to put on a product besides what it takes over from the scene. */
struct pb_geo_extra {
    const char *const *band_names;     /* descriptions of the product's bands; NULL = none */
    const struct pb_band_facts *facts; /* of the same; NULL = none */
    size_t n_bands;
    bool has_nodata;
    double nodata;
    enum pb_type type;              /* of the product: decides how nodata is spelled */
    const struct pb_geometry *grid; /* of the product; NULL = the scene's */
    const struct pb_raster *placed; /* where the product lies; NULL = the scene's place */
};

/* The tags that carry the scene's CRS, geotransform (or GCPs), RPCs and the extras: GeoKeys
 * (34735..34737), model tags (33550, 33922, 34264), RPC (50844), GDAL_METADATA (42112), GDAL_NODATA
 * (42113), and a colour map (320). Made by GDAL itself, by writing a one-block file in memory and
 * taking its tags, so that there is one way metadata is spelled. */
int pb_raster_geo_tags(struct pb_raster *raster, const struct pb_geo_extra *extra,
                       struct pb_err *err, struct pb_tiff_tags *out_tags);
void pb_tiff_tags_free(struct pb_tiff_tags *tags);

/* Footprint in longitude/latitude (WGS 84): the outline of the image, or of a grid on it (of the
 * Earth, where a grid reaches beyond it), as GeoJSON has it: rings that are cut at the antimeridian
 * and led over a pole that lies inside, counter-clockwise, first point = last. Each ring is a
 * polygon of its own; with has_hole the second one is a hole in the first, and there are no others.
 * From the geotransform, else GCPs, else RPC. bbox is the smallest one that holds the rings. 0;
 * -ENODATA (no error filled) when the scene cannot be placed on the Earth. */
#define PB_FOOTPRINT_POINTS 640
#define PB_FOOTPRINT_RINGS  12
struct pb_footprint {
    double lonlat[PB_FOOTPRINT_POINTS][2]; /* -180 .. 180, -90 .. 90 */
    size_t n, n_rings;
    size_t first[PB_FOOTPRINT_RINGS + 1]; /* first[i] .. first[i + 1] - 1: the points of ring i */
    bool has_hole;
    double bbox[4]; /* west, south, east, north; west > east when it crosses the antimeridian */
};
int pb_raster_footprint(struct pb_raster *raster, const struct pb_geometry *grid,
                        struct pb_footprint *out_footprint);
/* Whether two scenes have the same coordinate system, or neither has one. */
bool pb_raster_same_crs(const struct pb_raster *a, const struct pb_raster *b);
/* The CRS as WKT2:2019 and as PROJJSON text; malloc'd, the caller's; NULL when there is none or it
 * cannot be said. */
char *pb_raster_wkt2(struct pb_raster *raster);
char *pb_raster_projjson(struct pb_raster *raster);
/* "GDAL 3.6.2": for the processing record. Static. */
const char *pb_raster_library(void);
#endif
