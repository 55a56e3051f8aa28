/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RAMP_H
#define PB_RAMP_H
/* Colour ramp: colours at values, and the rule between them. ramps.def has the named ramps;
 * colour_file.h reads one from a file; the colour table of a scene is one, too. Immutable after
 * creation; any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_ramp_between {
    PB_RAMP_BLEND,   /* linear between two stops; beyond the ends the colour of the end */
    PB_RAMP_NEAREST, /* the nearest stop; half way, the upper one */
    PB_RAMP_EXACT    /* values of stops only; all others get `other` */
};

struct pb_ramp_stop {
    double at;
    bool is_share; /* at is a fraction of the range, 0 .. 1, instead of a value */
    uint8_t rgba[4];
};

struct pb_ramp {
    const struct pb_ramp_stop *stop; /* in the order of the file; borrowed */
    size_t n;                        /* 1 .. PB_RAMP_STOPS_MAX */
    enum pb_ramp_between between;
    uint8_t invalid[4]; /* colour of invalid pixels: transparent unless set by a file */
    uint8_t other[4];   /* for PB_RAMP_EXACT; transparent unless set by a file */
};

#define PB_RAMP_STOPS_MAX 65536

/* Names of ramps.def as the choices of a key: "none|grey|viridis|...". */
extern const char pb_ramp_choices[];
/* Source and licence of a ramp in one line. NULL for "none" (0) and past the end. */
const char *pb_ramp_source(int choice);
/* Fills *out with the ramp of a choice >= 1; its stops are shares of the range. `stops` is room for
 * PB_RAMP_NAMED_STOPS, borrowed by *out. */
#define PB_RAMP_NAMED_STOPS 256
void pb_ramp_named(int choice, struct pb_ramp_stop *stops, struct pb_ramp *out);

/* Returns true if a stop is a fraction of the range, so that a range is needed. */
bool pb_ramp_needs_range(const struct pb_ramp *ramp);

/* A ramp over a range: for pixels. */
struct pb_ramp_table;
uint64_t pb_ramp_table_bytes(const struct pb_ramp *ramp);
/* ramp: copied. low and high: ends of the range; not used by ramps without fractions. NULL: out
 * of memory. */
struct pb_ramp_table *pb_ramp_table_create(const struct pb_ramp *ramp, double low, double high);
void pb_ramp_table_destroy(struct pb_ramp_table *table); /* NULL is fine */
/* Count of its stops, and the value of stop i, in ascending order. */
size_t pb_ramp_table_stops(const struct pb_ramp_table *table);
double pb_ramp_table_stop(const struct pb_ramp_table *table, size_t i);
/* NaN and the infinities are invalid. */
void pb_ramp_colour(const struct pb_ramp_table *table, double value, uint8_t rgba[4]);
#endif
