/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_H
#define PB_METADATA_H
/* What the metadata that a producer delivers with a scene say of it: plain facts, one struct for
 * all families of products (families.def). The files are read whole, with limits on size, depth and
 * number of entries, and only by a process that may decode foreign files. Nothing is assumed: what
 * the files do not say is "" or NaN, and what contradicts itself is an error. */
#include "config/base/err.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_METADATA_BANDS_MAX 32
#define PB_METADATA_BYTES_MAX (16 * 1024 * 1024) /* of one file */

/* What stored values can be turned into. */
enum pb_quantity {
    PB_QUANTITY_TOA,         /* reflectance at the top of the atmosphere, 0 .. 1 */
    PB_QUANTITY_SURFACE,     /* reflectance of the surface, 0 .. 1 */
    PB_QUANTITY_RADIANCE,    /* at the sensor, W / (m2 sr um) */
    PB_QUANTITY_TEMPERATURE, /* K: of brightness, or of the surface for products that have that */
    PB_QUANTITY_SIGMA0,      /* backscatter of radar: power, by the area on the ground, */
    PB_QUANTITY_BETA0,       /* in the plane of range and azimuth, */
    PB_QUANTITY_GAMMA0       /* and across the line of sight */
};
#define PB_QUANTITIES 7

/* value = stored * gain + offset. */
struct pb_meta_scale {
    bool known;
    double gain, offset;
};

struct pb_meta_band {
    bool is_word; /* the id is a word of the names of its files, of either case: VV */
    char
        id[16]; /* as the producer counts or calls it, without a leading "B": "4", "8A", "ST_B10" */
    char file[128]; /* base name of its file without suffix; "" = not said */
    int number;     /* in a file that has all bands, from 1; 0 = not said */
    struct pb_meta_scale to[PB_QUANTITIES];
    double k1, k2; /* of Planck's law for the sensor: T = k2 / ln(k1 / radiance + 1); NaN = none */
};

struct pb_metadata_family;

struct pb_metadata {
    const struct pb_metadata_family *family;              /* NULL = no metadata were read */
    char platform[32], constellation[32], instrument[32]; /* as STAC writes them: "landsat-8" */
    char product[160];                                    /* the producer's name of the product */
    char level[16];                                       /* "L1TP", "L2A", ... */
    char baseline[16];       /* of the processor, as it is written: "05.09" */
    char datetime[40];       /* of the acquisition, RFC 3339 in UTC */
    char start[40], end[40]; /* interval of a product of several observations, as datetime, which is
                                "" then; "" = unknown */
    double sun_azimuth, sun_elevation, view_azimuth, off_nadir, incidence; /* degrees */
    double cloud_cover;                                                    /* percent */
    double gsd;                                                            /* metres */
    char orbit_state[16]; /* "ascending", "descending" */
    double relative_orbit, absolute_orbit;
    char tile[16];                 /* of the grid of the producer: "T33XWJ", "001062" */
    char crs[32];                  /* of the bands: "EPSG:32633" */
    char boa_offset[96];           /* in words, why an offset is applied or not; "" = not asked */
    char rule[PB_QUANTITIES][160]; /* in words, how a band becomes that; "" = it cannot */
    char why_not[PB_QUANTITIES][200]; /* in words, what keeps it from that; "" = nothing is known */
    struct pb_meta_band band[PB_METADATA_BANDS_MAX];
    size_t n_bands;
    /* Of radar; "" and NaN where it is none. */
    char radar_mode[8];                               /* "IW" */
    double radar_ghz, range_spacing, azimuth_spacing; /* of the carrier; metres of a pixel */
    struct pb_sar *sar;                               /* its tables; NULL: there are none */
};

/* A kind of product and how its metadata look. */
struct pb_meta_reader;
struct pb_meta_node;
struct pb_metadata_family {
    const char *name;   /* as calibrate.sensor calls it */
    bool facts_only;    /* its documents say nothing of stored values: no choice of that key */
    const char *files;  /* for people: which files it is */
    const char *source; /* the handbook that the rules are from */
    const char *constellation;
    const char *companion; /* for people: which other file has the angles of the sun; NULL = none */
    /* Whether a document is of this family, by its first nodes. */
    bool (*is_one)(const struct pb_meta_node *root);
    /* Takes the facts of one document. Mistakes go to the reader. */
    void (*read)(struct pb_meta_reader *r, const struct pb_meta_node *root);
    /* When all files were read: what follows from them together. NULL = nothing. */
    void (*finish)(struct pb_meta_reader *r);
    /* Why a raster file of that name (without suffix) cannot be what these metadata are of, or
     * cannot become that; static text. NULL = it can, and a family without the function has no say.
     */
    const char *(*refuses)(const struct pb_metadata *facts, const char *stem, enum pb_quantity to);
};

/* The families, in the order of families.def. */
size_t pb_metadata_family_count(void);
const struct pb_metadata_family *pb_metadata_family_at(size_t i);

/* Facts in which nothing is known. fini frees what facts own, and leaves such. */
void pb_metadata_init(struct pb_metadata *out);
void pb_metadata_fini(struct pb_metadata *facts);
/* Reads the facts of one scene from its open files, 1 .. PB_METADATA_FILES_MAX, all of one family:
 * what they say is put together. 0; or a negative errno with input.metadata_invalid (syntax,
 * limits), input.metadata_unknown (no family), input.metadata_value, input.metadata_conflict (names
 * both files when two contradict each other); a failing disk is input.io. *out as of
 * pb_metadata_init on failure. Thread: worker. */
struct pb_raster_file;
struct pb_sar;
int pb_metadata_read_files(struct pb_raster_file *files, size_t n_files, struct pb_metadata *out,
                           struct pb_err *err);
/* The same of texts in memory; names for messages. */
struct pb_metadata_text {
    const char *name;
    const char *text;
    size_t bytes;
};
int pb_metadata_parse(const struct pb_metadata_text *texts, size_t n_texts, struct pb_metadata *out,
                      struct pb_err *err);
const char *pb_quantity_name(enum pb_quantity quantity); /* "toa", ... */
#endif
