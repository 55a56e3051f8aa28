/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_META_READER_H
#define PB_META_READER_H
/* Reader by which a family reads its facts. The first error is sticky: after it every call finds
 * nothing, therefore a family needs no error checks. One thread. */
#include "pipeline/metadata/meta_tree.h"
#include "pipeline/metadata/metadata.h"

#define PB_META_TOLD_MAX 32

struct pb_meta_reader {
    struct pb_metadata *out;
    const char *name; /* name of the file being read */
    struct pb_err *err;
    int rc; /* code of the first error */
    /* File that set each fact, for messages about two contradictory files. */
    struct {
        const void *fact;
        const char *name;
    } told[PB_META_TOLD_MAX];
    size_t n_told;
};

/* Reports errors: a value that is missing or impossible; two that contradict each other. */
void pb_meta_wrong(struct pb_meta_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pb_meta_conflict(struct pb_meta_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the text at a path (pb_meta_child) below node; need_: an error if it is missing or
 * empty. NULL then. */
const char *pb_meta_need_text(struct pb_meta_reader *r, const struct pb_meta_node *node,
                              const char *path);
/* Returns a finite number; NaN if absent. An error if it is not a number, or outside of low ..
 * high. */
double pb_meta_number(struct pb_meta_reader *r, const struct pb_meta_node *node, const char *path,
                      double low, double high);
double pb_meta_need_number(struct pb_meta_reader *r, const struct pb_meta_node *node,
                           const char *path, double low, double high);
/* The same for a text, which messages name by `what`. */
double pb_meta_number_of(struct pb_meta_reader *r, const char *text, const char *what, double low,
                         double high);

/* Copies a fact, which messages name by `what`. A different value set by another file is a
 * conflict. NULL or empty text changes nothing. */
void pb_meta_set_text(struct pb_meta_reader *r, char *fact, size_t bytes, const char *text,
                      const char *what);
#define PB_META_SET(r, member, text, what)                                                         \
    pb_meta_set_text(r, (r)->out->member, sizeof(r)->out->member, text, what)
/* Sets the number if it is unknown; a difference of more than 1 (degrees, percent, metres,
 * orbits) from the value of another file is a conflict. NaN changes nothing. */
void pb_meta_set_number(struct pb_meta_reader *r, double *fact, double number, const char *what);
/* Sets the acquisition time from an ISO 8601 text with or without zone (UTC then). exact:
 * replaces the time of another file. A difference of more than an hour is a conflict. */
void pb_meta_set_time(struct pb_meta_reader *r, const char *text, bool exact);
/* Sets a time on a day: "2020-10-31" and "14:31:47.8083990Z". */
void pb_meta_set_day_time(struct pb_meta_reader *r, const char *day, const char *time);

/* Sets the tile of a producer's grid. pb_meta_set_wrs: Landsat's path and row, three digits
 * each; NaN changes nothing. pb_meta_set_item_tile: from the properties of a STAC item
 * (grid:code, s2:mgrs_tile, landsat:wrs_path and landsat:wrs_row). MGRS tiles are "T33XWJ"; a
 * code of another grid is copied, unless it is too long, or has characters that are not allowed
 * in file names. */
void pb_meta_set_wrs(struct pb_meta_reader *r, double path, double row);
void pb_meta_set_item_tile(struct pb_meta_reader *r, const struct pb_meta_node *properties);

/* Sets the direction of the orbit from a producer's word for it. */
void pb_meta_set_orbit(struct pb_meta_reader *r, const char *word);
double pb_meta_azimuth(double degrees); /* 0 .. 360 */

/* Finds the band of that id, without a leading "B" and zeros; adds it if absent. NULL: too many
 * bands. */
struct pb_meta_band *pb_meta_band(struct pb_meta_reader *r, const char *id);
void pb_meta_set_file(struct pb_meta_band *band, const char *file);
void pb_meta_set_scale(struct pb_meta_band *band, enum pb_quantity to, double gain, double offset);
/* Writes "4" for "B4", "B04" and "4"; "8A" for "B8A"; other names unchanged. */
void pb_meta_band_id(const char *name, char *out, size_t bytes);

/* Distance of earth and sun in astronomical units at the acquisition (U.S. Naval Observatory's
 * approximation, as in the WorldView handbook); NaN: unknown time. */
double pb_meta_sun_distance(const struct pb_metadata *facts);
/* Returns sin(sun elevation); an error if it is unknown or the sun is not above the horizon. */
double pb_meta_sun_height(struct pb_meta_reader *r);
#endif
