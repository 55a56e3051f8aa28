/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/block_layout.h"

#include "pipeline/codec/predictor.h"

#include <errno.h>

enum { PHOTOMETRIC_PALETTE = 3, PHOTOMETRIC_MASK = 4, PHOTOMETRIC_YCBCR = 6 };
#define SAMPLE_BITS_MAX   128
#define SAMPLES_MAX       1024 /* values of a tag with a value for each band */
#define STORED_MAX_FACTOR 8    /* factor of the decoded size up to which a stored block is read */
#define STORED_MAX_EXTRA  65536

/* Reads the value that all values of a field have; *out = 0 if they differ. */
static int uniform(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                   int32_t bands, uint32_t otherwise, const char *what, uint32_t *out)
{
    unsigned char raw[SAMPLES_MAX * 8];
    unsigned each = pb_tiff_type_bytes(field->type);
    *out = otherwise;
    if (!field->there)
        return 0;
    size_t n = field->count < (uint64_t)bands ? (size_t)field->count : (size_t)bands;
    int rc = pb_tiff_read_at(file, field->at, raw, n * each, what);
    if (rc < 0)
        return rc;
    uint64_t first = pb_tiff_number(file, raw, each);
    *out = first <= UINT16_MAX ? (uint32_t)first : 0;
    for (size_t i = 1; i < n; i++) {
        if (pb_tiff_number(file, raw + i * each, each) != first)
            *out = 0;
    }
    return 0;
}

static int read_number(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                       uint64_t otherwise, uint64_t max, const char *what, uint64_t *out)
{
    int rc = pb_tiff_field_or(file, field, otherwise, what, out);
    if (rc == 0 && *out > max)
        return -ENOTSUP;
    return rc;
}

static int read_samples(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                        struct pb_block_layout *out)
{
    uint64_t photometric = 1, order = 1, predictor = 1;
    uint32_t format = 0;
    int rc = uniform(file, &dir->bits, out->bands, 1, "the bits per sample", &out->bits);
    if (rc == 0)
        rc = uniform(file, &dir->format, out->bands, PB_SAMPLE_UNSIGNED, "the sample format",
                     &format);
    if (rc == 0)
        rc = read_number(file, &dir->photometric, 1, UINT16_MAX, "the photometric", &photometric);
    if (rc == 0)
        rc = read_number(file, &dir->fill_order, 1, UINT16_MAX, "the fill order", &order);
    if (rc == 0)
        rc = read_number(file, &dir->predictor, 1, UINT16_MAX, "the predictor", &predictor);
    if (rc < 0)
        return rc;
    bool known = format <= PB_SAMPLE_FLOAT || format == PB_SAMPLE_COMPLEX_SIGNED ||
                 format == PB_SAMPLE_COMPLEX_FLOAT;
    out->format = known ? (uint16_t)format : 0;
    out->photometric = (uint16_t)photometric;
    out->predictor = (uint16_t)predictor;
    return out->bits < 1 || out->bits > SAMPLE_BITS_MAX || order != 1 || dir->depth.there ? -ENOTSUP
                                                                                          : 0;
}

/* YCbCr that is not JPEG stores a group of pixels as all their Y, one Cb, one Cr. */
static int read_groups(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                       struct pb_block_layout *out)
{
    out->group_w = out->group_h = 1;
    if (out->photometric != PHOTOMETRIC_YCBCR || out->bands != 3 || out->planar)
        return 0;
    struct pb_tiff_field second = dir->subsampling;
    uint64_t w = 2, h = 2;
    int rc = read_number(file, &dir->subsampling, 2, 4, "the chroma subsampling", &w);
    second.at += pb_tiff_type_bytes(second.type);
    if (rc == 0 && second.there)
        rc = second.count < 2 ? -ENOTSUP
                              : read_number(file, &second, 2, 4, "the chroma subsampling", &h);
    if (rc < 0)
        return rc;
    out->group_w = (uint32_t)w;
    out->group_h = (uint32_t)h;
    return w == 0 || h == 0 ? -ENOTSUP : 0;
}

static uint64_t parts(uint64_t length, uint64_t each)
{
    return (length + each - 1) / each;
}

static int read_blocks(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                       struct pb_block_layout *out)
{
    uint64_t w = 0, h = 0;
    int rc = pb_tiff_block_sides(file, dir, (uint64_t)out->width, (uint64_t)out->height, &w, &h);
    if (rc < 0)
        return rc;
    out->tiled = dir->tile_w.there;
    if (out->tiled && (w > INT32_MAX || h > INT32_MAX))
        return -ENOTSUP;
    if (w == 0 || h == 0 || !dir->offsets.there || !dir->counts.there)
        return -ENOTSUP;
    out->block_w = (uint32_t)w;
    out->block_h = (uint32_t)h;
    out->across = (uint32_t)parts((uint64_t)out->width, w);
    out->down = (uint32_t)parts((uint64_t)out->height, h);
    uint64_t planes = out->planar ? (uint64_t)out->bands : 1;
    uint64_t samples = out->planar ? 1 : (uint64_t)out->bands;
    uint64_t n = (uint64_t)out->across * out->down * planes;
    if (out->group_w > 1 || out->group_h > 1) {
        samples = out->group_w * out->group_h + 2;
        w = parts(w, out->group_w);
        h = parts(h, out->group_h);
    }
    out->row_bytes = parts(w * samples * out->bits, 8);
    if (out->row_bytes > INT64_MAX / h || dir->offsets.count < n || dir->counts.count < n)
        return -ENOTSUP;
    out->block_bytes = out->row_bytes * h;
    return 0;
}

/* Finds the largest stored block, up to the limit of bytes that are read. */
static int read_stored_max(const struct pb_tiff_file *file, struct pb_block_layout *out)
{
    unsigned char raw[512 * 8];
    unsigned each = pb_tiff_type_bytes(out->counts.type);
    uint64_t n = (uint64_t)out->across * out->down * (out->planar ? (uint64_t)out->bands : 1);
    uint64_t cap = out->block_bytes < INT64_MAX / 16
                       ? out->block_bytes * STORED_MAX_FACTOR + STORED_MAX_EXTRA
                       : INT64_MAX;
    for (uint64_t i = 0; i < n; i += 512) {
        size_t take = n - i < 512 ? (size_t)(n - i) : 512;
        int rc = pb_tiff_read_at(file, out->counts.at + i * each, raw, take * each,
                                 "the list of blocks");
        if (rc < 0)
            return rc;
        for (size_t j = 0; j < take; j++) {
            uint64_t bytes = pb_tiff_number(file, raw + j * each, each);
            if (bytes > out->stored_max)
                out->stored_max = bytes;
        }
    }
    if (out->stored_max > cap)
        out->stored_max = cap;
    return 0;
}

int pb_block_layout_read(const struct pb_tiff_file *file, const struct pb_tiff_directory *dir,
                         struct pb_block_layout *out)
{
    struct pb_block_layout layout = {
        .big_endian = file->big_endian, .offsets = dir->offsets, .counts = dir->counts};
    uint64_t width = 0, height = 0, bands = 1, compression = 1, planar = 1;
    int rc = read_number(file, &dir->width, 0, INT32_MAX, "the width", &width);
    if (rc == 0)
        rc = read_number(file, &dir->height, 0, INT32_MAX, "the height", &height);
    if (rc == 0)
        rc = read_number(file, &dir->bands, 1, SAMPLES_MAX, "the bands", &bands);
    if (rc == 0)
        rc = read_number(file, &dir->compression, 1, UINT16_MAX, "the compression", &compression);
    if (rc == 0)
        rc = read_number(file, &dir->planar, 1, 2, "the planar configuration", &planar);
    if (rc < 0)
        return rc;
    if (width == 0 || height == 0 || bands == 0 || planar == 0)
        return -ENOTSUP;
    layout.width = (int32_t)width;
    layout.height = (int32_t)height;
    layout.bands = (int32_t)bands;
    layout.compression = (uint16_t)compression;
    layout.planar = planar == 2 && bands > 1;
    rc = read_samples(file, dir, &layout);
    if (rc == 0)
        rc = read_groups(file, dir, &layout);
    if (rc == 0)
        rc = read_blocks(file, dir, &layout);
    if (rc == 0)
        rc = read_stored_max(file, &layout);
    if (rc == 0)
        *out = layout;
    return rc;
}

bool pb_block_layout_is_complex(const struct pb_block_layout *layout)
{
    return layout->format == PB_SAMPLE_COMPLEX_SIGNED || layout->format == PB_SAMPLE_COMPLEX_FLOAT;
}

bool pb_block_layout_is_plain(const struct pb_block_layout *layout)
{
    bool is_complex = pb_block_layout_is_complex(layout);
    uint32_t bits = is_complex ? layout->bits / 2 : layout->bits; /* bits of a part */
    bool predicted = layout->compression == 5 || layout->compression == 8 ||
                     layout->compression == 32946 || layout->compression == 50000;
    if ((bits != 8 && bits != 16 && bits != 32 && bits != 64) || layout->format == 0 ||
        layout->photometric > PHOTOMETRIC_PALETTE)
        return false;
    if (!predicted || layout->predictor == PB_PREDICTOR_NONE)
        return true;
    if (is_complex) /* libtiff takes differences of complete complex samples */
        return false;
    return layout->predictor == PB_PREDICTOR_HORIZONTAL ||
           (layout->predictor == PB_PREDICTOR_FLOAT && layout->format == PB_SAMPLE_FLOAT &&
            bits >= 32);
}

int pb_block_layout_predictor(const struct pb_block_layout *layout)
{
    const bool has_none = layout->compression == 1 || layout->compression == 32773;
    return has_none ? PB_PREDICTOR_NONE : layout->predictor;
}

bool pb_block_layout_swaps(const struct pb_block_layout *layout)
{
    return layout->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

bool pb_block_layout_is_mask(const struct pb_block_layout *layout)
{
    const bool is_predicted = layout->compression != 1 && layout->predictor != PB_PREDICTOR_NONE;
    return layout->bands == 1 && layout->photometric == PHOTOMETRIC_MASK &&
           layout->format == PB_SAMPLE_UNSIGNED &&
           ((layout->bits == 1 && !is_predicted) ||
            (layout->bits == 8 && (!is_predicted || layout->predictor == PB_PREDICTOR_HORIZONTAL)));
}

uint64_t pb_block_layout_count(const struct pb_block_layout *layout)
{
    return (uint64_t)layout->across * layout->down * (layout->planar ? (uint64_t)layout->bands : 1);
}

uint64_t pb_block_layout_need(const struct pb_block_layout *layout, uint32_t row)
{
    uint64_t from = (uint64_t)row * layout->block_h, left = (uint64_t)layout->height - from;
    if (layout->tiled || left >= layout->block_h)
        return layout->block_bytes;
    return parts(left, layout->group_h) * layout->row_bytes;
}

static int value_at(const struct pb_tiff_file *file, const struct pb_tiff_field *field,
                    uint64_t index, uint64_t *out)
{
    struct pb_tiff_field one = *field;
    one.at += index * pb_tiff_type_bytes(field->type);
    return pb_tiff_field_or(file, &one, 0, "the place of a block", out);
}

int pb_block_layout_place(const struct pb_block_layout *layout, const struct pb_tiff_file *file,
                          uint64_t index, struct pb_block_place *out)
{
    int rc = value_at(file, &layout->counts, index, &out->bytes);
    return rc < 0 ? rc : value_at(file, &layout->offsets, index, &out->offset);
}

int pb_block_layout_find(const struct pb_file_part *part, const char *name, bool mask,
                         int32_t max_directories, struct pb_err *err, uint64_t *out_directory)
{
    struct pb_tiff_file file = {.part = *part, .name = name, .err = err};
    struct pb_tiff_directory dir;
    uint64_t at = 0, subfile = 0;
    int rc = pb_tiff_read_magic(&file, &at);
    *out_directory = at;
    for (int32_t i = 1; rc == 0 && mask && at != 0; i++) {
        *out_directory = i > 1 ? at : 0;
        rc = pb_tiff_read_directory(&file, at, (int)i, &dir);
        if (rc == 0)
            rc = pb_tiff_field_or(&file, &dir.subfile, 0, "the kind of image", &subfile);
        if (rc < 0 || (i > 1 && (subfile & 5) == 4))
            break;
        *out_directory = 0;
        at = i < max_directories && (i == 1 || (subfile & 5) != 0) ? dir.next : 0;
    }
    return rc;
}
