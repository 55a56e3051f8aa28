/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/tiff_geo.h"

#include <string.h>

enum { KEY_BYTES = 8, KEYS_MAX = 8192, METADATA_MAX = 4096 };

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

bool pb_tiff_keys_add(struct pb_tiff_keys *keys, const void *value, uint64_t bytes)
{
    const uint32_t length = (uint32_t)bytes;
    if (bytes > sizeof keys->bytes || keys->n + sizeof length + length > sizeof keys->bytes) {
        keys->n = 0;
        return false;
    }
    memcpy(keys->bytes + keys->n, &length, sizeof length);
    if (length > 0)
        memcpy(keys->bytes + keys->n + sizeof length, value, length);
    keys->n += (uint32_t)sizeof length + length;
    return true;
}

/* Keys of another byte order, or with a tag of another type than libgeotiff writes, are left out.
 */
static int copy_keys(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                     struct pb_tiff_keys *out)
{
    const struct pb_tiff_field *const field[] = {&dir->geo_keys, &dir->geo_doubles,
                                                 &dir->geo_texts};
    static const uint16_t type[] = {3, 12, 2};
    struct pb_tiff_keys keys = {.n = 0};
    bool fits = file->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    int rc = 0;
    for (int i = 0; i < 3 && fits && rc == 0; i++) {
        const uint64_t count = field[i]->there ? field[i]->count : 0;
        unsigned char value[sizeof keys.bytes];
        fits = (count == 0 || field[i]->type == type[i]) && count <= sizeof value &&
               count * pb_tiff_type_bytes(type[i]) <= sizeof value;
        const uint64_t bytes = fits ? count * pb_tiff_type_bytes(type[i]) : 0;
        if (bytes > 0)
            rc = pb_tiff_read_at(file, field[i]->at, value, (size_t)bytes, "the GeoKeys");
        fits = fits && rc == 0 && pb_tiff_keys_add(&keys, value, bytes);
    }
    if (fits)
        *out = keys;
    return rc;
}

/* GDAL's metadata is XML; an escaped word counts as a unit. */
static int look_for_unit(const struct pb_tiff_file *file, const struct pb_tiff_field *metadata,
                         bool *out)
{
    char text[METADATA_MAX + 1];
    *out = metadata->there && (metadata->type != 2 || metadata->count > METADATA_MAX);
    if (!metadata->there || *out)
        return 0;
    int rc = pb_tiff_read_at(file, metadata->at, text, (size_t)metadata->count, "the metadata");
    text[metadata->count] = '\0';
    *out = rc == 0 && (strlen(text) + 1 < metadata->count || strchr(text, '&') != NULL ||
                       strcasestr(text, "unittype") != NULL);
    return rc;
}

int pb_tiff_read_geo(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                     struct pb_tiff_geo *out)
{
    *out = (struct pb_tiff_geo){
        .place = dir->tie_points.there || dir->matrix.there,
        .rpc = dir->rpc.there,
    };
    int rc = look_for_unit(file, &dir->metadata, &out->unit);
    if (rc == 0 && dir->geo_keys.there)
        rc = read_keys(file, &dir->geo_keys, &out->crs);
    return rc == 0 && dir->geo_keys.there ? copy_keys(file, dir, &out->keys) : rc;
}
