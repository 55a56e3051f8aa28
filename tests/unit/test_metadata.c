/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "kernels/ops/pixel/calibrate.h"
#include "tests/unit/metadata_fixture.h"

#include <math.h>

#define RADIAN (3.14159265358979323846 / 180)

static void assert_same_bands(const struct pb_metadata *a, const struct pb_metadata *b)
{
    ck_assert_uint_eq(a->n_bands, b->n_bands);
    for (size_t i = 0; i < a->n_bands; i++) {
        ck_assert_str_eq(a->band[i].id, b->band[i].id);
        ck_assert_int_eq(a->band[i].number, b->band[i].number);
        for (int to = 0; to < PB_QUANTITIES; to++) {
            ck_assert(a->band[i].to[to].known == b->band[i].to[to].known);
            ck_assert_double_eq(a->band[i].to[to].gain, b->band[i].to[to].gain);
            ck_assert_double_eq(a->band[i].to[to].offset, b->band[i].to[to].offset);
        }
    }
}

START_TEST(landsat_level_1_has_sun_radiance_and_planck)
{
    struct pb_metadata f = facts_of(MTL_C1);
    double height = sin(62.17310472 * RADIAN);
    ck_assert_str_eq(f.family->name, "landsat-c2");
    ck_assert_str_eq(f.platform, "landsat-8");
    ck_assert_str_eq(f.constellation, "landsat");
    ck_assert_str_eq(f.instrument, "OLI_TIRS");
    ck_assert_str_eq(f.level, "L1TP");
    ck_assert_str_eq(f.datetime, "2017-08-13T15:54:15.788464Z");
    ck_assert_str_eq(f.tile, "016037"); /* WRS_PATH = 16, WRS_ROW = 37 */
    ck_assert_double_eq(f.sun_azimuth, 126.81463739);
    ck_assert_double_eq(f.gsd, 30);
    ck_assert_double_eq(f.cloud_cover, 26.70);
    assert_scale(&f, "4", PB_QUANTITY_TOA, 2.0e-5 / height, -0.1 / height);
    assert_scale(&f, "4", PB_QUANTITY_RADIANCE, 9.7350e-3, -48.67504);
    assert_scale(&f, "10", PB_QUANTITY_RADIANCE, 3.3420e-4, 0.1);
    ck_assert(!band_of(&f, "10")->to[PB_QUANTITY_TOA].known);
    ck_assert_double_eq(band_of(&f, "10")->k1, 774.8853);
    ck_assert_double_eq(band_of(&f, "10")->k2, 1321.0789);
    ck_assert(isnan(band_of(&f, "4")->k1));
    ck_assert_str_eq(band_of(&f, "4")->file, "LC08_L1TP_016037_20170813_20170814_01_RT_B4");
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_SURFACE], "Level 1"));
}
END_TEST

START_TEST(landsat_level_2_has_reflectance_and_temperature)
{
    struct pb_metadata f = facts_of(MTL_C2);
    ck_assert_str_eq(f.level, "L2SP");
    ck_assert_str_eq(f.datetime, "2020-10-31T14:31:47.808399Z");
    ck_assert_str_eq(f.tile, "001062"); /* WRS_PATH = 1, WRS_ROW = 62 */
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 2.75e-5, -0.2);
    assert_scale(&f, "ST_B10", PB_QUANTITY_TEMPERATURE, 0.00341802, 149.0);
    ck_assert(!band_of(&f, "4")->to[PB_QUANTITY_TOA].known);
    ck_assert_str_eq(band_of(&f, "ST_B10")->file,
                     "LC08_L2SP_001062_20201031_20201106_02_T2_ST_B10");
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_TOA], "to: surface"));
}
END_TEST

START_TEST(every_landsat_and_every_notation_is_read)
{
    static const struct {
        const char *file, *platform, *time;
    } cases[] = {
        {"LC09_L2SP_010065_20220129_20220131_02_T1_MTL.txt", "landsat-9", "2022-01-29T15:"},
        {"LC08_L2SP_005009_20150710_20200908_02_T2_MTL.json", "landsat-8", "2015-07-10T14:"},
        {"LE07_L2SP_021030_20100109_20200911_02_T1_MTL.xml", "landsat-7", "2010-01-09T16:"},
        {"LT05_L2SP_058014_20110312_20200823_02_T1_MTL.xml", "landsat-5", "2011-03-12T19:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_metadata f = facts_of(cases[i].file);
        ck_assert_str_eq(f.platform, cases[i].platform);
        ck_assert_msg(strncmp(f.datetime, cases[i].time, 14) == 0, "%s", f.datetime);
        assert_scale(&f, "3", PB_QUANTITY_SURFACE, 2.75e-5, -0.2);
        ck_assert(f.sun_elevation > 0 && f.sun_elevation < 90);
    }
}
END_TEST

START_TEST(sentinel2_offset_follows_the_baseline)
{
    struct pb_metadata f = facts_of(S2_OFFSET);
    ck_assert_str_eq(f.family->name, "sentinel2");
    ck_assert_str_eq(f.platform, "sentinel-2b");
    ck_assert_str_eq(f.level, "L2A");
    ck_assert_str_eq(f.baseline, "04.00");
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, -0.1);
    assert_scale(&f, "8A", PB_QUANTITY_SURFACE, 1e-4, -0.1);
    ck_assert_ptr_nonnull(strstr(f.boa_offset, "04.00"));
    ck_assert_ptr_nonnull(strstr(f.rule[PB_QUANTITY_SURFACE], "(DN - 1000) / 10000"));
    f = facts_of(S2_OLD);
    ck_assert_str_eq(f.baseline, "02.12");
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, 0);
    ck_assert_ptr_nonnull(strstr(f.rule[PB_QUANTITY_SURFACE], "DN / 10000, no offset before"));
    f = facts_of(S2_L1C);
    ck_assert_str_eq(f.level, "L1C");
    ck_assert_str_eq(f.datetime, "2021-09-08T04:27:01.024Z");
    assert_scale(&f, "12", PB_QUANTITY_TOA, 1e-4, 0);
    ck_assert(!band_of(&f, "4")->to[PB_QUANTITY_SURFACE].known);
}
END_TEST

START_TEST(sentinel2_tile_adds_the_sun_and_sensing_time)
{
    struct pb_metadata f;
    struct pb_err err;
    int rc = parse_two(load_metadata(S2_OFFSET), load_metadata(S2_TILE), &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_double_eq_tol(f.sun_elevation, 90 - 76.5286190227361, 1e-9);
    ck_assert_double_eq_tol(f.sun_azimuth, 246.540424743604, 1e-9);
    ck_assert_str_eq(f.datetime, "2022-04-13T15:08:07.846358Z");
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, -0.1);
    ck_assert_str_eq(f.crs, "EPSG:32633");
    ck_assert_str_eq(f.tile, "T33XWJ");
    ck_assert_str_eq(f.orbit_state, "ascending");
    ck_assert_double_eq(f.relative_orbit, 25);
    struct pb_metadata swapped;
    ck_assert_int_eq(parse_two(load_metadata(S2_TILE), load_metadata(S2_OFFSET), &swapped, &err),
                     0);
    assert_same_bands(&swapped, &f);
    ck_assert_str_eq(swapped.datetime, f.datetime); /* the tile's is exact */
    ck_assert_str_eq(swapped.baseline, f.baseline);
    f = facts_of(S2_TILE); /* alone: no scale, and the message has the place of the scale */
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_SURFACE], "MTD_MSIL2A.xml"));
}
END_TEST

/* The item of another baseline; its bands have no scale of the old one. */
static char *of_baseline(const char *baseline)
{
    char *text = changed(load_metadata(S2_ITEM), "\"02.14\"", baseline);
    for (char *at = text; (at = strstr(at, "raster:bands")) != NULL;)
        *at = 'x';
    return text;
}

START_TEST(earth_search_says_whether_the_offset_is_taken_out)
{
    struct pb_metadata f = facts_of(S2_ITEM);
    struct pb_err err;
    ck_assert_str_eq(f.datetime, "2020-02-19T11:34:25.405Z");
    ck_assert_str_eq(f.tile, "T29RKH"); /* grid:code MGRS-29RKH */
    ck_assert_str_eq(f.baseline, "02.14");
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, 0);
    char *text = of_baseline("\"05.09\"");
    ck_assert_int_eq(parse(text, &f, &err), 0); /* boa_offset_applied: false */
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, -0.1);
    text = of_baseline("\"05.09\"");
    text = changed(text, "boa_offset_applied\":false", "boa_offset_applied\":true");
    ck_assert_int_eq(parse(text, &f, &err), 0);
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, 0);
    ck_assert_ptr_nonnull(strstr(f.boa_offset, "taken out"));
    text = changed(load_metadata(S2_ITEM), "\"02.14\"", "\"05.09\"");
    assert_refused(strdup(text), PB_E_INPUT_METADATA_CONFLICT, "boa_offset_applied is false");
    /* Without the flag the bands of the item count, and these contradict the baseline. */
    assert_refused(changed(text, "earthsearch:boa_offset_applied", "x"),
                   PB_E_INPUT_METADATA_CONFLICT, "the item's bands have 0.0001 and 0;");
    assert_refused(
        changed(load_metadata(S2_ITEM), "boa_offset_applied\":false", "boa_offset_applied\":true"),
        PB_E_INPUT_METADATA_CONFLICT, "no offset");
}
END_TEST

/* An item without the flag of Earth Search, as the programs of other catalogues write it. assets:
 * of bands. */
static char *item_without_flag(const char *baseline, const char *assets)
{
    char text[4096];
    (void)snprintf(text, sizeof text,
                   "{\"type\": \"Feature\", \"stac_version\": \"1.1.0\", \"id\": "
                   "\"S2B_MSIL2A_20230601T101559_N0509_R065_T32UQD_20230601T131559\", "
                   "\"properties\": {\"constellation\": \"sentinel-2\", \"platform\": "
                   "\"sentinel-2b\", \"datetime\": \"2023-06-01T10:15:59Z\", %s}, \"assets\": "
                   "{%s}}",
                   baseline, assets);
    return strdup(text);
}

#define ITEM_BASELINE "\"s2:processing_baseline\": \"05.00\""
#define ITEM_BAND(name, file, scale, offset)                                                       \
    "\"" name "\": {\"href\": \"./R10m/" file "\", \"raster:bands\": [{\"scale\": " scale          \
    ", \"offset\": " offset "}]}"

START_TEST(sentinel2_item_has_the_offset_of_its_bands)
{
    struct pb_metadata f;
    struct pb_err err;
    int rc = parse(item_without_flag(ITEM_BASELINE,
                                     ITEM_BAND("red", "B04.jp2", "0.0001", "-0.1") ", " ITEM_BAND(
                                         "nir08", "B8A.jp2", "0.0001",
                                         "-0.1") ", " ITEM_BAND("wvp", "WVP.jp2", "0.001", "0")),
                   &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_str_eq(f.level, "L2A");
    ck_assert_str_eq(f.tile, "T32UQD");
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, -0.1);
    assert_scale(&f, "8A", PB_QUANTITY_SURFACE, 1e-4, -0.1);
    rc = parse(item_without_flag("\"s2:processing_baseline\": \"02.14\"",
                                 ITEM_BAND("red", "B04.tif", "0.0001", "0")),
               &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, 0);
    /* The flag decides where the bands keep the offset that was applied. */
    rc = parse(item_without_flag(ITEM_BASELINE ", \"earthsearch:boa_offset_applied\": true",
                                 ITEM_BAND("red", "B04.tif", "0.0001", "-0.1")),
               &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, 0);
}
END_TEST

/* Item of the Copernicus Data Space: version 2 of the raster extension, and the baseline under
 * another name. */
START_TEST(sentinel2_item_of_the_data_space_is_read)
{
    struct pb_metadata f;
    struct pb_err err;
    const char *baseline = "\"product:type\": \"S2MSI2A\", \"processing:version\": \"05.11\"";
    int rc = parse(
        item_without_flag(
            baseline,
            "\"B04_10m\": {\"href\": "
            "\"s3://eodata/IMG_DATA/R10m/T32UQD_20230601T101559_B04_10m.jp2\", "
            "\"raster:scale\": 0.0001, \"raster:offset\": -0.1, \"bands\": [{\"name\": \"B04\"}]}"),
        &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_str_eq(f.family->name, "sentinel2");
    ck_assert_str_eq(f.baseline, "05.11");
    assert_scale(&f, "4", PB_QUANTITY_SURFACE, 1e-4, -0.1);
}
END_TEST

START_TEST(sentinel2_item_that_contradicts_itself_is_refused)
{
    assert_refused(item_without_flag(ITEM_BASELINE, ITEM_BAND("red", "B04.tif", "0.0001", "0")),
                   PB_E_INPUT_METADATA_CONFLICT, "baseline 05.00 has scale 0.0001 and offset -0.1");
    assert_refused(item_without_flag("\"s2:processing_baseline\": \"03.01\"",
                                     ITEM_BAND("red", "B04.tif", "0.0001", "-0.1")),
                   PB_E_INPUT_METADATA_CONFLICT, "input.files");
    assert_refused(item_without_flag(ITEM_BASELINE,
                                     ITEM_BAND("red", "B04.tif", "0.0001", "-0.1") ", " ITEM_BAND(
                                         "nir", "B08.tif", "0.0001", "0")),
                   PB_E_INPUT_METADATA_CONFLICT, "different scales");
    assert_refused(item_without_flag(ITEM_BASELINE ", \"earthsearch:boa_offset_applied\": false",
                                     ITEM_BAND("red", "B04.tif", "0.0001", "0")),
                   PB_E_INPUT_METADATA_CONFLICT, "boa_offset_applied is false");
    assert_refused(item_without_flag(ITEM_BASELINE, "\"red\": {\"href\": \"B04.tif\"}"),
                   PB_E_INPUT_METADATA_VALUE, "give scale and offset in input.files");
}
END_TEST

START_TEST(planetscope_has_radiance_and_reflectance_per_band)
{
    struct pb_metadata f = facts_of(PLANET);
    ck_assert_str_eq(f.family->name, "planetscope");
    ck_assert_str_eq(f.platform, "101c");
    ck_assert_str_eq(f.instrument, "PS2");
    ck_assert_str_eq(f.datetime, "2017-08-31T17:27:54Z");
    ck_assert_double_eq_tol(f.sun_elevation, 65.12005, 1e-9);
    ck_assert_double_eq_tol(f.off_nadir, 0.240151, 1e-9);
    ck_assert_double_eq(f.gsd, 3);
    ck_assert_uint_eq(f.n_bands, 4);
    ck_assert_int_eq(band_of(&f, "4")->number, 4);
    assert_scale(&f, "4", PB_QUANTITY_TOA, 3.22221688359e-05, 0);
    assert_scale(&f, "1", PB_QUANTITY_RADIANCE, 0.01, 0);
}
END_TEST

/* An item of Planet's catalogue as an order delivers it, after the schema of its data API. */
static char *planet_item(const char *id, const char *more)
{
    char *text = malloc(2000);
    (void)snprintf(text, 2000,
                   "{\"id\":\"%s\",\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\"},"
                   "\"properties\":{\"acquired\":\"2017-08-31T17:27:54.7Z\","
                   "\"instrument\":\"PS2\",\"item_type\":\"PSScene\",\"satellite_id\":\"101c\","
                   "\"provider\":\"planetscope\",\"gsd\":3.9,%s\"view_angle\":-0.2}}",
                   id, more);
    return text;
}

START_TEST(newer_planetscope_item_completes_coefficients)
{
    struct pb_metadata f, swapped, xml = facts_of(PLANET);
    struct pb_err err;
    const char more[] = "\"satellite_azimuth\":279.1,\"cloud_cover\":0.25,\"cloud_percent\":12,";
    int rc = parse(planet_item("20170831_172754_101c", more), &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_str_eq(f.family->name, "planetscope");
    ck_assert_str_eq(f.datetime, "2017-08-31T17:27:54.7Z");
    ck_assert_str_eq(f.platform, "101c");
    ck_assert_double_eq(f.cloud_cover, 12);
    ck_assert_double_eq_tol(f.off_nadir, 0.2, 1e-9);
    ck_assert_double_eq_tol(f.view_azimuth, 279.1, 1e-9);
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_TOA], "*_metadata.xml"));
    rc = parse_two(load_metadata(PLANET), planet_item("20170831_172754_101c", ""), &f, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    rc = parse_two(planet_item("20170831_172754_101c", ""), load_metadata(PLANET), &swapped, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_str_eq(f.product, xml.product);
    ck_assert_str_eq(swapped.product, xml.product);
    ck_assert_str_eq(swapped.datetime, xml.datetime); /* the document's is exact */
    assert_same_bands(&f, &xml);
    ck_assert_str_eq(f.why_not[PB_QUANTITY_TOA], "");
    ck_assert_int_lt(
        parse_two(load_metadata(PLANET), planet_item("20170831_172753_101c", ""), &f, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "20170831_172753_101c"));
}
END_TEST

/* Radiometric Use of WorldView-2 Imagery: L = absCalFactor DN / effectiveBandwidth, and
 * L d^2 pi / (E cos(90 - sunEl)) with d of 2009-12-06, which its formula makes 0.98525; E by
 * Thuillier 2003, Absolute Radiometric Calibration 2016v0. */
START_TEST(worldview_has_reflectance_if_irradiance_is_known)
{
    struct pb_metadata f = facts_of(IMD);
    double radiance = 5.678345e-02 / 2.846000e-01, d = 0.98525;
    ck_assert_str_eq(f.platform, "worldview-2");
    ck_assert_str_eq(f.datetime, "2009-12-06T14:58:03.358375Z");
    ck_assert_double_eq(f.off_nadir, 14.4);
    ck_assert_double_eq_tol(f.incidence, 16.3, 1e-9);
    ck_assert_double_eq_tol(f.cloud_cover, 0.4, 1e-9);
    ck_assert_int_eq(band_of(&f, "P")->number, 1);
    assert_scale(&f, "P", PB_QUANTITY_RADIANCE, radiance, 0);
    double toa = radiance * d * d * 3.14159265358979 / (1571.36 * sin(66.4 * RADIAN));
    ck_assert_double_eq_tol(band_of(&f, "P")->to[PB_QUANTITY_TOA].gain, toa, 5e-5 * toa);
    struct pb_err err; /* WorldView-4's irradiance is not in the table: radiance alone */
    ck_assert_int_eq(parse(changed(load_metadata(IMD), "WV02", "GE01"), &f, &err), 0);
    ck_assert_str_eq(f.platform, "geoeye-1");
    ck_assert_double_eq_tol(band_of(&f, "P")->to[PB_QUANTITY_TOA].gain, toa * 1571.36 / 1610.73,
                            5e-5 * toa);
    ck_assert_int_eq(parse(changed(load_metadata(IMD), "WV02", "WV04"), &f, &err), 0);
    ck_assert_str_eq(f.platform, "worldview-4");
    ck_assert(!band_of(&f, "P")->to[PB_QUANTITY_TOA].known);
    ck_assert(band_of(&f, "P")->to[PB_QUANTITY_RADIANCE].known);
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_TOA], "WV04"));
}
END_TEST

START_TEST(dimap_has_radiance_and_reflectance_of_the_middle)
{
    struct pb_metadata f = facts_of(DIMAP);
    struct pb_err err;
    double d = 1.00014 - 0.01671 * cos((357.529 + 0.98560028 * 5843.9516) * RADIAN) -
               0.00014 * cos(2 * (357.529 + 0.98560028 * 5843.9516) * RADIAN);
    double factor = 3.14159265358979 * d * d / (1594 * sin(21.75 * RADIAN));
    ck_assert_str_eq(f.platform, "phr-1b");
    ck_assert_str_eq(f.datetime, "2016-01-01T10:50:23.02Z");
    ck_assert_double_eq(f.sun_elevation, 21.75);
    ck_assert_int_eq(band_of(&f, "2")->number, 1);
    assert_scale(&f, "2", PB_QUANTITY_RADIANCE, 1 / 10.46, 0.5);
    const struct pb_meta_scale *toa = &band_of(&f, "2")->to[PB_QUANTITY_TOA];
    ck_assert_double_eq_tol(toa->gain, factor / 10.46, 1e-6 * toa->gain);
    ck_assert_double_eq_tol(toa->offset, 0.5 * factor, 1e-6 * toa->offset);
    ck_assert_int_eq(parse(changed(load_metadata(DIMAP), ">BASIC<", ">DISPLAY<"), &f, &err), 0);
    ck_assert(!band_of(&f, "2")->to[PB_QUANTITY_RADIANCE].known);
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_RADIANCE], "DISPLAY"));
}
END_TEST

START_TEST(sentinel1_has_facts_and_says_what_it_becomes)
{
    struct pb_metadata f = facts_of(S1);
    ck_assert_str_eq(f.platform, "sentinel-1c");
    ck_assert_str_eq(f.datetime, "2025-01-18T17:14:04.727079Z");
    ck_assert_str_eq(f.level, "GRD");
    ck_assert_double_eq(f.gsd, 10);
    ck_assert_double_eq_tol(f.incidence, 37.19349957, 1e-6);
    ck_assert_str_eq(f.band[0].id, "HH");
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_RADIANCE], "to: sigma0"));
    pb_metadata_fini(&f);
}
END_TEST

START_TEST(item_of_any_producer_has_time_and_acquisition)
{
    struct pb_metadata f;
    struct pb_err err;
    char *text = strdup("{\"type\": \"Feature\", \"stac_version\": \"1.1.0\", \"id\": \"x-1\", "
                        "\"properties\": {\"datetime\": null, "
                        "\"start_datetime\": \"2026-06-04T10:50:31+02:00\", "
                        "\"end_datetime\": \"2026-06-04T10:50:31+02:00\", "
                        "\"platform\": \"x-9\", \"instruments\": [\"oli\", \"tirs\"], "
                        "\"gsd\": 30, \"eo:cloud_cover\": 12.5, \"view:sun_azimuth\": -30, "
                        "\"view:off_nadir\": -3, \"sat:orbit_state\": \"descending\"}}");
    ck_assert_int_eq(parse(text, &f, &err), 0);
    ck_assert_str_eq(f.family->name, "stac-item");
    ck_assert_str_eq(f.product, "x-1");
    ck_assert_str_eq(f.platform, "x-9");
    ck_assert_str_eq(f.instrument, "oli");
    ck_assert_str_eq(f.datetime, "2026-06-04T08:50:31Z");
    ck_assert_double_eq(f.cloud_cover, 12.5);
    ck_assert_double_eq(f.sun_azimuth, 330);
    ck_assert_double_eq(f.off_nadir, 3);
    ck_assert_double_eq(f.gsd, 30);
    ck_assert_str_eq(f.orbit_state, "descending");
    ck_assert(isnan(f.sun_elevation));
    ck_assert_ptr_nonnull(strstr(f.why_not[PB_QUANTITY_TOA], "the producer's own"));
    pb_metadata_fini(&f);
    /* Several observations have an interval, and nothing is taken for its time. */
    text = strdup("{\"type\": \"Feature\", \"stac_version\": \"1.1.0\", \"properties\": "
                  "{\"datetime\": null, \"start_datetime\": \"2026-06-04T10:50:31Z\", "
                  "\"end_datetime\": \"2026-06-24T10:50:31Z\", \"eo:cloud_cover\": null}}");
    ck_assert_int_eq(parse(text, &f, &err), 0);
    ck_assert_str_eq(f.datetime, "");
    ck_assert_str_eq(f.start, "2026-06-04T10:50:31Z");
    ck_assert_str_eq(f.end, "2026-06-24T10:50:31Z");
    ck_assert(isnan(f.cloud_cover));
    pb_metadata_fini(&f);
    text = strdup("{\"type\": \"Feature\", \"stac_version\": \"1.1.0\", \"properties\": "
                  "{\"datetime\": null, \"start_datetime\": \"2026-06-24T10:50:31Z\", "
                  "\"end_datetime\": \"2026-06-04T10:50:31Z\"}}");
    ck_assert_int_lt(parse(text, &f, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "is before start_datetime"));
    text = strdup("{\"type\": \"Feature\", \"stac_version\": \"1.0.0\", \"properties\": "
                  "{\"eo:cloud_cover\": -1}}");
    ck_assert_int_lt(parse(text, &f, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_VALUE);
    text = strdup("{\"type\": \"Feature\", \"properties\": {\"eo:cloud_cover\": 1}}");
    ck_assert_int_lt(parse(text, &f, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_UNKNOWN);
}
END_TEST

START_TEST(an_item_tells_the_tile_of_its_grid)
{
    static const struct {
        const char *properties, *tile;
    } cases[] = {{"\"grid:code\": \"MGRS-33XWJ\"", "T33XWJ"},
                 {"\"s2:mgrs_tile\": \"5QKB\"", "T05QKB"},
                 {"\"grid:code\": \"WRS2-001062\"", "001062"},
                 {"\"landsat:wrs_path\": \"1\", \"landsat:wrs_row\": \"62\"", "001062"},
                 {"\"grid:code\": \"MSIN-2506\"", "MSIN-2506"},
                 {"\"grid:code\": \"X-1/..\"", ""},
                 {"\"grid:code\": \"MGRS-33\"", ""},
                 {"\"landsat:wrs_path\": \"1\"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pb_metadata f;
        struct pb_err err;
        char text[300];
        (void)snprintf(text, sizeof text,
                       "{\"type\": \"Feature\", \"stac_version\": \"1.1.0\", "
                       "\"properties\": {%s}}",
                       cases[i].properties);
        ck_assert_int_eq(parse(strdup(text), &f, &err), 0);
        ck_assert_str_eq(f.tile, cases[i].tile);
        pb_metadata_fini(&f);
    }
}
END_TEST

START_TEST(calibrate_knows_every_family_and_quantity)
{
    size_t length;
    for (size_t i = 0; i < pb_metadata_family_count(); i++) {
        const char *name = pb_metadata_family_at(i)->name;
        if (pb_metadata_family_at(i)->facts_only)
            continue;
        const char *word = pb_key_choice(PB_CALIBRATE_SENSORS, (int)i + 1, &length);
        ck_assert_msg(strlen(name) == length && memcmp(word, name, length) == 0, "%s", name);
    }
    for (int i = 0; i < PB_QUANTITIES; i++) {
        const char *word = pb_key_choice(PB_CALIBRATE_QUANTITIES, i, &length);
        ck_assert(strlen(pb_quantity_name(i)) == length);
        ck_assert(memcmp(word, pb_quantity_name(i), length) == 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metadata");
    TCase *tc = tcase_create("families");
    tcase_add_test(tc, landsat_level_1_has_sun_radiance_and_planck);
    tcase_add_test(tc, landsat_level_2_has_reflectance_and_temperature);
    tcase_add_test(tc, every_landsat_and_every_notation_is_read);
    tcase_add_test(tc, sentinel2_offset_follows_the_baseline);
    tcase_add_test(tc, sentinel2_tile_adds_the_sun_and_sensing_time);
    tcase_add_test(tc, earth_search_says_whether_the_offset_is_taken_out);
    tcase_add_test(tc, sentinel2_item_has_the_offset_of_its_bands);
    tcase_add_test(tc, sentinel2_item_of_the_data_space_is_read);
    tcase_add_test(tc, sentinel2_item_that_contradicts_itself_is_refused);
    tcase_add_test(tc, planetscope_has_radiance_and_reflectance_per_band);
    tcase_add_test(tc, worldview_has_reflectance_if_irradiance_is_known);
    tcase_add_test(tc, dimap_has_radiance_and_reflectance_of_the_middle);
    tcase_add_test(tc, item_of_any_producer_has_time_and_acquisition);
    tcase_add_test(tc, an_item_tells_the_tile_of_its_grid);
    tcase_add_test(tc, calibrate_knows_every_family_and_quantity);
    tcase_add_test(tc, sentinel1_has_facts_and_says_what_it_becomes);
    tcase_add_test(tc, newer_planetscope_item_completes_coefficients);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
