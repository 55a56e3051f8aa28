/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/collection_extent.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/io/file_name.h"
#include "pipeline/metadata/meta_time.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ITEM_MAX = 64 * 1024 * 1024, WEST = 0, SOUTH, EAST, NORTH };

/* --- reading ---------------------------------------------------------------------------------*/

static bool take_number(const struct pb_json_value *value, double low, double high, double *out)
{
    *out = pb_json_number_of(value, (double)NAN);
    return *out >= low && *out <= high;
}

static bool take_bbox(const struct pb_json_value *bbox, double out[4])
{
    bool good = pb_json_count(bbox) == 4;
    for (size_t i = 0; i < 4 && good; i++)
        good = take_number(pb_json_at(bbox, i), i % 2 ? -90 : -180, i % 2 ? 90 : 180, &out[i]);
    return good && out[SOUTH] <= out[NORTH];
}

/* A missing or null time is open. */
static bool take_time(const struct pb_json_value *value, char out[40])
{
    const char *text = pb_json_text_of(value);
    out[0] = '\0';
    return value == NULL || pb_json_is_null(value) ||
           (text != NULL && pb_meta_time(text, out, 40) == 0);
}

bool pb_collection_extent_take(const struct pb_json_value *item, struct pb_collection_extent *out)
{
    const struct pb_json_value *properties = pb_json_get(item, "properties", NULL);
    const struct pb_json_value *bbox = pb_json_get(item, "bbox", NULL);
    const struct pb_json_value *when = pb_json_get(properties, "datetime", NULL);
    memset(out, 0, sizeof *out);
    if (bbox != NULL && !take_bbox(bbox, out->bbox))
        return false;
    out->has_bbox = bbox != NULL;
    const struct pb_json_value *start = pb_json_get(properties, "start_datetime", NULL);
    const struct pb_json_value *end = pb_json_get(properties, "end_datetime", NULL);
    return take_time(start ? start : when, out->start) && take_time(end ? end : when, out->end) &&
           out->start[0] != '\0' && out->end[0] != '\0';
}

static bool take_item(const struct pb_json_value *item, const char *collection,
                      struct pb_collection_extent *out)
{
    const char *id = pb_json_get_text(item, "collection");
    return id != NULL && strcmp(id, collection) == 0 && pb_collection_extent_take(item, out);
}

int pb_collection_extent_read(int directory, const char *file, const char *collection,
                              struct pb_collection_extent *out)
{
    int fd = openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct pb_json_value *item = NULL;
    struct stat st;
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= ITEM_MAX)
        text = malloc((size_t)st.st_size + 1);
    ssize_t n = text != NULL ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd >= 0)
        (void)close(fd);
    bool good = n >= 0 && pb_json_parse(text, (size_t)n, ITEM_MAX, &item) == 0 &&
                take_item(item, collection, out);
    pb_json_release(item);
    free(text);
    return good ? 0 : -EINVAL;
}

bool pb_collection_extent_parse(const struct pb_json_value *extent,
                                struct pb_collection_extent *out)
{
    const struct pb_json_value *boxes =
        pb_json_get(pb_json_get(extent, "spatial", NULL), "bbox", NULL);
    const struct pb_json_value *intervals =
        pb_json_get(pb_json_get(extent, "temporal", NULL), "interval", NULL);
    const struct pb_json_value *interval = pb_json_at(intervals, 0);
    memset(out, 0, sizeof *out);
    out->has_bbox = true;
    return pb_json_count(boxes) == 1 && pb_json_count(intervals) == 1 &&
           pb_json_count(interval) == 2 && take_bbox(pb_json_at(boxes, 0), out->bbox) &&
           take_time(pb_json_at(interval, 0), out->start) &&
           take_time(pb_json_at(interval, 1), out->end);
}

/* --- growing ---------------------------------------------------------------------------------*/

/* Longitudes are cyclic: selects the smaller of the boxes that contain both. Its sides are
 * copied from the two boxes, because a rounded sum could shrink the box. */
static bool grow_longitudes(double *west, double *east, double other_west, double other_east)
{
    double w = *west, e = *east + (*west > *east ? 360 : 0);
    double ow = other_west, oe = other_east + (other_west > other_east ? 360 : 0);
    double best_w = w, best_e = *east, best = 1e9;
    for (int turn = -1; turn <= 1; turn++) {
        double low = fmin(w, ow + 360 * turn), high = fmax(e, oe + 360 * turn);
        if (high - low < best) {
            best = high - low;
            best_w = low < w ? other_west : *west;
            best_e = high > e ? other_east : *east;
        }
    }
    best_w = best >= 360 ? -180 : best_w;
    best_e = best >= 360 ? 180 : best_e;
    bool grew = best_w != *west || best_e != *east;
    *west = best_w;
    *east = best_e;
    return grew;
}

static bool grow_bbox(struct pb_collection_extent *extent, const struct pb_collection_extent *item)
{
    double *box = extent->bbox;
    if (!item->has_bbox)
        return false;
    if (!extent->has_bbox) {
        memcpy(box, item->bbox, sizeof extent->bbox);
        extent->has_bbox = true;
        return true;
    }
    bool grew = item->bbox[SOUTH] < box[SOUTH] || item->bbox[NORTH] > box[NORTH];
    box[SOUTH] = fmin(box[SOUTH], item->bbox[SOUTH]);
    box[NORTH] = fmax(box[NORTH], item->bbox[NORTH]);
    return grow_longitudes(&box[WEST], &box[EAST], item->bbox[WEST], item->bbox[EAST]) || grew;
}

/* sign: 1 = selects the later time, -1 = the earlier one. */
static bool grow_time(char time[40], const char *other, int sign)
{
    bool grows =
        time[0] != '\0' && sign * (pb_meta_julian_day(other) - pb_meta_julian_day(time)) > 0;
    if (grows)
        (void)snprintf(time, 40, "%s", other);
    return grows;
}

bool pb_collection_extent_grow(struct pb_collection_extent *extent,
                               const struct pb_collection_extent *item)
{
    bool grew = grow_bbox(extent, item);
    grew = grow_time(extent->start, item->start, -1) || grew;
    return grow_time(extent->end, item->end, 1) || grew;
}

/* --- writing ---------------------------------------------------------------------------------*/

void pb_collection_extent_write(struct pb_json *json, const struct pb_collection_extent *extent)
{
    static const double world[] = {-180, -90, 180, 90};
    pb_json_object(json, "extent");
    pb_json_object(json, "spatial");
    pb_json_array(json, "bbox");
    pb_json_array(json, NULL);
    for (int i = 0; i < 4; i++)
        pb_json_number(json, NULL, extent->has_bbox ? extent->bbox[i] : world[i]);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_object(json, "temporal");
    pb_json_array(json, "interval");
    pb_json_array(json, NULL);
    pb_json_string(json, NULL, extent->start[0] != '\0' ? extent->start : NULL);
    pb_json_string(json, NULL, extent->end[0] != '\0' ? extent->end : NULL);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
    pb_json_end(json);
}
