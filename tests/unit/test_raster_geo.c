/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Georeference of a product from its scene: the tags of every real scene are put into a small TIFF
 * of our own, and that must place itself on the Earth as the scene does. Footprints and CRS texts.
 * Needs PB_SHARED_DATA; without it the test is skipped with a message. */
#include "config/base/err.h"
#include "config/limits_config.h"
#include "pipeline/raster/outline.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/tiff_directory.h"
#include "pipeline/raster/tiff_tags.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REAL(name)    PB_SHARED_DATA "/real/" name
#define HOSTILE(name) PB_SHARED_DATA "/hostile/" name

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(200000000000),
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

static const char *const two_names[2] = {"NDVI", "<W&\"\xc3\xa4>"};
static const struct pb_geo_extra nan_float = {
    .band_names = two_names, .n_bands = 2, .has_nodata = true, .nodata = NAN, .type = PB_F32};

static struct pb_raster *opened(const char *path)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    int rc = pb_raster_open(path, &limits, &err, &raster);
    ck_assert_msg(rc == 0, "%s: %s", path, err.msg);
    return raster;
}

static struct pb_tiff_tags tags_of(struct pb_raster *raster, const struct pb_geo_extra *extra)
{
    struct pb_err err = {0};
    struct pb_tiff_tags tags = {NULL, 0};
    int rc = pb_raster_geo_tags(raster, extra, &err, &tags);
    ck_assert_msg(rc == 0, "%s", err.msg);
    for (size_t i = 1; i < tags.n; i++)
        ck_assert_uint_lt(tags.tag[i - 1].tag, tags.tag[i].tag);
    return tags;
}

static const struct pb_tiff_tag *find_tag(const struct pb_tiff_tags *tags, uint16_t tag)
{
    for (size_t i = 0; i < tags->n; i++) {
        if (tags->tag[i].tag == tag)
            return &tags->tag[i];
    }
    return NULL;
}

/* --- a TIFF of one float32 pixel in two bands with the tags given -----------------------------*/

struct image {
    unsigned char bytes[1 << 16];
    size_t n, entry;
};

static void put_entry(struct image *image, uint16_t tag, uint16_t type, uint32_t count,
                      const void *value, size_t value_bytes)
{
    unsigned char *e = image->bytes + image->entry;
    uint32_t at = (uint32_t)image->n;
    memcpy(e, &tag, 2);
    memcpy(e + 2, &type, 2);
    memcpy(e + 4, &count, 4);
    if (value_bytes <= 4) {
        memcpy(e + 8, value, value_bytes);
    } else {
        ck_assert_uint_le(image->n + value_bytes, sizeof image->bytes);
        memcpy(e + 8, &at, 4);
        memcpy(image->bytes + image->n, value, value_bytes);
        image->n += (value_bytes + 1) & ~(size_t)1;
    }
    image->entry += 12;
}

static void put_number(struct image *image, uint16_t tag, uint32_t value)
{
    put_entry(image, tag, 4, 1, &value, 4);
}

static char *tiff_with(const struct pb_tiff_tags *tags)
{
    static char name[64];
    static const unsigned char size[14] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    struct image *image = calloc(1, sizeof *image);
    const uint16_t n = (uint16_t)(10 + tags->n), bits[2] = {32, 32}, float_type[2] = {3, 3};
    memcpy(image->bytes, "II\x2a\0\x08\0\0\0", 8);
    memcpy(image->bytes + 8, &n, 2);
    image->entry = 10;
    image->n = 10 + (size_t)n * 12 + 4;
    put_number(image, 256, 1);
    put_number(image, 257, 1);
    put_entry(image, 258, 3, 2, bits, sizeof bits);
    put_number(image, 259, 1);
    put_number(image, 262, 1);
    put_number(image, 273, (uint32_t)image->n);
    image->n += 8;
    put_number(image, 277, 2);
    put_number(image, 278, 1);
    put_number(image, 279, 8);
    put_entry(image, 339, 3, 2, float_type, sizeof float_type);
    for (size_t i = 0; i < tags->n; i++)
        put_entry(image, tags->tag[i].tag, tags->tag[i].type, (uint32_t)tags->tag[i].count,
                  tags->tag[i].value, tags->tag[i].count * size[tags->tag[i].type]);
    (void)snprintf(name, sizeof name, "/tmp/pb_test_geo_XXXXXX");
    int fd = mkstemp(name);
    ck_assert(fd >= 0 && write(fd, image->bytes, image->n) == (ssize_t)image->n);
    close(fd);
    free(image);
    return name;
}

/* --- tags -------------------------------------------------------------------------------------*/

static void same_place(const char *path, struct pb_raster *scene, struct pb_raster *product)
{
    const struct pb_raster_info *a = pb_raster_info(scene), *b = pb_raster_info(product);
    ck_assert_msg(a->has_transform == b->has_transform, "%s", path);
    for (int i = 0; a->has_transform && i < 6; i++)
        ck_assert_msg(fabs(a->transform[i] - b->transform[i]) <= 1e-12 * fabs(a->transform[i]),
                      "%s: transform[%d] %.17g, was %.17g", path, i, b->transform[i],
                      a->transform[i]);
    ck_assert_msg(a->has_transform || a->n_gcps == b->n_gcps, "%s: %d GCPs", path, b->n_gcps);
    ck_assert_msg(a->has_rpc == b->has_rpc, "%s: RPC", path);
    ck_assert_msg(a->has_crs == b->has_crs, "%s: CRS", path);
    ck_assert_msg(strcmp(a->crs_code, b->crs_code) == 0, "%s: %s was %s", path, b->crs_code,
                  a->crs_code);
    char *wkt_a = pb_raster_wkt2(scene), *wkt_b = pb_raster_wkt2(product);
    ck_assert_msg((wkt_a == NULL) == (wkt_b == NULL), "%s: WKT", path);
    if (wkt_a != NULL)
        ck_assert_msg(strcmp(wkt_a, wkt_b) == 0, "%s:\n%s\nwas\n%s", path, wkt_b, wkt_a);
    free(wkt_a);
    free(wkt_b);
    ck_assert_int_eq(b->n_bands, 2);
    ck_assert_str_eq(b->band[0].description, two_names[0]);
    ck_assert_str_eq(b->band[1].description, two_names[1]);
    ck_assert(b->band[1].has_nodata && isnan(b->band[1].nodata));
}

START_TEST(places_a_product_as_every_real_scene)
{
    glob_t found = {0};
    int taken = 0;
    ck_assert_int_eq(glob(REAL("*.tif"), 0, NULL, &found), 0);
    ck_assert_int_eq(glob(REAL("*/*.[tT][iI][fF]*"), GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct pb_raster *scene = NULL;
        if (pb_raster_open(found.gl_pathv[i], &limits, NULL, &scene) < 0)
            continue;
        struct pb_tiff_tags tags = tags_of(scene, &nan_float);
        char *name = tiff_with(&tags);
        struct pb_raster *product = opened(name);
        same_place(found.gl_pathv[i], scene, product);
        pb_raster_close(product);
        pb_raster_close(scene);
        pb_tiff_tags_free(&tags);
        unlink(name);
        taken++;
    }
    ck_assert_int_gt(taken, 60);
    ck_assert_int_gt(taken, (int)found.gl_pathc * 4 / 5); /* others have types we do not take */
    globfree(&found);
}
END_TEST

/* Facts of a scene that depend on its CRS, as one text. */
static char *facts_of(struct pb_raster *scene)
{
    const struct pb_raster_info *info = pb_raster_info(scene);
    struct pb_footprint footprint;
    struct pb_tiff_tags tags = tags_of(scene, &nan_float);
    char *wkt = pb_raster_wkt2(scene), *json = pb_raster_projjson(scene), *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    fprintf(to, "%d %s %s\n%s\n", info->has_crs, info->crs_code, wkt ? wkt : "", json ? json : "");
    fprintf(to, "%d %.17g %.17g %.17g %.17g %.17g\n", (int)info->unit.law, info->unit.metres[0],
            info->unit.metres[1], info->unit.axis, info->unit.radians, info->unit.origin);
    for (int i = 0; i < info->n_bands; i++)
        fprintf(to, "%s,", info->band[i].unit);
    if (pb_raster_footprint(scene, NULL, &footprint) == 0)
        for (size_t i = 0; i < footprint.n; i++)
            fprintf(to, " %.17g %.17g", footprint.lonlat[i][0], footprint.lonlat[i][1]);
    for (size_t i = 0; i < tags.n; i++) {
        const struct pb_tiff_tag *tag = &tags.tag[i];
        fprintf(to, "\n%u:", (unsigned)tag->tag);
        for (size_t k = 0; k < tag->count * pb_tiff_type_bytes(tag->type); k++)
            fprintf(to, " %02x", ((const unsigned char *)tag->value)[k]);
    }
    fclose(to);
    pb_tiff_tags_free(&tags);
    free(wkt);
    free(json);
    return text;
}

/* A CRS that was loaded is used for scenes with GDAL's own GeoKeys: products have these, and other
 * scenes may. */
START_TEST(loaded_crs_changes_no_fact)
{
    glob_t found = {0};
    int taken = 0;
    ck_assert_int_eq(glob(REAL("*.tif"), 0, NULL, &found), 0);
    ck_assert_int_eq(glob(REAL("*/*.[tT][iI][fF]*"), GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct pb_raster *scene = NULL;
        int epsg = 0;
        if (pb_raster_open(found.gl_pathv[i], &limits, NULL, &scene) < 0)
            continue;
        struct pb_tiff_tags tags = tags_of(scene, &nan_float);
        char *names[2] = {tiff_with(&tags), found.gl_pathv[i]}, *before[2];
        if (sscanf(pb_raster_info(scene)->crs_code, "EPSG:%5d", &epsg) != 1)
            epsg = 0;
        for (int k = 0; k < 2; k++) {
            struct pb_raster *raster = opened(names[k]);
            before[k] = facts_of(raster);
            pb_raster_close(raster);
        }
        if (epsg > 0)
            pb_raster_warm(epsg);
        for (int k = 0; k < 2; k++) {
            struct pb_raster *raster = opened(names[k]);
            char *after = facts_of(raster);
            ck_assert_msg(strcmp(after, before[k]) == 0, "%s:\n%s\nwas\n%s", found.gl_pathv[i],
                          after, before[k]);
            free(after);
            free(before[k]);
            pb_raster_close(raster);
        }
        taken += epsg > 0;
        pb_raster_close(scene);
        pb_tiff_tags_free(&tags);
        unlink(names[0]);
    }
    ck_assert_int_gt(taken, 20);
    globfree(&found);
}
END_TEST

START_TEST(spells_nodata_as_gdal_does)
{
    struct pb_geo_extra extra = {.n_bands = 1, .has_nodata = true, .nodata = -9999, .type = PB_I16};
    struct pb_raster *raster = opened(REAL("landsat7_L7_ETMs_6band.tif"));
    struct pb_tiff_tags tags = tags_of(raster, &extra);
    ck_assert_str_eq(find_tag(&tags, 42113)->value, "-9999");
    ck_assert_ptr_null(find_tag(&tags, 42112));
    pb_tiff_tags_free(&tags);
    tags = tags_of(raster, &nan_float);
    ck_assert_str_eq(find_tag(&tags, 42113)->value, "nan");
    ck_assert_ptr_nonnull(strstr(find_tag(&tags, 42112)->value, "NDVI"));
    pb_tiff_tags_free(&tags);
    extra.has_nodata = false;
    tags = tags_of(raster, &extra);
    ck_assert_ptr_null(find_tag(&tags, 42113));
    pb_tiff_tags_free(&tags);
    ck_assert(tags.tag == NULL && tags.n == 0);
    pb_raster_close(raster);
}
END_TEST

/* Value of a GeoKey that is kept in the directory itself; -1 = none. */
static int geo_key(const struct pb_tiff_tags *tags, uint16_t key)
{
    const struct pb_tiff_tag *tag = find_tag(tags, 34735);
    const uint16_t *v = tag ? tag->value : NULL;
    for (uint64_t i = 4; v != NULL && i + 3 < tag->count; i += 4) {
        if (v[i] == key && v[i + 1] == 0)
            return v[i + 3];
    }
    return -1;
}

START_TEST(keeps_pixel_is_point)
{
    struct pb_raster *raster = opened(REAL("dem/copernicus_dem90_S90.tif"));
    struct pb_tiff_tags tags = tags_of(raster, &nan_float);
    ck_assert_int_eq(geo_key(&tags, 1025), 2);
    pb_tiff_tags_free(&tags);
    pb_raster_close(raster);
    raster = opened(REAL("landsat7_L7_ETMs_6band.tif"));
    tags = tags_of(raster, &nan_float);
    ck_assert_int_eq(geo_key(&tags, 1025), 1);
    ck_assert_int_eq(geo_key(&tags, 3072), 31985);
    pb_tiff_tags_free(&tags);
    pb_raster_close(raster);
}
END_TEST

START_TEST(takes_tags_from_whole_files_only)
{
    static const uint16_t wanted[] = {256, 273, 33550, 34735};
    struct pb_raster *raster = opened(REAL("landsat7_L7_ETMs_6band.tif"));
    struct pb_tiff_tags tags = tags_of(raster, &nan_float), again;
    char *name = tiff_with(&tags);
    unsigned char whole[8192];
    FILE *file = fopen(name, "rb");
    size_t n = fread(whole, 1, sizeof whole, file);
    fclose(file);
    unlink(name);
    ck_assert(n > 300 && n < sizeof whole);
    for (size_t cut = 0; cut <= n; cut++) {
        unsigned char *exact = malloc(cut + 1); /* so that a byte too far is noticed */
        memcpy(exact + 1, whole, cut);
        int rc = pb_tiff_tags_take(exact + 1, cut, wanted, 4, &again);
        ck_assert(rc == 0 || (rc == -EINVAL && cut < n));
        if (rc == 0) {
            ck_assert_uint_eq(again.n, 4);
            ck_assert_mem_eq(find_tag(&again, 33550)->value, find_tag(&tags, 33550)->value, 24);
            pb_tiff_tags_free(&again);
        }
        free(exact);
    }
    pb_tiff_tags_free(&tags);
    pb_raster_close(raster);
}
END_TEST

/* --- footprints -------------------------------------------------------------------------------*/

static void bbox_is(const char *path, double west, double south, double east, double north,
                    double within)
{
    struct pb_raster *raster = opened(path);
    struct pb_footprint f;
    ck_assert_int_eq(pb_raster_footprint(raster, NULL, &f), 0);
    const double want[4] = {west, south, east, north};
    for (int i = 0; i < 4; i++)
        ck_assert_msg(fabs(f.bbox[i] - want[i]) < within, "%s: bbox[%d] = %.6f", path, i,
                      f.bbox[i]);
    ck_assert_uint_ge(f.n, 5);
    ck_assert(f.has_corners); /* all inside the box */
    for (int i = 0; i < 4; i++) {
        ck_assert_double_ge(f.corner[i][0], f.bbox[0] - within);
        ck_assert_double_le(f.corner[i][0], f.bbox[2] + within);
        ck_assert_double_ge(f.corner[i][1], f.bbox[1] - within);
        ck_assert_double_le(f.corner[i][1], f.bbox[3] + within);
    }
    ck_assert_double_eq(f.lonlat[0][0], f.lonlat[f.n - 1][0]);
    ck_assert_double_eq(f.lonlat[0][1], f.lonlat[f.n - 1][1]);
    pb_raster_close(raster);
}

START_TEST(finds_scenes_on_the_earth)
{
    /* Corners as gdalinfo gives them; the edges between bulge by less than a pixel. */
    bbox_is(REAL("landsat7_L7_ETMs_6band.tif"), -34.916589, -8.040927, -34.8259656, -7.9498221,
            1e-4);
    bbox_is(REAL("sentinel1/s1-vh_2023_gcps.tiff"), 54.834, -5.499, 55.864, -3.867, 0.02);
    bbox_is(REAL("global/blue_marble_720x360_be.tif"), -180, -90, 180, 90, 1e-6);
    bbox_is(REAL("odd/gdal_byte_rpc.tif"), 147.176088, -42.789688, 147.176211, -42.789598, 1e-6);
}
END_TEST

/* The limb is where the line of sight is tangent to the ellipsoid: along the equator
 * acos(a / (a + h)) = 81.300 degrees from the satellite, whose longitude is -75. */
START_TEST(outline_of_a_full_disk_is_the_limb)
{
    struct pb_raster *raster = opened(REAL("geostationary/goes.tif"));
    const struct pb_geometry west = {271, 542, {1, 1, 0, 0}, 0};
    const double limb = acos(6378137.0 / (6378137.0 + 35786023.0)) * 180 / acos(-1.0);
    struct pb_footprint f;
    ck_assert_int_eq(pb_raster_footprint(raster, NULL, &f), 0);
    ck_assert_double_eq_tol(f.bbox[0], -75 - limb, 0.05);
    ck_assert_double_eq_tol(f.bbox[2], -75 + limb, 0.05);
    ck_assert_double_eq_tol(f.bbox[1], -f.bbox[3], 1e-3);
    ck_assert_double_gt(f.bbox[3], 80);
    ck_assert_double_lt(f.bbox[3], 82);
    ck_assert(!f.has_corners);
    ck_assert_uint_eq(f.n_rings, 1 + (f.bbox[0] > f.bbox[2]));
    for (size_t i = 0; i < f.n; i++) { /* each vertex is a limb's angle from the point below it */
        const double rad = acos(-1.0) / 180;
        const double angle =
            acos(cos(f.lonlat[i][1] * rad) * cos((f.lonlat[i][0] + 75) * rad)) / rad;
        ck_assert_double_eq_tol(angle, limb, 0.3);
    }
    /* Half of it: the inner edge is on the Earth. */
    ck_assert_int_eq(pb_raster_footprint(raster, &west, &f), 0);
    ck_assert_double_eq_tol(f.bbox[0], -75 - limb, 0.3);
    ck_assert_double_eq_tol(f.bbox[2], -75, 0.3);
    pb_raster_close(raster);
}
END_TEST

START_TEST(has_no_footprint_without_a_place)
{
    struct pb_footprint f;
    struct pb_raster *raster = opened(HOSTILE("syn__geo_rpc_zero_scale.tif"));
    ck_assert_int_eq(pb_raster_footprint(raster, NULL, &f), -ENODATA);
    ck_assert_ptr_null(pb_raster_wkt2(raster));
    ck_assert_ptr_null(pb_raster_projjson(raster));
    pb_raster_close(raster);
}
END_TEST

START_TEST(says_the_crs_as_projjson)
{
    struct pb_raster *raster = opened(REAL("landsat7_L7_ETMs_6band.tif"));
    char *json = pb_raster_projjson(raster), *wkt = pb_raster_wkt2(raster);
    ck_assert_ptr_nonnull(strstr(json, "\"ProjectedCRS\""));
    ck_assert_ptr_nonnull(strstr(wkt, "PROJCRS["));
    ck_assert_ptr_null(strchr(wkt, '\n'));
    free(json);
    free(wkt);
    pb_raster_close(raster);
}
END_TEST

/* --- outlines ---------------------------------------------------------------------------------*/

/* Places of the pixels of a 1 x 1 image. */
struct places {
    double x0, dx, y0, dy;
    double pole; /* pole of an azimuthal map around it: 90 or -90; 0: longitudes and latitudes */
};

static void place(void *of, size_t n, double (*xy)[2])
{
    const struct places *p = of;
    for (size_t i = 0; i < n; i++) {
        const double x = p->x0 + p->dx * xy[i][0], y = p->y0 + p->dy * xy[i][1];
        xy[i][0] = x;
        xy[i][1] = y;
        if (p->pole != 0) { /* x, y in degrees from the pole */
            const double sign = p->pole > 0 ? 1 : -1, far = hypot(x, y);
            xy[i][0] = atan2(x, -sign * y) * 180 / acos(-1.0);
            xy[i][1] = far > 180 ? NAN : sign * (90 - far);
        } else if (x > 180 && p->dx < 180) {
            xy[i][0] -= 360; /* result of a transformation */
        }
    }
}

static int outline_by(struct places places, bool is_plane, struct pb_footprint *out)
{
    const struct pb_outline outline = {1, 1, place, &places, is_plane, places.pole != 0};
    return pb_outline_footprint(&outline, out);
}

/* The outline of x -> x0 + dx * px, y -> y0 + dy * py. */
static int outline_of(double x0, double dx, double y0, double dy, struct pb_footprint *out)
{
    return outline_by((struct places){x0, dx, y0, dy, 0}, false, out);
}

static double ring_area(const struct pb_footprint *f)
{
    double area = 0;
    for (size_t k = 0; k < f->n_rings; k++)
        for (size_t i = f->first[k]; i + 1 < f->first[k + 1]; i++)
            area += f->lonlat[i][0] * f->lonlat[i + 1][1] - f->lonlat[i + 1][0] * f->lonlat[i][1];
    return area / 2;
}

static void box_is(const struct pb_footprint *f, double west, double south, double east,
                   double north, double within)
{
    const double want[4] = {west, south, east, north};
    for (int i = 0; i < 4; i++)
        ck_assert_msg(fabs(f->bbox[i] - want[i]) <= within, "bbox %g %g %g %g", f->bbox[0],
                      f->bbox[1], f->bbox[2], f->bbox[3]);
    for (size_t i = 0; i < f->n; i++)
        ck_assert(fabs(f->lonlat[i][0]) <= 180 && fabs(f->lonlat[i][1]) <= 90);
    for (size_t k = 0; k < f->n_rings; k++)
        ck_assert_mem_eq(f->lonlat[f->first[k]], f->lonlat[f->first[k + 1] - 1],
                         sizeof f->lonlat[0]);
}

START_TEST(turns_every_ring_counter_clockwise)
{
    struct pb_footprint f;
    ck_assert_int_eq(outline_of(10, 2, 50, -1, &f), 0); /* north-up */
    ck_assert_double_eq_tol(ring_area(&f), 2, 1e-9);
    ck_assert_int_eq(outline_of(10, 2, 50, 1, &f), 0); /* south-up */
    ck_assert_double_eq_tol(ring_area(&f), 2, 1e-9);
    ck_assert_uint_eq(f.n, 4 * PB_OUTLINE_EDGE + 1); /* straight edges need no more points */
    ck_assert_int_eq(outline_of(10, 0, 50, 1, &f), -ENODATA);
    ck_assert_int_eq(outline_of(10, INFINITY, 50, 1, &f), -ENODATA);
    ck_assert_int_eq(outline_of(10, 1, 89, 5, &f), -ENODATA);
    ck_assert_int_eq(outline_by((struct places){10, 1, 89, 1.25, 0}, true, &f), 0);
    box_is(&f, 10, 89, 11, 90, 0); /* half a pixel past the pole */
}
END_TEST

START_TEST(cuts_a_ring_at_the_antimeridian)
{
    struct pb_footprint f;
    ck_assert_int_eq(outline_of(179, 3, 10, -2, &f), 0);
    ck_assert_uint_eq(f.n_rings, 2);
    ck_assert(!f.has_hole);
    ck_assert_double_eq_tol(ring_area(&f), 6, 1e-9);
    box_is(&f, 179, 8, -178, 10, 1e-9);
    ck_assert_int_eq(outline_of(179, 1, 10, -2, &f), 0);
    ck_assert_uint_eq(f.n_rings, 1);
    box_is(&f, 179, 8, 180, 10, 0);
    ck_assert_int_eq(outline_of(-180, 1, 10, -2, &f), 0);
    ck_assert_uint_eq(f.n_rings, 1);
    box_is(&f, -180, 8, -179, 10, 0);
    ck_assert_int_eq(outline_by((struct places){190, 5, 10, -2, 0}, true, &f), 0);
    ck_assert_uint_eq(f.n_rings, 1);
    box_is(&f, -170, 8, -165, 10, 0);
}
END_TEST

START_TEST(keeps_a_ring_around_the_earth_within_180)
{
    struct pb_footprint f;
    for (int west = -180; west <= 0; west += 180) {
        const struct places all = {west, 360.5, 90, -180, 0};
        ck_assert_int_eq(outline_by(all, true, &f), 0);
        ck_assert_double_eq_tol(ring_area(&f), 360 * 180, 1e-6);
        box_is(&f, -180, -90, 180, 90, 0);
        ck_assert_uint_eq(f.n_rings, 1);
    }
}
END_TEST

/* The image is 40 degrees wide, whose middle is `off` degrees from the pole. */
START_TEST(leads_a_ring_over_the_pole_that_lies_in_the_image)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int mirror = -1; mirror <= 1; mirror += 2) {
            const double pole = 90 * sign, corner = sign * (90 - 20 * sqrt(2));
            const struct places around = {-20 * mirror, 40 * mirror, 20, -40, pole};
            struct pb_footprint f;
            ck_assert_int_eq(outline_by(around, false, &f), 0);
            box_is(&f, -180, fmin(corner, pole), 180, fmax(corner, pole), 0.01);
            const struct places beyond = {-100 * mirror, 200 * mirror, 100, -200, pole};
            ck_assert_int_eq(outline_by(beyond, false, &f), 0);
            const double far = sign * (90 - 100 * sqrt(2));
            box_is(&f, -180, fmin(far, pole), 180, fmax(far, pole), 0.05);
            const struct places outside = {0.001 * mirror, 40 * mirror, 20, -40, pole};
            ck_assert_int_eq(outline_by(outside, false, &f), 0);
            ck_assert_double_lt(fabs(f.bbox[sign > 0 ? 3 : 1]), 90);
            ck_assert_double_lt(f.bbox[2] - f.bbox[0], 180);
            const struct places edge = {0, 40 * mirror, 20, -40, pole};
            ck_assert_int_eq(outline_by(edge, false, &f), 0);
            ck_assert_double_eq(f.bbox[sign > 0 ? 3 : 1], pole);
            ck_assert_double_eq_tol(f.bbox[2] - f.bbox[0], 180, 1e-6);
        }
    }
}
END_TEST

START_TEST(leads_a_ring_over_both_poles)
{
    struct pb_footprint f;
    const struct places all = {-200, 400, 200, -400, 90};
    ck_assert_int_eq(outline_by(all, false, &f), 0);
    box_is(&f, -180, -90, 180, 90, 1e-4);
    ck_assert_double_eq_tol(ring_area(&f), 360 * 180, 0.1);
}
END_TEST

START_TEST(keeps_the_half_of_a_ring)
{
    struct pb_footprint f, g;
    const struct places beyond = {-100, 200, 100, -200, 90};
    ck_assert_int_eq(outline_by(beyond, false, &f), 0);
    g = f;
    ck_assert_int_eq(pb_outline_keep_half(&f, true), 0);
    box_is(&f, -180, 0, 180, 90, 1e-9);
    ck_assert_int_eq(pb_outline_keep_half(&g, false), 0);
    ck_assert_double_eq(g.bbox[3], 0);
    ck_assert_int_eq(outline_of(10, 2, 50, -1, &f), 0);
    ck_assert_int_eq(pb_outline_keep_half(&f, false), -ENODATA);
}
END_TEST

int main(void)
{
    if (access(REAL("landsat7_L7_ETMs_6band.tif"), R_OK) != 0) {
        printf("skipped: no sample files below %s\n", PB_SHARED_DATA);
        return 77;
    }
    pb_raster_init();
    Suite *suite = suite_create("raster_geo");
    TCase *tags = tcase_create("tags"), *places = tcase_create("place");
    tcase_add_test(tags, places_a_product_as_every_real_scene);
    tcase_add_test(tags, loaded_crs_changes_no_fact);
    tcase_add_test(tags, spells_nodata_as_gdal_does);
    tcase_add_test(tags, keeps_pixel_is_point);
    tcase_add_test(tags, takes_tags_from_whole_files_only);
    tcase_add_test(places, finds_scenes_on_the_earth);
    tcase_add_test(places, outline_of_a_full_disk_is_the_limb);
    tcase_add_test(places, has_no_footprint_without_a_place);
    tcase_add_test(places, says_the_crs_as_projjson);
    tcase_add_test(places, turns_every_ring_counter_clockwise);
    tcase_add_test(places, cuts_a_ring_at_the_antimeridian);
    tcase_add_test(places, keeps_a_ring_around_the_earth_within_180);
    tcase_add_test(places, leads_a_ring_over_the_pole_that_lies_in_the_image);
    tcase_add_test(places, leads_a_ring_over_both_poles);
    tcase_add_test(places, keeps_the_half_of_a_ring);
    tcase_set_timeout(tags, 60);
    suite_add_tcase(suite, tags);
    suite_add_tcase(suite, places);
    return run_suite(suite);
}
