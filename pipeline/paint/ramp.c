/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Colours between two stops equal gdaldem's color-relief to the level: its rounding adds 0.45,
 * not a half. Stops are found by a guess, which is immediately right for equidistant stops, as
 * in all named ramps, else by bisection. */
#include "pipeline/paint/ramp.h"
#include "pipeline/paint/ramp_tables.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char pb_ramp_choices[] = "none"
#define PB_RAMP(name, colours, source) "|" #name
#include "pipeline/paint/ramps.def"
#undef PB_RAMP
    ;

static const struct {
    const char *colours, *source;
} named[] = {
    {"", NULL},
#define PB_RAMP(name, colours, source) {colours, source},
#include "pipeline/paint/ramps.def"
#undef PB_RAMP
};

const char *pb_ramp_source(int choice)
{
    return choice > 0 && (size_t)choice < sizeof named / sizeof named[0] ? named[choice].source
                                                                         : NULL;
}

static uint8_t hex(const char *two)
{
    char text[3] = {two[0], two[1], '\0'};
    return (uint8_t)strtoul(text, NULL, 16);
}

void pb_ramp_named(int choice, struct pb_ramp_stop *stops, struct pb_ramp *out)
{
    assert(pb_ramp_source(choice) != NULL);
    const char *colours = named[choice].colours;
    size_t n = strlen(colours) / 6;
    for (size_t i = 0; i < n; i++, colours += 6)
        stops[i] = (struct pb_ramp_stop){(double)i / (double)(n - 1),
                                         true,
                                         {hex(colours), hex(colours + 2), hex(colours + 4), 255}};
    *out = (struct pb_ramp){.stop = stops, .n = n};
}

bool pb_ramp_needs_range(const struct pb_ramp *ramp)
{
    bool needs = false;
    for (size_t i = 0; i < ramp->n; i++)
        needs = needs || ramp->stop[i].is_share;
    return needs;
}

/* --- over a range ----------------------------------------------------------------------------- */

struct entry {
    double at;
    size_t order; /* index in the file: of equal values the last one counts from there on */
    uint8_t rgba[4];
};

struct pb_ramp_table {
    enum pb_ramp_between between;
    uint8_t invalid[4], other[4];
    double per_entry; /* entries for one unit of value, for the guess */
    size_t n;
    struct entry entry[]; /* ascending */
};

static int by_value(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

uint64_t pb_ramp_table_bytes(const struct pb_ramp *ramp)
{
    return sizeof(struct pb_ramp_table) + ramp->n * sizeof(struct entry);
}

struct pb_ramp_table *pb_ramp_table_create(const struct pb_ramp *ramp, double low, double high)
{
    struct pb_ramp_table *table = malloc((size_t)pb_ramp_table_bytes(ramp));
    if (table == NULL)
        return NULL;
    table->between = ramp->between;
    table->n = ramp->n;
    memcpy(table->invalid, ramp->invalid, sizeof table->invalid);
    memcpy(table->other, ramp->other, sizeof table->other);
    for (size_t i = 0; i < ramp->n; i++) {
        const struct pb_ramp_stop *stop = &ramp->stop[i];
        struct entry *entry = &table->entry[i];
        entry->at = stop->is_share ? low + (high - low) * stop->at : stop->at;
        entry->order = i;
        memcpy(entry->rgba, stop->rgba, sizeof entry->rgba);
    }
    qsort(table->entry, table->n, sizeof table->entry[0], by_value);
    double span = table->entry[table->n - 1].at - table->entry[0].at;
    double per_entry = span > 0 ? (double)(table->n - 1) / span : 0;
    table->per_entry = isfinite(per_entry) ? per_entry : 0;
    return table;
}

void pb_ramp_table_destroy(struct pb_ramp_table *table)
{
    free(table);
}

size_t pb_ramp_table_stops(const struct pb_ramp_table *table)
{
    return table->n;
}

double pb_ramp_table_stop(const struct pb_ramp_table *table, size_t i)
{
    return table->entry[i].at;
}

/* Finds the last entry whose value is not above; `value` is between the first and the last. */
static size_t find(const struct pb_ramp_table *table, double value)
{
    const struct entry *entry = table->entry;
    size_t guess = (size_t)((value - entry[0].at) * table->per_entry), low = 0, high = table->n;
    if (guess + 1 < table->n && entry[guess].at <= value && value < entry[guess + 1].at)
        return guess;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (entry[middle].at <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void blend(const struct entry *from, double share, uint8_t rgba[4])
{
    for (int i = 0; i < 4; i++)
        rgba[i] = (uint8_t)(0.45 + from[0].rgba[i] +
                            share * ((double)from[1].rgba[i] - (double)from[0].rgba[i]));
}

void pb_ramp_colour(const struct pb_ramp_table *table, double value, uint8_t rgba[4])
{
    const struct entry *entry = table->entry;
    const uint8_t *is = NULL;
    size_t at = 0;
    if (!isfinite(value)) {
        is = table->invalid;
    } else if (value < entry[0].at) {
        is = table->between == PB_RAMP_EXACT ? table->other : entry[0].rgba;
    } else if (value >= entry[table->n - 1].at) {
        at = table->n - 1;
        is =
            table->between == PB_RAMP_EXACT && value > entry[at].at ? table->other : entry[at].rgba;
    } else {
        at = find(table, value);
        const struct entry *from = &entry[at];
        if (table->between == PB_RAMP_EXACT)
            is = value == from->at ? from->rgba : table->other;
        else if (table->between == PB_RAMP_NEAREST)
            is = value - from->at < from[1].at - value ? from->rgba : from[1].rgba;
        else
            blend(from, (value - from->at) / (from[1].at - from->at), rgba);
    }
    if (is != NULL)
        memcpy(rgba, is, 4);
}
