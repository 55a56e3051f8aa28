/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_META_READER_H
#define PB_META_READER_H
/* What a family reads its facts with. The first mistake sticks: after it every call finds nothing,
 * so a family needs no checks of its own. One thread. */
#include "pipeline/metadata/meta_tree.h"
#include "pipeline/metadata/metadata.h"

#define PB_META_TOLD_MAX 32

struct pb_meta_reader {
    struct pb_metadata *out;
    const char *name; /* of the file being read */
    struct pb_err *err;
    int rc; /* of the first mistake */
    /* Which file told which fact, for words about two that contradict each other. */
    struct {
        const void *fact;
        const char *name;
    } told[PB_META_TOLD_MAX];
    size_t n_told;
};

/* Mistakes: a value that is missing or impossible; two that contradict each other. */
void pb_meta_wrong(struct pb_meta_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pb_meta_conflict(struct pb_meta_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text at a path (pb_meta_child) below node; need_: wrong when it is missing or empty. NULL then.
 */
const char *pb_meta_need_text(struct pb_meta_reader *r, const struct pb_meta_node *node,
                              const char *path);
/* A finite number; NaN when there is none. Wrong when it is no number, or outside of low .. high.
 */
double pb_meta_number(struct pb_meta_reader *r, const struct pb_meta_node *node, const char *path,
                      double low, double high);
double pb_meta_need_number(struct pb_meta_reader *r, const struct pb_meta_node *node,
                           const char *path, double low, double high);
/* The same of a text; what: its name for messages. */
double pb_meta_number_of(struct pb_meta_reader *r, const char *text, const char *what, double low,
                         double high);

/* Copies a fact. A different one that another file has told is a conflict; what: its name. NULL or
 * empty text changes nothing. */
void pb_meta_set_text(struct pb_meta_reader *r, char *fact, size_t bytes, const char *text,
                      const char *what);
#define PB_META_SET(r, member, text, what)                                                         \
    pb_meta_set_text(r, (r)->out->member, sizeof(r)->out->member, text, what)
/* The number if none is known yet; one that another file has told and that is more than 1 off
 * (degrees, percent, metres, orbits) is a conflict. NaN changes nothing. */
void pb_meta_set_number(struct pb_meta_reader *r, double *fact, double number, const char *what);
/* Sets the acquisition time from an ISO 8601 text with or without zone (taken as UTC). exact:
 * replaces one that another file has told. More than an hour off is a conflict. */
void pb_meta_set_time(struct pb_meta_reader *r, const char *text, bool exact);
/* A time on a day: "2020-10-31" and "14:31:47.8083990Z". */
void pb_meta_set_day_time(struct pb_meta_reader *r, const char *day, const char *time);

/* Sets the tile of a producer's grid. pb_meta_set_wrs: Landsat's path and row, three digits each;
 * NaN changes nothing. pb_meta_set_item_tile: from the properties of a STAC item (grid:code,
 * s2:mgrs_tile, landsat:wrs_path and landsat:wrs_row). MGRS tiles are "T33XWJ"; a code of another
 * grid stays as it is, and one that is too long, or has other characters than a name of a file
 * may have, is none. */
void pb_meta_set_wrs(struct pb_meta_reader *r, double path, double row);
void pb_meta_set_item_tile(struct pb_meta_reader *r, const struct pb_meta_node *properties);

/* Sets the direction of the orbit from a producer's word for it. */
void pb_meta_set_orbit(struct pb_meta_reader *r, const char *word);
double pb_meta_azimuth(double degrees); /* 0 .. 360 */

/* The band of that id, a leading "B" and zeros apart; added when there is none. NULL: too many. */
struct pb_meta_band *pb_meta_band(struct pb_meta_reader *r, const char *id);
void pb_meta_set_file(struct pb_meta_band *band, const char *file);
void pb_meta_set_scale(struct pb_meta_band *band, enum pb_quantity to, double gain, double offset);
/* "4" of "B4", "B04" and "4"; "8A" of "B8A"; other names as they are. */
void pb_meta_band_id(const char *name, char *out, size_t bytes);

/* Distance of earth and sun in astronomical units at the acquisition (U.S. Naval Observatory's
 * approximation, as the WorldView handbook has it); NaN: the time is not known. */
double pb_meta_sun_distance(const struct pb_metadata *facts);
/* sin(sun elevation); a mistake when that is not known or the sun is not above the horizon. */
double pb_meta_sun_height(struct pb_meta_reader *r);
#endif
