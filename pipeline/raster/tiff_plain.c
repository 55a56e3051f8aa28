/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every condition is stricter than GDAL's: a file that fails one of them is not refused, GDAL opens
 * it. An entry that is not in the table makes a file not plain. */
#include "pipeline/raster/tiff_plain.h"

#include "kernels/nodata.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_header.h"
#include "pipeline/raster/tiff_tags.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 32, NUMBERS = 6 };

/* Types of fields, as bits. */
enum { TEXT = 1 << 2, SHORT = 1 << 3, LONG = 1 << 4, DOUBLE = 1 << 12, LONG8 = 1 << 16 };

/* Number of values; positive ones are exact. */
enum { ANY = 0, OF_BANDS = -1, OF_BLOCKS = -2, OF_EXTRAS = -3 };

/* Entries that a plain file may have. */
enum what {
    SUBFILE,
    WIDTH,
    HEIGHT,
    BITS,
    COMPRESSION,
    PHOTOMETRIC,
    STRIP_OFFSETS,
    BANDS,
    ROWS,
    STRIP_BYTES,
    PLANAR,
    DATETIME,
    PREDICTOR,
    TILE_W,
    TILE_H,
    TILE_OFFSETS,
    TILE_BYTES,
    EXTRAS,
    FORMAT,
    PIXEL_SCALE,
    TIE_POINTS,
    GEO_KEYS,
    GEO_DOUBLES,
    GEO_TEXTS,
    NODATA,
    N_WHAT
};

static const struct kind {
    uint16_t tag;
    uint32_t types;
    int32_t count;
} kinds[N_WHAT] = {
    [SUBFILE] = {254, LONG, 1},
    [WIDTH] = {256, SHORT | LONG, 1},
    [HEIGHT] = {257, SHORT | LONG, 1},
    [BITS] = {258, SHORT, OF_BANDS},
    [COMPRESSION] = {259, SHORT, 1},
    [PHOTOMETRIC] = {262, SHORT, 1},
    [STRIP_OFFSETS] = {273, SHORT | LONG | LONG8, OF_BLOCKS},
    [BANDS] = {277, SHORT, 1},
    [ROWS] = {278, SHORT | LONG, 1},
    [STRIP_BYTES] = {279, SHORT | LONG | LONG8, OF_BLOCKS},
    [PLANAR] = {284, SHORT, 1},
    [DATETIME] = {306, TEXT, 20},
    [PREDICTOR] = {317, SHORT, 1},
    [TILE_W] = {322, SHORT | LONG, 1},
    [TILE_H] = {323, SHORT | LONG, 1},
    [TILE_OFFSETS] = {324, SHORT | LONG | LONG8, OF_BLOCKS},
    [TILE_BYTES] = {325, SHORT | LONG | LONG8, OF_BLOCKS},
    [EXTRAS] = {338, SHORT, OF_EXTRAS},
    [FORMAT] = {339, SHORT, OF_BANDS},
    [PIXEL_SCALE] = {33550, DOUBLE, 3},
    [TIE_POINTS] = {33922, DOUBLE, 6},
    [GEO_KEYS] = {34735, SHORT, ANY},
    [GEO_DOUBLES] = {34736, DOUBLE, ANY},
    [GEO_TEXTS] = {34737, TEXT, ANY},
    [NODATA] = {42113, TEXT, ANY},
};

enum { GRAY = 1, RGB = 2, CHUNKY = 1, SEPARATE = 2 }; /* values of tags 262 and 284 */

struct plain {
    const struct pb_tiff_file *file;
    const struct pb_tiff_header *header;
    bool there[N_WHAT];
    uint64_t value[N_WHAT]; /* integers; of several, which are equal then, the first */
    uint64_t n_extras, nodata_bytes;
    double scale[NUMBERS], tie[NUMBERS];
    char datetime[21];
};

static size_t find(uint64_t tag)
{
    size_t i = 0;
    while (i < N_WHAT && kinds[i].tag != tag)
        i++;
    return i;
}

static bool is_count(const struct plain *p, const struct kind *kind, uint64_t count)
{
    const uint64_t bands = (uint64_t)p->header->bands;
    return kind->count == OF_BANDS    ? count == bands
           : kind->count == OF_BLOCKS ? count == p->header->n_blocks
           : kind->count == OF_EXTRAS ? count > 0 && count < bands
           : kind->count == ANY       ? count > 0
                                      : count == (uint64_t)kind->count;
}

/* Reads numbers of 16 bits, which are to be equal. Returns 0 with *out_equal, or an error. */
static int read_equal(const struct pb_tiff_file *file, const unsigned char *inside, uint64_t at,
                      uint64_t count, uint64_t *out_value, bool *out_equal)
{
    unsigned char raw[2 * PB_BANDS_MAX];
    const uint64_t bytes = 2 * count;
    int rc = 0;
    if (bytes > (file->big_tiff ? 8U : 4U))
        rc = pb_tiff_read_at(file, at, raw, (size_t)bytes, "an image directory");
    else
        memcpy(raw, inside, (size_t)bytes);
    *out_equal = true;
    for (uint64_t i = 0; rc == 0 && i < count; i++)
        *out_equal = *out_equal && memcmp(raw + 2 * i, raw, 2) == 0;
    if (rc == 0)
        *out_value = pb_tiff_number(file, raw, 2);
    return rc;
}

/* Only files in this machine's byte order are plain, because of their GeoKeys. */
static int read_doubles(const struct pb_tiff_file *file, uint64_t at, uint64_t count, double *out)
{
    return pb_tiff_read_at(file, at, out, (size_t)count * sizeof *out, "an image directory");
}

/* Takes one entry. *last: tag of the entry before it. */
static int take(struct plain *p, const unsigned char *entry, uint64_t *last, bool *fine)
{
    const struct pb_tiff_file *const file = p->file;
    const unsigned inside = file->big_tiff ? 8 : 4;
    const uint64_t tag = pb_tiff_number(file, entry, 2);
    const uint64_t type = pb_tiff_number(file, entry + 2, 2);
    const uint64_t count = pb_tiff_number(file, entry + 4, inside);
    const unsigned char *const value = entry + 4 + inside;
    const uint64_t at = pb_tiff_number(file, value, inside);
    const unsigned bytes = pb_tiff_type_bytes((unsigned)type);
    const size_t what = find(tag);
    int rc = 0;
    *fine = what < N_WHAT && tag > *last && type < 32 && (kinds[what].types >> type & 1) != 0 &&
            is_count(p, &kinds[what], count);
    *last = tag;
    if (!*fine)
        return 0;
    p->there[what] = true;
    if (what == BITS || what == FORMAT || what == EXTRAS)
        rc = read_equal(file, value, at, count, &p->value[what], fine);
    else if (what == PIXEL_SCALE || what == TIE_POINTS)
        rc = read_doubles(file, at, count, what == PIXEL_SCALE ? p->scale : p->tie);
    else if (what == DATETIME)
        rc = pb_tiff_read_at(file, at, p->datetime, (size_t)count, "an image directory");
    else if (count == 1 && bytes <= inside) /* larger numbers are at another place of the file */
        p->value[what] = pb_tiff_number(file, value, bytes);
    if (what == EXTRAS)
        p->n_extras = count;
    if (what == NODATA)
        p->nodata_bytes = count;
    return rc;
}

static int take_all(struct plain *p, uint64_t at, bool *fine)
{
    const struct pb_tiff_file *const file = p->file;
    const unsigned head = file->big_tiff ? 8 : 2, each = file->big_tiff ? 20 : 12;
    unsigned char raw[ENTRIES_MAX * 20];
    uint64_t last = 0;
    int rc = pb_tiff_read_at(file, at, raw, head, "an image directory");
    const uint64_t n = rc == 0 ? pb_tiff_number(file, raw, head) : 0;
    *fine = n > 0 && n <= ENTRIES_MAX;
    if (rc == 0 && *fine)
        rc = pb_tiff_read_at(file, at + head, raw, (size_t)n * each, "an image directory");
    for (uint64_t i = 0; rc == 0 && *fine && i < n; i++)
        rc = take(p, raw + i * each, &last, fine);
    return rc;
}

/* --- the facts --- */

static bool is_type(const struct plain *p, enum pb_type *out)
{
    static const struct {
        uint64_t bits, format; /* values of tags 258 and 339 */
    } types[PB_TYPE_COUNT] = {
        [PB_U8] = {8, 1},   [PB_I16] = {16, 2}, [PB_U16] = {16, 1}, [PB_I32] = {32, 2},
        [PB_U32] = {32, 1}, [PB_F32] = {32, 3}, [PB_F64] = {64, 3}};
    const uint64_t format = p->there[FORMAT] ? p->value[FORMAT] : 1;
    int i = 0;
    while (i < PB_TYPE_COUNT &&
           (types[i].bits != p->value[BITS] || types[i].format != format || types[i].bits == 0))
        i++;
    *out = (enum pb_type)i;
    return i < PB_TYPE_COUNT;
}

/* Blocks as GDAL has them: it divides an image of one strip. */
static bool is_layout(const struct plain *p)
{
    const struct pb_tiff_header *const header = p->header;
    const uint64_t planes = header->planar ? (uint64_t)header->bands : 1;
    const bool tiled = p->there[TILE_W] && p->there[TILE_H] && p->there[TILE_OFFSETS] &&
                       p->there[TILE_BYTES] && !p->there[ROWS] && !p->there[STRIP_OFFSETS] &&
                       !p->there[STRIP_BYTES];
    const bool strips = p->there[ROWS] && p->there[STRIP_OFFSETS] && p->there[STRIP_BYTES] &&
                        !p->there[TILE_W] && !p->there[TILE_H] && !p->there[TILE_OFFSETS] &&
                        !p->there[TILE_BYTES];
    return (tiled && header->block_w % 16 == 0 && header->block_h % 16 == 0) ||
           (strips && header->n_blocks > planes);
}

static bool is_codec(const struct plain *p)
{
    const uint64_t codec = p->value[COMPRESSION], predictor = p->value[PREDICTOR];
    const bool with_predictor = codec == 5 || codec == 8 || codec == 50000;
    if (!p->there[PREDICTOR])
        return codec == 1 || with_predictor;
    return with_predictor && (predictor == 1 || (predictor == 2 && p->value[BITS] <= 32) ||
                              (predictor == 3 && p->there[FORMAT] && p->value[FORMAT] == 3));
}

/* Bands after those of the picture have no meaning. */
static bool is_colour(const struct plain *p)
{
    const uint64_t bands = (uint64_t)p->header->bands, shown = p->value[PHOTOMETRIC] == RGB ? 3 : 1;
    return (p->value[PHOTOMETRIC] == GRAY || p->value[PHOTOMETRIC] == RGB) && bands >= shown &&
           p->n_extras == bands - shown && p->value[EXTRAS] == 0;
}

/* Takes a text that all readers take alike: an integer of at most 15 digits, or nan. */
static bool is_nodata(const struct plain *p, enum pb_type type, double *out)
{
    const char *text = p->header->nodata;
    const size_t n = strlen(text), sign = text[0] == '-';
    if (n + 1 != p->nodata_bytes)
        return false;
    if (strcmp(text, "nan") == 0)
        *out = (double)NAN;
    else if (n > sign && n - sign <= 15 && strspn(text + sign, "0123456789") == n - sign &&
             (text[sign] != '0' || n == 1))
        *out = (double)strtoll(text, NULL, 10);
    else
        return false;
    const bool fits = pb_nodata_fits(type, *out);
    if (fits && type == PB_F32)
        *out = (double)(float)*out; /* GDAL has it so */
    return fits;
}

static bool is_transform(const struct plain *p, double out[6])
{
    const double *const t = p->tie, *const s = p->scale;
    if (!(s[0] > 0 && s[1] > 0 && s[2] == 0))
        return false;
    const double transform[6] = {t[3] - t[0] * s[0], s[0], 0, t[4] + t[1] * s[1], 0, -s[1]};
    const double numbers[] = {
        transform[0],        transform[3],       s[0], s[1], 1 / s[0], 1 / s[1],
        transform[0] / s[0], transform[3] / s[1]};
    bool fine = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        fine = fine && isfinite(numbers[i]);
    memcpy(out, transform, sizeof transform);
    return fine;
}

void pb_tiff_datetime(const char *text, char out[32])
{
    unsigned y, mo, d, h, mi, s;
    int used = 0;
    out[0] = '\0';
    if (text == NULL ||
        sscanf(text, "%4u:%2u:%2u %2u:%2u:%2u%n", &y, &mo, &d, &h, &mi, &s, &used) != 6)
        return;
    if (text[used] == '\0' && y > 0 && mo >= 1 && mo <= 12 && d >= 1 && d <= 31 && h < 24 &&
        mi < 60 && s < 61)
        (void)snprintf(out, 32, "%04u-%02u-%02uT%02u:%02u:%02uZ", y, mo, d, h, mi, s);
}

static const char *name_of(uint64_t compression)
{
    return compression == 5       ? "LZW"
           : compression == 8     ? "DEFLATE"
           : compression == 50000 ? "ZSTD"
                                  : "NONE";
}

static void fill_in(const struct plain *p, enum pb_type type, double nodata,
                    const double transform[6], struct pb_raster_info *info)
{
    const struct pb_tiff_header *const header = p->header;
    info->width = header->width;
    info->height = header->height;
    info->n_bands = header->bands;
    info->type = type;
    info->block_w = (int32_t)header->block_w;
    info->block_h = (int32_t)header->block_h;
    info->pixel_interleaved = header->bands > 1 && !header->planar;
    info->stored_block_bytes = header->stored_block_max;
    (void)snprintf(info->compression, sizeof info->compression, "%s", name_of(header->compression));
    info->has_transform = info->has_orientation = true;
    memcpy(info->transform, transform, sizeof info->transform);
    const double d[4] = {transform[1], transform[2], transform[4], transform[5]};
    memcpy(info->orientation, d, sizeof d);
    pb_tiff_datetime(p->datetime, info->datetime);
    for (int32_t i = 0; i < header->bands; i++) {
        struct pb_raster_band *const band = &info->band[i];
        band->has_nodata = p->there[NODATA];
        band->nodata = nodata;
        band->scale = 1;
        band->color = p->value[PHOTOMETRIC] == RGB ? (i < 3 ? 3 + i : 0) : i == 0;
    }
}

/* Returns true for the files that the tables above were made for. */
static bool has_all(const struct plain *p)
{
    static const enum what needed[] = {WIDTH, HEIGHT,      BITS,       COMPRESSION, PHOTOMETRIC,
                                       BANDS, PIXEL_SCALE, TIE_POINTS, GEO_KEYS};
    bool fine = !p->there[SUBFILE] || p->value[SUBFILE] == 0;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        fine = fine && p->there[needed[i]];
    return fine && (!p->there[PLANAR] || p->value[PLANAR] == CHUNKY ||
                    (p->value[PLANAR] == SEPARATE && p->header->bands > 1));
}

int pb_tiff_plain_read(const struct pb_file_part *part, const char *name,
                       const struct pb_tiff_header *header, struct pb_err *err,
                       struct pb_raster_info *info, bool *out_is_plain)
{
    const struct pb_tiff_header *const h = header;
    struct pb_tiff_file file = {.part = *part, .name = name, .err = err};
    struct plain plain = {.file = &file, .header = header};
    double transform[6], nodata = 0;
    enum pb_type type = PB_U8;
    uint64_t at = 0;
    *out_is_plain = false;
    if (h->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) || h->bands > PB_BANDS_MAX ||
        h->n_pages_more > 0 || h->own_mask || h->foreign_mask || h->one_strip || h->geo.rpc)
        return 0;
    bool fine = false;
    int rc = pb_tiff_read_magic(&file, &at);
    rc = rc ? rc : take_all(&plain, at, &fine);
    if (rc < 0 || !fine || !has_all(&plain) || !is_layout(&plain) || !is_codec(&plain) ||
        !is_colour(&plain) || !is_type(&plain, &type) || !is_transform(&plain, transform) ||
        (plain.there[NODATA] && !is_nodata(&plain, type, &nodata)))
        return rc;
    fill_in(&plain, type, nodata, transform, info);
    *out_is_plain = true;
    return 0;
}

/* --- tags of a product --- */

enum { TAGS_MAX = 7, NUMBER_BYTES = 24, NAME_MAX_BYTES = 63 };

/* Appends a copy of the values. */
static int add(struct pb_tiff_tags *tags, const struct kind *kind, unsigned type, uint64_t count,
               const void *value)
{
    const size_t bytes = (size_t)count * pb_tiff_type_bytes(type);
    void *copy = malloc(bytes);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, value, bytes);
    tags->tag[tags->n++] = (struct pb_tiff_tag){kind->tag, (uint16_t)type, count, copy};
    return 0;
}

static int add_place(struct pb_tiff_tags *tags, const double transform[6])
{
    const double scale[3] = {transform[1], -transform[5], 0},
                 tie[6] = {0, 0, 0, transform[0], transform[3], 0};
    int rc = add(tags, &kinds[PIXEL_SCALE], 12, 3, scale);
    return rc ? rc : add(tags, &kinds[TIE_POINTS], 12, 6, tie);
}

/* The keys are the three tags, each after its number of bytes. */
static int add_keys(struct pb_tiff_tags *tags, const struct pb_tiff_keys *keys)
{
    static const enum what whats[] = {GEO_KEYS, GEO_DOUBLES, GEO_TEXTS};
    static const unsigned type[] = {3, 12, 2};
    int rc = 0;
    for (size_t i = 0, at = 0; i < 3 && rc == 0; i++) {
        uint32_t bytes;
        memcpy(&bytes, keys->bytes + at, sizeof bytes);
        at += sizeof bytes;
        if (bytes > 0)
            rc = add(tags, &kinds[whats[i]], type[i], bytes / pb_tiff_type_bytes(type[i]),
                     keys->bytes + at);
        at += bytes;
    }
    return rc;
}

static bool is_plain_name(const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    const size_t n = strlen(name);
    return n > 0 && n <= NAME_MAX_BYTES && strspn(name, plain) == n;
}

static bool has_plain_facts(const struct pb_geo_extra *extra)
{
    bool fine = extra->n_bands <= PB_BANDS_MAX && extra->placed == NULL;
    for (size_t i = 0; fine && i < extra->n_bands; i++) {
        const char *const name = extra->band_names != NULL ? extra->band_names[i] : NULL;
        const struct pb_band_facts *const facts = extra->facts != NULL ? &extra->facts[i] : NULL;
        fine = (name == NULL || is_plain_name(name)) &&
               (facts == NULL || (facts->scale == 0 && facts->unit[0] == '\0' &&
                                  facts->n_colours == 0 && facts->color <= 0));
    }
    return fine;
}

/* Writes the nodata value; returns false if GDAL may write it in another way. */
static bool write_nodata(double value, char out[NUMBER_BYTES])
{
    if (isnan(value))
        (void)snprintf(out, NUMBER_BYTES, "nan");
    else if (value == rint(value) && fabs(value) < 1e15 && !(value == 0 && signbit(value)))
        (void)snprintf(out, NUMBER_BYTES, "%.0f", value);
    else
        return false;
    return true;
}

/* Adds the names of the bands as GDAL's metadata. */
static int add_names(struct pb_tiff_tags *tags, const struct pb_geo_extra *extra)
{
    static const struct kind metadata = {42112, TEXT, ANY};
    static const char head[] = "<GDALMetadata>\n", tail[] = "</GDALMetadata>\n";
    enum { ITEM = 96 + NAME_MAX_BYTES };
    size_t n = 0;
    int rc = 0;
    char *text = malloc(sizeof head + sizeof tail + extra->n_bands * ITEM);
    if (text == NULL)
        return -ENOMEM;
    n = sizeof head - 1;
    memcpy(text, head, n);
    for (size_t i = 0; i < extra->n_bands && extra->band_names != NULL; i++)
        if (extra->band_names[i] != NULL)
            n += (size_t)snprintf(
                text + n, ITEM,
                "  <Item name=\"DESCRIPTION\" sample=\"%zu\" role=\"description\">%s</Item>\n", i,
                extra->band_names[i]);
    memcpy(text + n, tail, sizeof tail);
    if (n >= sizeof head)
        rc = add(tags, &metadata, 2, n + sizeof tail, text);
    free(text);
    return rc;
}

int pb_tiff_plain_tags(const struct pb_tiff_keys *keys, const double transform[6],
                       const struct pb_geo_extra *extra, struct pb_tiff_tags *out_tags,
                       bool *out_is_plain)
{
    char nodata[NUMBER_BYTES] = "";
    *out_is_plain = transform[2] == 0 && transform[4] == 0 && transform[1] > 0 &&
                    transform[5] < 0 && has_plain_facts(extra) &&
                    (!extra->has_nodata || write_nodata(extra->nodata, nodata));
    if (!*out_is_plain)
        return 0;
    struct pb_tiff_tags tags = {calloc(TAGS_MAX, sizeof *tags.tag), 0};
    int rc = tags.tag != NULL ? 0 : -ENOMEM;
    rc = rc ? rc : add_place(&tags, transform);
    rc = rc ? rc : add_keys(&tags, keys);
    rc = rc ? rc : add_names(&tags, extra);
    if (rc == 0 && extra->has_nodata)
        rc = add(&tags, &kinds[NODATA], 2, strlen(nodata) + 1, nodata);
    if (rc == 0)
        *out_tags = tags;
    else
        pb_tiff_tags_free(&tags);
    return rc;
}
