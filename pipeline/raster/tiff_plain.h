/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TIFF_PLAIN_H
#define PB_TIFF_PLAIN_H
/* Plain GeoTIFFs without GDAL, which takes longer to open a scene of some megabytes and to make the
 * tags of its product than it takes to decode it. A file is plain if each entry of its directory is
 * of the few kinds that usual writers use, with the usual type and number of values, so that no
 * rule of GDAL or libtiff for others applies. GDAL reads the same facts of such a file
 * (tests/unit/test_raster_plain.c). Thread: any. */
#include "config/base/err.h"
#include "pipeline/io/file_part.h"

#include <stdbool.h>

struct pb_geo_extra;
struct pb_raster_info;
struct pb_tiff_header;
struct pb_tiff_keys;
struct pb_tiff_tags;

/* part, name: as for pb_tiff_header_read, which has checked the file and returned the header. Sets
 * *out_is_plain; for a plain file also type, bands, blocks, transform and datetime in *info, whose
 * other members stay. Returns 0, or an error of reading. */
int pb_tiff_plain_read(const struct pb_file_part *part, const char *name,
                       const struct pb_tiff_header *header, struct pb_err *err,
                       struct pb_raster_info *info, bool *out_is_plain);
/* Converts the text of tag 306, "2020:02:19 11:02:03", to "2020-02-19T11:02:03Z"; anything else and
 * NULL to "". */
void pb_tiff_datetime(const char *text, char out[32]);

/* Makes the tags of a product as pb_raster_geo_tags does: with these GeoKeys and this transform,
 * and the names and the nodata value of `extra`. *out_is_plain is false, and there are no tags, if
 * the product has other facts, a rotated transform, or names or numbers that GDAL would escape or
 * round. Returns 0 or -ENOMEM. */
int pb_tiff_plain_tags(const struct pb_tiff_keys *keys, const double transform[6],
                       const struct pb_geo_extra *extra, struct pb_tiff_tags *out_tags,
                       bool *out_is_plain);
#endif
