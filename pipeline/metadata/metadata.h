/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METADATA_H
#define PB_METADATA_H
/* Metadata that a producer delivers with a scene: plain facts, one struct for all families of
 * products (families.def). The files are read completely, with limits on size, depth and number
 * of entries, and only by a process that may decode foreign files. Nothing is assumed: unknown
 * facts are "" or NaN, and contradictions are errors. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_METADATA_BANDS_MAX 32
#define PB_METADATA_BYTES_MAX (16 * 1024 * 1024) /* bytes of one file */

/* Quantity to which stored values can be converted. */
enum pb_quantity {
    PB_QUANTITY_TOA,         /* reflectance at the top of the atmosphere, 0 .. 1 */
    PB_QUANTITY_SURFACE,     /* reflectance of the surface, 0 .. 1 */
    PB_QUANTITY_RADIANCE,    /* at the sensor, W / (m2 sr um) */
    PB_QUANTITY_TEMPERATURE, /* K: of brightness, or of the surface for products that have it */
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
    bool is_word;   /* the id is a word of the names of its files, case aside: VV */
    char id[16];    /* producer's id without a leading "B": "4", "8A", "ST_B10" */
    char file[128]; /* base name of its file without suffix; "" = unknown */
    int number;     /* in a file that has all bands, from 1; 0 = unknown */
    struct pb_meta_scale to[PB_QUANTITIES];
    double k1, k2; /* constants of Planck's law for the sensor: T = k2 / ln(k1 / radiance + 1); NaN
                      = unknown */
};

struct pb_metadata_family;

struct pb_metadata {
    const struct pb_metadata_family *family;              /* NULL = no metadata were read */
    char platform[32], constellation[32], instrument[32]; /* in the form of STAC: "landsat-8" */
    char product[160];                                    /* the producer's name of the product */
    char level[16];                                       /* "L1TP", "L2A", ... */
    char baseline[16];       /* baseline of the processor, as written: "05.09" */
    char datetime[40];       /* acquisition time, RFC 3339 in UTC */
    char start[40], end[40]; /* interval of a product of several observations, in the form of
                                datetime, which is "" then; "" = unknown */
    double sun_azimuth, sun_elevation, view_azimuth, off_nadir, incidence; /* degrees */
    double cloud_cover;                                                    /* percent */
    double gsd;                                                            /* metres */
    char orbit_state[16]; /* "ascending", "descending" */
    double relative_orbit, absolute_orbit;
    char tile[16];                 /* tile of the grid of the producer: "T33XWJ", "001062" */
    char crs[32];                  /* CRS of the bands: "EPSG:32633" */
    char boa_offset[96];           /* text: why an offset is applied or not; "" = not applicable */
    char rule[PB_QUANTITIES][160]; /* rule of the conversion, as text; "" = impossible */
    char why_not[PB_QUANTITIES][200]; /* text: why that is impossible; "" = unknown */
    struct pb_meta_band band[PB_METADATA_BANDS_MAX];
    size_t n_bands;
    /* Members for radar; "" and NaN for other sensors. */
    char radar_mode[8];                               /* "IW" */
    double radar_ghz, range_spacing, azimuth_spacing; /* carrier; metres of a pixel */
    struct pb_sar *sar;                               /* its tables; NULL if absent */
};

/* Kind of product and recognition of its metadata. */
struct pb_meta_reader;
struct pb_meta_node;
struct pb_metadata_family {
    const char *name;   /* value of calibrate.sensor */
    bool facts_only;    /* its documents do not define stored values: not a choice of that key */
    const char *files;  /* for users: the files of the family */
    const char *source; /* handbook that defines the rules */
    const char *constellation;
    const char *companion; /* for users: file with the angles of the sun; NULL = not needed */
    /* Returns true if a document is of this family, from its first nodes. */
    bool (*is_one)(const struct pb_meta_node *root);
    /* Reads the facts of one document. Errors are reported to the reader. */
    void (*read)(struct pb_meta_reader *r, const struct pb_meta_node *root);
    /* Derives facts after all files were read. NULL = nothing to derive. */
    void (*finish)(struct pb_meta_reader *r);
    /* Returns the reason why a raster file of that name (without suffix) cannot belong to these
     * metadata, or cannot be converted to that quantity; static text. NULL = no objection; a
     * family without the function never objects. */
    const char *(*refuses)(const struct pb_metadata *facts, const char *stem, enum pb_quantity to);
};

/* The families, in the order of families.def. */
size_t pb_metadata_family_count(void);
const struct pb_metadata_family *pb_metadata_family_at(size_t i);

/* Initialises facts as unknown. fini frees the memory of facts, and initialises them again. */
void pb_metadata_init(struct pb_metadata *out);
void pb_metadata_fini(struct pb_metadata *facts);
/* Reads and combines the facts of one scene from its open files, 1 .. PB_METADATA_FILES_MAX, all
 * of one family. Returns 0; or a negative errno with input.metadata_invalid (syntax, limits),
 * input.metadata_unknown (no family), input.metadata_value, input.metadata_conflict (names both
 * files if two contradict each other); a failing disk is input.io. On failure *out is as after
 * pb_metadata_init. Thread: worker. */
struct pb_raster_file;
struct pb_sar;
int pb_metadata_read_files(struct pb_raster_file *files, size_t n_files, struct pb_metadata *out,
                           struct pb_err *err);
/* The same for texts in memory; names for messages. */
struct pb_metadata_text {
    const char *name;
    const char *text;
    size_t bytes;
};
int pb_metadata_parse(const struct pb_metadata_text *texts, size_t n_texts, struct pb_metadata *out,
                      struct pb_err *err);
const char *pb_quantity_name(enum pb_quantity quantity); /* "toa", ... */
#endif
