/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tiff_header.h"

#include "pipeline/text_clean.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TAG_SUBFILE = 254,
    TAG_WIDTH = 256,
    TAG_HEIGHT = 257,
    TAG_BITS = 258,
    TAG_COMPRESSION = 259,
    TAG_STRIP_OFFSETS = 273,
    TAG_BANDS = 277,
    TAG_ROWS_PER_STRIP = 278,
    TAG_STRIP_BYTES = 279,
    TAG_PLANAR = 284,
    TAG_TILE_W = 322,
    TAG_TILE_H = 323,
    TAG_TILE_OFFSETS = 324,
    TAG_TILE_BYTES = 325,
    TAG_NODATA = 42113,
};

#define ENTRIES_MAX     65535 /* of a directory; what classic TIFF can say */
#define CHUNK_VALUES    512   /* of an offset array read at once */
#define DIRECTORY_CHUNK 64

struct file {
    int fd;
    uint64_t bytes;
    bool big_endian, big_tiff;
    const char *name;
    const struct pb_limits *limits;
    struct pb_err *err;
};

/* An array of unsigned integers as a directory entry tells of it. */
struct field {
    bool there;
    uint16_t type;
    uint64_t count;
    uint64_t at; /* where the values begin in the file; the entry itself when they fit there */
};

struct directory {
    uint64_t next;
    struct field subfile, width, height, bits, compression, bands, rows, planar, tile_w, tile_h,
        offsets, counts, nodata;
};

#define FAIL(file, code, ...) pb_fail_at((file)->err, (code), (file)->name, 0, 0, __VA_ARGS__)

static uint64_t number(const struct file *file, const unsigned char *p, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)p[file->big_endian ? bytes - 1 - i : i] << (8 * i);
    return value;
}

static unsigned type_bytes(unsigned type)
{
    static const unsigned char bytes[19] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                            8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

static bool is_integer(unsigned type)
{
    return type == 1 || type == 3 || type == 4 || type == 6 || type == 8 || type == 9 ||
           type == 13 || (type >= 16 && type <= 18);
}

/* Reads bytes that must be there; what names them in the message. */
static int read_at(const struct file *file, uint64_t at, void *out, size_t bytes, const char *what)
{
    if (at > file->bytes || bytes > file->bytes - at)
        return FAIL(file, PB_E_INPUT_TRUNCATED,
                    "%s at byte %llu lies past the end of the file (%llu bytes)", what,
                    (unsigned long long)at, (unsigned long long)file->bytes);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(file->fd, (char *)out + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return FAIL(file, PB_E_SYSTEM, "cannot read %s: %s", what, strerror(errno));
        if (n == 0)
            return FAIL(file, PB_E_INPUT_TRUNCATED, "the file ended early while %s was read", what);
        done += (size_t)n;
    }
    return 0;
}

/* Value i < count of a field; 0 with *out_value, or an error. */
static int field_value(const struct file *file, const struct field *field, uint64_t i,
                       const char *what, uint64_t *out_value)
{
    unsigned char raw[8];
    unsigned bytes = type_bytes(field->type);
    int rc = read_at(file, field->at + i * bytes, raw, bytes, what);
    if (rc == 0)
        *out_value = number(file, raw, bytes);
    return rc;
}

static int field_or(const struct file *file, const struct field *field, uint64_t otherwise,
                    const char *what, uint64_t *out_value)
{
    *out_value = otherwise;
    return field->there ? field_value(file, field, 0, what, out_value) : 0;
}

static struct field *field_of(struct directory *dir, uint64_t tag)
{
    switch (tag) {
    case TAG_SUBFILE:
        return &dir->subfile;
    case TAG_WIDTH:
        return &dir->width;
    case TAG_HEIGHT:
        return &dir->height;
    case TAG_BITS:
        return &dir->bits;
    case TAG_COMPRESSION:
        return &dir->compression;
    case TAG_BANDS:
        return &dir->bands;
    case TAG_ROWS_PER_STRIP:
        return &dir->rows;
    case TAG_PLANAR:
        return &dir->planar;
    case TAG_TILE_W:
        return &dir->tile_w;
    case TAG_TILE_H:
        return &dir->tile_h;
    case TAG_STRIP_OFFSETS:
    case TAG_TILE_OFFSETS:
        return &dir->offsets;
    case TAG_STRIP_BYTES:
    case TAG_TILE_BYTES:
        return &dir->counts;
    case TAG_NODATA:
        return &dir->nodata;
    default:
        return NULL;
    }
}

/* Takes one entry. Of a tag that comes twice the first counts, as in libtiff. */
static int take_entry(const struct file *file, const unsigned char *entry, uint64_t entry_at,
                      struct directory *dir)
{
    uint64_t tag = number(file, entry, 2);
    struct field *field = field_of(dir, tag);
    unsigned type = (unsigned)number(file, entry + 2, 2);
    unsigned inside = file->big_tiff ? 8 : 4;
    if (field == NULL || field->there)
        return 0;
    if (tag == TAG_NODATA ? type != 2 : !is_integer(type))
        return 0; /* GDAL says what it thinks of that */
    uint64_t count = number(file, entry + 4, inside);
    unsigned each = type_bytes(type);
    if (count == 0)
        return 0;
    uint64_t at = entry_at + 4 + inside;
    if (count > inside / each) {
        at = number(file, entry + 4 + inside, inside);
        if (at > file->bytes || count > (file->bytes - at) / each)
            return FAIL(file, PB_E_INPUT_TRUNCATED,
                        "the %llu values of tag %llu at byte %llu reach past the end of the file "
                        "(%llu bytes)",
                        (unsigned long long)count, (unsigned long long)tag, (unsigned long long)at,
                        (unsigned long long)file->bytes);
    }
    *field = (struct field){.there = true, .type = (uint16_t)type, .count = count, .at = at};
    return 0;
}

/* Reads the directory at `at`: the entries we need and where the next one is. */
static int read_directory(const struct file *file, uint64_t at, int index, struct directory *out)
{
    unsigned head = file->big_tiff ? 8 : 2, each = file->big_tiff ? 20 : 12;
    unsigned tail = file->big_tiff ? 8 : 4;
    unsigned char raw[DIRECTORY_CHUNK * 20];
    memset(out, 0, sizeof *out);
    if (at < (file->big_tiff ? 16 : 8))
        return FAIL(file, PB_E_INPUT_DAMAGED, "image directory %d lies inside the header", index);
    if (at > INT64_MAX)
        return FAIL(file, PB_E_INPUT_DAMAGED, "image directory %d has an impossible offset", index);
    int rc = read_at(file, at, raw, head, "an image directory");
    if (rc < 0)
        return rc;
    uint64_t n = number(file, raw, head);
    if (n == 0 || n > ENTRIES_MAX)
        return FAIL(file, PB_E_INPUT_DAMAGED, "image directory %d claims %llu entries", index,
                    (unsigned long long)n);
    at += head;
    if (n * each > file->bytes - at)
        return FAIL(file, PB_E_INPUT_TRUNCATED,
                    "image directory %d reaches %llu bytes past the end of the file", index,
                    (unsigned long long)(n * each - (file->bytes - at)));
    for (uint64_t i = 0; i < n;) {
        uint64_t take = n - i < DIRECTORY_CHUNK ? n - i : DIRECTORY_CHUNK;
        rc = read_at(file, at, raw, (size_t)(take * each), "an image directory");
        for (uint64_t j = 0; rc == 0 && j < take; j++)
            rc = take_entry(file, raw + j * each, at + j * each, out);
        if (rc < 0)
            return rc;
        i += take;
        at += take * each;
    }
    rc = read_at(file, at, raw, tail, "the offset of the next image directory");
    if (rc == 0)
        out->next = number(file, raw, tail);
    return rc;
}

/* The magic bytes; *out_at is the first directory. */
static int read_magic(struct file *file, uint64_t *out_at)
{
    unsigned char raw[16] = {0};
    if (file->bytes == 0)
        return FAIL(file, PB_E_INPUT_TRUNCATED, "the file is empty");
    size_t there = file->bytes < sizeof raw ? (size_t)file->bytes : sizeof raw;
    int rc = read_at(file, 0, raw, there, "the header");
    if (rc < 0)
        return rc;
    file->big_endian = raw[0] == 'M';
    uint64_t version = number(file, raw + 2, 2);
    if ((memcmp(raw, "II", 2) != 0 && memcmp(raw, "MM", 2) != 0) ||
        (there >= 4 && version != 42 && version != 43))
        return FAIL(file, PB_E_INPUT_NOT_TIFF, "the file does not begin as a TIFF does");
    file->big_tiff = version == 43;
    if (there < (file->big_tiff ? 16 : 8))
        return FAIL(file, PB_E_INPUT_TRUNCATED, "the file ends within its header (%zu bytes)",
                    there);
    if (file->big_tiff && (number(file, raw + 4, 2) != 8 || number(file, raw + 6, 2) != 0))
        return FAIL(file, PB_E_INPUT_DAMAGED, "the BigTIFF header is not one");
    *out_at = file->big_tiff ? number(file, raw + 8, 8) : number(file, raw + 4, 4);
    if (*out_at == 0)
        return FAIL(file, PB_E_INPUT_DAMAGED, "the header names no image directory");
    return 0;
}

/* A size that must be there, at least 1, at most max (a limit of the config). */
static int read_size(const struct file *file, const struct field *field, const char *what,
                     uint64_t otherwise, int32_t max, int32_t *out_size)
{
    uint64_t value = 0;
    int rc = field_or(file, field, otherwise, what, &value);
    if (rc < 0)
        return rc;
    if (value == 0)
        return FAIL(file, PB_E_INPUT_DAMAGED, "the file declares no %s, or 0", what);
    if (value > (uint64_t)max)
        return FAIL(file, PB_E_INPUT_LIMIT, "the file declares %s %llu; the limit is %ld", what,
                    (unsigned long long)value, (long)max);
    *out_size = (int32_t)value;
    return 0;
}

static int read_blocks(const struct file *file, const struct directory *dir,
                       struct pb_tiff_header *out)
{
    uint64_t w = (uint64_t)out->width, h = UINT32_MAX;
    out->tiled = dir->tile_w.there;
    int rc = out->tiled ? field_or(file, &dir->tile_w, 0, "the tile width", &w) : 0;
    if (rc == 0 && out->tiled)
        rc = field_or(file, &dir->tile_h, 0, "the tile height", &h);
    if (rc == 0 && !out->tiled)
        rc = field_or(file, &dir->rows, UINT32_MAX, "the rows per strip", &h);
    if (rc < 0)
        return rc;
    if (!out->tiled && h > (uint64_t)out->height)
        h = (uint64_t)out->height;
    if (w == 0 || h == 0)
        return FAIL(file, PB_E_INPUT_DAMAGED, "the file declares blocks of %llu x %llu pixels",
                    (unsigned long long)w, (unsigned long long)h);
    if (w > INT32_MAX || h > INT32_MAX)
        return FAIL(file, PB_E_INPUT_LIMIT, "the file declares blocks of %llu x %llu pixels",
                    (unsigned long long)w, (unsigned long long)h);
    out->block_w = (uint32_t)w;
    out->block_h = (uint32_t)h;
    uint64_t across = ((uint64_t)out->width + w - 1) / w,
             down = ((uint64_t)out->height + h - 1) / h;
    out->n_blocks = across * down * (uint64_t)(out->planar ? out->bands : 1);
    out->one_strip = !out->tiled && down == 1 && out->compression != 1 && out->height > 1;
    return 0;
}

/* One decoded block. An uncompressed single strip is taken apart by libtiff and not counted. */
static int check_block_limit(const struct file *file, const struct pb_tiff_header *header)
{
    if (!header->tiled && header->n_blocks == 1 && header->compression == 1)
        return 0;
    uint64_t sample = header->bits <= 8 ? 1 : (header->bits + 7u) / 8;
    uint64_t samples = (uint64_t)header->block_w * header->block_h;
    uint64_t pixel = sample * (uint64_t)(header->planar ? 1 : header->bands);
    if (samples > file->limits->max_block_bytes / (pixel ? pixel : 1))
        return FAIL(file, PB_E_INPUT_LIMIT,
                    "one %s of the file is %lu x %lu pixels, more than the limit of %llu bytes "
                    "(max_block)",
                    header->tiled ? "tile" : "strip", (unsigned long)header->block_w,
                    (unsigned long)header->block_h,
                    (unsigned long long)file->limits->max_block_bytes);
    return 0;
}

static int read_shape(const struct file *file, const struct directory *dir,
                      struct pb_tiff_header *out)
{
    const struct pb_limits *limits = file->limits;
    uint64_t compression = 1, planar = 1, bits = 1;
    int rc = read_size(file, &dir->width, "width", 0, limits->max_side_px, &out->width);
    if (rc == 0)
        rc = read_size(file, &dir->height, "height", 0, limits->max_side_px, &out->height);
    if (rc == 0)
        rc = read_size(file, &dir->bands, "bands", 1, limits->max_bands, &out->bands);
    if (rc == 0)
        rc = field_or(file, &dir->compression, 1, "the compression", &compression);
    if (rc == 0)
        rc = field_or(file, &dir->planar, 1, "the planar configuration", &planar);
    if (rc == 0)
        rc = field_or(file, &dir->bits, 1, "the bits per sample", &bits);
    if (rc < 0)
        return rc;
    if ((uint64_t)out->width * (uint64_t)out->height > limits->max_pixels)
        return FAIL(file, PB_E_INPUT_LIMIT,
                    "the file declares %ld x %ld pixels; the limit is %llu pixels",
                    (long)out->width, (long)out->height, (unsigned long long)limits->max_pixels);
    out->compression = (uint16_t)compression;
    out->planar = planar == 2 && out->bands > 1;
    out->bits = bits > 1024 ? 1024 : (uint32_t)bits;
    rc = read_blocks(file, dir, out);
    return rc < 0 ? rc : check_block_limit(file, out);
}

/* Walks an array of integers in chunks. */
struct cursor {
    const struct field *field;
    uint64_t next, first;
    size_t n;
    unsigned char raw[CHUNK_VALUES * 8];
};

static int cursor_value(const struct file *file, struct cursor *cursor, uint64_t *out_value)
{
    unsigned each = type_bytes(cursor->field->type);
    if (cursor->next - cursor->first >= cursor->n) {
        uint64_t left = cursor->field->count - cursor->next;
        cursor->first = cursor->next;
        cursor->n = left < CHUNK_VALUES ? (size_t)left : CHUNK_VALUES;
        int rc = read_at(file, cursor->field->at + cursor->first * each, cursor->raw,
                         cursor->n * each, "the list of blocks");
        if (rc < 0)
            return rc;
    }
    *out_value = number(file, cursor->raw + (cursor->next++ - cursor->first) * each, each);
    return 0;
}

/* Bytes an uncompressed single strip really needs: libtiff, too, mistrusts its tag. */
static uint64_t strip_need(const struct pb_tiff_header *header)
{
    uint64_t samples = (uint64_t)header->width * (uint64_t)(header->planar ? 1 : header->bands);
    return (samples * header->bits + 7) / 8 * (uint64_t)header->height;
}

/* Holds one block's byte range against the file; *end grows to the last byte needed. */
static int check_range(const struct file *file, struct pb_tiff_header *header, uint64_t i,
                       uint64_t offset, uint64_t bytes, uint64_t *end)
{
    if (bytes == 0) {
        header->n_sparse++;
        return 0;
    }
    if (offset < 8 || offset > INT64_MAX || bytes > INT64_MAX - offset)
        return FAIL(file, PB_E_INPUT_DAMAGED,
                    "block %llu of the image has an impossible place: "
                    "byte %llu, length %llu",
                    (unsigned long long)i, (unsigned long long)offset, (unsigned long long)bytes);
    if (!header->tiled && header->n_blocks == 1 && header->compression == 1)
        bytes = strip_need(header);
    else if (bytes > header->stored_block_max)
        header->stored_block_max = bytes;
    if (offset + bytes > *end)
        *end = offset + bytes;
    return 0;
}

/* Every block of a directory lies inside the file. Fills n_sparse and stored_block_max. */
static int check_ranges(const struct file *file, const struct directory *dir,
                        struct pb_tiff_header *header)
{
    struct cursor offsets = {.field = &dir->offsets}, counts = {.field = &dir->counts};
    uint64_t end = 0, outside = 0;
    if (!dir->offsets.there && header->compression == 6)
        return 0; /* old-style JPEG keeps its place elsewhere */
    if (!dir->offsets.there)
        return FAIL(file, PB_E_INPUT_DAMAGED, "the file does not say where its pixels are");
    if (dir->offsets.count < header->n_blocks ||
        (dir->counts.there && dir->counts.count < header->n_blocks))
        return FAIL(file, PB_E_INPUT_DAMAGED,
                    "the file declares %llu blocks of pixels but lists the place of %llu",
                    (unsigned long long)header->n_blocks,
                    (unsigned long long)(dir->offsets.count < header->n_blocks
                                             ? dir->offsets.count
                                             : dir->counts.count));
    for (uint64_t i = 0; i < header->n_blocks; i++) {
        uint64_t offset = 0, bytes = 1, before = end;
        int rc = cursor_value(file, &offsets, &offset);
        if (rc == 0 && dir->counts.there)
            rc = cursor_value(file, &counts, &bytes);
        if (rc == 0)
            rc = check_range(file, header, i, offset, bytes, &end);
        if (rc < 0)
            return rc;
        outside += end > before && end > file->bytes;
    }
    if (end > file->bytes)
        return FAIL(file, PB_E_INPUT_TRUNCATED,
                    "the file has %llu bytes but its pixels reach to byte %llu: %llu bytes are "
                    "missing (at least %llu of %llu blocks)",
                    (unsigned long long)file->bytes, (unsigned long long)end,
                    (unsigned long long)(end - file->bytes), (unsigned long long)outside,
                    (unsigned long long)header->n_blocks);
    if (header->stored_block_max > file->limits->max_block_bytes)
        return FAIL(file, PB_E_INPUT_LIMIT,
                    "one stored block of the file has %llu bytes; the limit is %llu (max_block)",
                    (unsigned long long)header->stored_block_max,
                    (unsigned long long)file->limits->max_block_bytes);
    return 0;
}

static int read_first(const struct file *file, const struct directory *dir,
                      struct pb_tiff_header *out)
{
    int rc = read_shape(file, dir, out);
    if (rc == 0)
        rc = check_ranges(file, dir, out);
    if (rc == 0 && dir->nodata.there) {
        char text[sizeof out->nodata] = "";
        uint64_t n = dir->nodata.count < sizeof text - 1 ? dir->nodata.count : sizeof text - 1;
        rc = read_at(file, dir->nodata.at, text, (size_t)n, "the nodata tag");
        (void)pb_text_clean(text, out->nodata, sizeof out->nodata);
    }
    return rc;
}

/* A full-size mask counts as pixels: without it invalid pixels would be taken for valid. */
static int check_mask(const struct file *file, const struct directory *dir)
{
    struct pb_tiff_header mask = {0};
    uint64_t subfile = 0;
    int rc = field_or(file, &dir->subfile, 0, "the kind of image", &subfile);
    if (rc < 0 || (subfile & 5) != 4)
        return rc;
    rc = read_shape(file, dir, &mask);
    return rc < 0 ? rc : check_ranges(file, dir, &mask);
}

static int walk(const struct file *file, uint64_t at, uint64_t *seen, int32_t max,
                struct pb_tiff_header *out)
{
    struct directory dir;
    int32_t n = 0;
    for (; at != 0; at = dir.next) {
        for (int32_t i = 0; i < n; i++) {
            if (seen[i] == at)
                return FAIL(file, PB_E_INPUT_DAMAGED,
                            "the chain of image directories loops: %d is followed by %d", (int)n,
                            (int)i + 1);
        }
        if (n == max)
            return FAIL(file, PB_E_INPUT_LIMIT, "the file has more than %ld image directories",
                        (long)max);
        seen[n++] = at;
        int rc = read_directory(file, at, (int)n, &dir);
        if (rc == 0)
            rc = n == 1 ? read_first(file, &dir, out) : check_mask(file, &dir);
        if (rc < 0)
            return rc;
    }
    out->n_directories = n;
    return 0;
}

int pb_tiff_header_read(int fd, uint64_t file_bytes, const char *name,
                        const struct pb_limits *limits, struct pb_err *err,
                        struct pb_tiff_header *out_header)
{
    struct file file = {.fd = fd, .bytes = file_bytes, .name = name, .limits = limits, .err = err};
    struct pb_tiff_header header = {0};
    int32_t max = limits->max_directories < 1 ? 1 : limits->max_directories;
    if (max > ENTRIES_MAX)
        max = ENTRIES_MAX;
    uint64_t at = 0;
    int rc = read_magic(&file, &at);
    if (rc < 0)
        return rc;
    uint64_t *seen = malloc((size_t)max * sizeof *seen);
    if (seen == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to look at %s", name);
    rc = walk(&file, at, seen, max, &header);
    free(seen);
    if (rc == 0)
        *out_header = header;
    return rc;
}
