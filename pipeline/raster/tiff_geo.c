/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/tiff_geo.h"

enum { KEY_BYTES = 8, KEYS_MAX = 8192 };

/* Returns true for keys that define the CRS by themselves: model type, geographic, projected;
 * not vertical. The value 0 means "undefined". */
static bool names_a_crs(uint64_t key, uint64_t location, uint64_t value)
{
    return (key == 1024 || key == 2048 || key == 3072) && location == 0 && value != 0;
}

/* Reads the GeoKey directory: 4 numbers of header, the 4th the number of keys, then 4 numbers
 * per key. A directory that cannot be parsed counts as a CRS. */
static int read_keys(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                     bool *out_crs)
{
    unsigned char raw[KEY_BYTES];
    *out_crs = field->type != 3 || field->count < 4;
    if (*out_crs)
        return 0;
    uint64_t there = field->count / 4 - 1;
    int rc = pb_tiff_read_at(file, field->at, raw, KEY_BYTES, "the GeoKeys");
    if (rc < 0)
        return rc;
    uint64_t n = pb_tiff_number(file, raw + 6, 2);
    if (n > there) { /* truncated list */
        *out_crs = true;
        return 0;
    }
    for (uint64_t i = 0; rc == 0 && i < n && i < KEYS_MAX && !*out_crs; i++) {
        rc = pb_tiff_read_at(file, field->at + (i + 1) * KEY_BYTES, raw, KEY_BYTES, "the GeoKeys");
        if (rc == 0)
            *out_crs = names_a_crs(pb_tiff_number(file, raw, 2), pb_tiff_number(file, raw + 2, 2),
                                   pb_tiff_number(file, raw + 6, 2));
    }
    return rc;
}

int pb_tiff_read_geo(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                     struct pb_tiff_geo *out)
{
    *out = (struct pb_tiff_geo){
        .place = dir->tie_points.there || dir->matrix.there,
        .rpc = dir->rpc.there,
    };
    return dir->geo_keys.there ? read_keys(file, &dir->geo_keys, &out->crs) : 0;
}
