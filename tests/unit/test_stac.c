/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/product/quicklook/quicklook.h"
#include "pipeline/product/stac/stac_asset.h"
#include "pipeline/product/product.h"
#include "pipeline/product/stac/stac_geometry.h"
#include "pipeline/product/stac/stac_lineage.h"
#include "pipeline/product/stac/stac_processing.h"
#include "tests/unit/product_fixture.h"
#include "tests/unit/run_suite.h"

#include <math.h>

static const char yaml[] =
    "service: {inbox: /i, work: /w, products: /p, quarantine: /q, state: /s, socket: /x.sock}\n"
    "pipelines:\n"
    "  vegetation:\n"
    "    input:\n"
    "      match: ['*.tif']\n"
    "      bands: {B: 1, G: 2, R: 3, N: 4}\n"
    "      scale: 0.0001\n"
    "      offset: -0.1\n"
    "    steps:\n"
    "      - index: {names: {NDVI: NDVI, V: SAVI}, constants: {L: 0.5}}\n"
    "      - math: {bands: {WATER: '(G - N) / (G + N)'}}\n"
    "      - convolve: {kernel: gaussian, size: 3, bands: {S: N}}\n"
    "      - math: {bands: {W2: 'WATER * 2'}}\n"
    "      - convolve: {kernel: box, size: 3, bands: [B]}\n"
    "    products:\n"
    "      - cog: {bands: [NDVI, V, WATER, W2], type: float32}\n"
    "      - stac: {platform: landsat-7, collection: scenes, datetime: '2001-02-03T04:05:06Z'}\n"
    "  plain:\n"
    "    input: {match: ['*.tif'], nodata: 0}\n"
    "    products:\n"
    "      - cog: {type: int16, nodata: -32768}\n"
    "      - stac: {datetime: file-time}\n";

static struct pb_config *config;
static struct pb_raster_info info;
static const char *const vegetation_bands[] = {"NDVI", "V", "WATER", "S", "W2", "R"};

static struct pb_product_env env_of(const char *pipeline)
{
    info = (struct pb_raster_info){.width = 30, .height = 20, .n_bands = 4, .type = PB_U16};
    for (int i = 0; i < 4; i++)
        info.band[i].scale = 1;
    struct pb_product_env env = {.config = config,
                                 .pipeline = pb_config_pipeline(config, pipeline),
                                 .info = &info,
                                 .scene = "s",
                                 .input = "/in/a b.tif",
                                 .directory = scratch(),
                                 .band_names = vegetation_bands,
                                 .n_bands = 6,
                                 .device = "cpu"};
    pb_product_place(&env, NULL);
    return env;
}

static void setup(void)
{
    static struct pb_err_list errors;
    memset(&errors, 0, sizeof errors);
    int rc = pb_config_parse(yaml, sizeof yaml - 1, "test.yaml", &pb_products, &errors, &config);
    ck_assert_msg(rc == 0, "%s", errors.err[0].msg);
}

static void teardown(void)
{
    pb_config_destroy(config);
}

static void assert_holds(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in %s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in %s", part, text);
}

START_TEST(lineage_says_which_rule_scaled_and_every_formula)
{
    struct pb_product_env env = env_of("vegetation");
    char *lineage = pb_stac_lineage(&env, NULL);
    assert_holds(lineage, "Made from a b.tif by pipeline vegetation of pushbroom ");
    assert_holds(lineage, "value = DN * 0.0001 - 0.1 (input.scale, input.offset of pipeline "
                          "vegetation)");
    assert_holds(lineage, "No nodata value.");
    assert_holds(lineage, "NDVI = (N - R)/(N + R)");
    assert_holds(lineage, "with L = 0.5");
    assert_holds(lineage, "WATER = (G - N) / (G + N)");
    assert_holds(lineage, "Step convolve:");
    assert_lacks(lineage, "were not applied");
    free(lineage);
}
END_TEST

START_TEST(lineage_has_invalid_values_and_unapplied_scaling)
{
    struct pb_product_env env = env_of("plain");
    char *lineage = pb_stac_lineage(&env, NULL);
    assert_holds(lineage, "value = DN (input.scale");
    assert_holds(lineage, "Invalid: DN = 0 (input.nodata).");
    free(lineage);
    env = env_of("vegetation");
    for (int i = 0; i < 4; i++)
        info.band[i].has_nodata = true;
    info.band[1].scale = 0.01;
    info.has_mask = true;
    lineage = pb_stac_lineage(&env, NULL);
    assert_holds(lineage, "Invalid: DN = 0 (nodata of the file); pixels masked in the file.");
    assert_holds(lineage, "tags (0.01, 0 on band 2) were not applied");
    free(lineage);
    for (int i = 0; i < 4; i++)
        info.band[i].nodata = NAN;
    lineage = pb_stac_lineage(&env, NULL);
    assert_holds(lineage, "Invalid: DN = NaN (nodata of the file)");
    free(lineage);
    info.band[3].nodata = 7;
    lineage = pb_stac_lineage(&env, NULL);
    assert_holds(lineage, "the nodata value of its band");
    free(lineage);
}
END_TEST

static char *band_expression(const struct pb_product_env *env, const char *band)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_stac_band_expression(json, env, band);
    pb_json_end(json);
    char *text = strdup(pb_json_text(json, NULL));
    pb_json_destroy(json);
    return text;
}

START_TEST(band_has_a_formula_only_when_it_says_all)
{
    struct pb_product_env env = env_of("vegetation");
    char *text = band_expression(&env, "W2");
    assert_holds(text, "WATER * 2");
    free(text);
    text = band_expression(&env, "NDVI");
    assert_holds(text, "(N - R)/(N + R)");
    free(text);
    text = band_expression(&env, "S"); /* made by a convolution */
    ck_assert_str_eq(text, "{}");
    free(text);
    text = band_expression(&env, "N");
    assert_holds(text, "DN * 0.0001 - 0.1");
    free(text);
    text = band_expression(&env, "B"); /* the last step smoothed it in place */
    ck_assert_str_eq(text, "{}");
    free(text);
    env = env_of("plain");
    text = band_expression(&env, "B3");
    assert_holds(text, "\"DN\"");
    free(text);
    text = band_expression(&env, "B5"); /* the file has 4 */
    ck_assert_str_eq(text, "{}");
    free(text);
}
END_TEST

static char *geometry(const struct pb_footprint *footprint)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_stac_geometry(json, footprint);
    pb_json_end(json);
    char *text = strdup(pb_json_text(json, NULL));
    pb_json_destroy(json);
    return text;
}

START_TEST(unplaced_scene_has_null_geometry_and_no_bbox)
{
    char *text = geometry(NULL);
    ck_assert_str_eq(text, "{\"geometry\":null}");
    free(text);
}
END_TEST

START_TEST(footprint_is_a_polygon)
{
    const struct pb_footprint square = {
        .lonlat = {{10, 0}, {20, 0}, {20, 5.123456789}, {10, 5}, {10, 0}},
        .n = 5,
        .n_rings = 1,
        .first = {0, 5},
        .bbox = {10, 0, 20, 5.123456789}};
    char *text = geometry(&square);
    ck_assert_str_eq(text, "{\"geometry\":{\"type\":\"Polygon\",\"coordinates\":"
                           "[[[10,0],[20,0],[20,5.1234568],[10,5],[10,0]]]},"
                           "\"bbox\":[10,0,20,5.1234568]}");
    free(text);
}
END_TEST

START_TEST(footprint_across_the_antimeridian_is_two_polygons)
{
    const struct pb_footprint both = {
        .lonlat =
            {{170, 0}, {180, 0}, {180, 10}, {170, 0}, {-180, 0}, {-170, 0}, {-180, 10}, {-180, 0}},
        .n = 8,
        .n_rings = 2,
        .first = {0, 4, 8},
        .bbox = {170, 0, -170, 10}};
    char *text = geometry(&both);
    ck_assert_str_eq(text, "{\"geometry\":{\"type\":\"MultiPolygon\",\"coordinates\":["
                           "[[[170,0],[180,0],[180,10],[170,0]]],"
                           "[[[-180,0],[-170,0],[-180,10],[-180,0]]]]},"
                           "\"bbox\":[170,0,-170,10]}");
    free(text);
}
END_TEST

START_TEST(footprint_around_a_gap_is_a_polygon_with_a_hole)
{
    const struct pb_footprint both = {.lonlat = {{-180, -90},
                                                 {180, -90},
                                                 {180, 90},
                                                 {-180, 90},
                                                 {-180, -90},
                                                 {0, 0},
                                                 {0, 1},
                                                 {1, 0},
                                                 {0, 0}},
                                      .n = 9,
                                      .n_rings = 2,
                                      .first = {0, 5, 9},
                                      .has_hole = true,
                                      .bbox = {-180, -90, 180, 90}};
    char *text = geometry(&both);
    ck_assert_str_eq(text, "{\"geometry\":{\"type\":\"Polygon\",\"coordinates\":["
                           "[[-180,-90],[180,-90],[180,90],[-180,90],[-180,-90]],"
                           "[[0,0],[0,1],[1,0],[0,0]]]},"
                           "\"bbox\":[-180,-90,180,90]}");
    free(text);
}
END_TEST

static char *asset(const struct pb_product_env *env, const struct pb_product_result *results,
                   size_t n, size_t i)
{
    struct pb_json *json = pb_json_create(false);
    struct pb_err err = {0};
    const struct pb_stac_item item = {.env = env, .results = results, .n_results = n, .json = json};
    pb_json_object(json, NULL);
    ck_assert_int_eq(pb_stac_asset(&item, i, &err), 0);
    pb_json_end(json);
    char *text = strdup(pb_json_text(json, NULL));
    pb_json_destroy(json);
    return text;
}

#define DIGITS "abababababababababababababababababababababababababababababababab"

START_TEST(cog_asset_tells_grid_bands_and_checksum)
{
    struct pb_product_env env = env_of("vegetation");
    const double t[6] = {500000, 10, 1, 4000000, 2, -10};
    memcpy(info.transform, t, sizeof t);
    info.has_transform = info.has_crs = true;
    strcpy(info.crs_code, "EPSG:32633");
    pb_product_place(&env, NULL);
    uint64_t buckets[4] = {1, 2, 3, 4};
    char water[] = "WATER";
    struct pb_band_statistics statistics[] = {{.count = 600,
                                               .valid = 10,
                                               .minimum = (double)0.1F,
                                               .maximum = 1,
                                               .mean = 0.5,
                                               .stddev = 0.25,
                                               .histogram_min = 0,
                                               .histogram_max = 2,
                                               .n_buckets = 4,
                                               .bucket = buckets}};
    strcpy(statistics[0].name, water);
    const struct pb_product_result results[] = {{.kind = &pb_kind_statistics,
                                                 .file = "s.statistics.json",
                                                 .statistics = statistics,
                                                 .n_statistics = 1},
                                                {.kind = &pb_kind_cog,
                                                 .file = "s.tif",
                                                 .bytes = 1234,
                                                 .checksum = "sha256:" DIGITS,
                                                 .media_type = "image/tiff",
                                                 .config = env.pipeline->products[0]}};
    char *text = asset(&env, results, 2, 1);
    assert_holds(text, "{\"data\":{\"href\":\"./s.tif\"");
    assert_holds(text, "\"file:size\":1234");
    assert_holds(text, "\"file:checksum\":\"1220" DIGITS "\"");
    assert_holds(text, "\"proj:code\":\"EPSG:32633\"");
    assert_holds(text, "\"proj:shape\":[20,30]");
    assert_holds(text, "\"proj:transform\":[10,1,500000,2,-10,4000000]");
    assert_holds(text, "\"proj:bbox\":[500000,3999800,500320,4000060]");
    assert_holds(text, "\"name\":\"NDVI\",\"data_type\":\"float32\",\"nodata\":\"nan\","
                       "\"raster:bits_per_sample\":32,\"processing:expression\":{");
    assert_holds(text, "\"minimum\":0.1,\"maximum\":1,\"mean\":0.5,\"stddev\":0.25,\"count\":600,");
    assert_holds(text, "\"raster:histogram\":{\"count\":4,\"min\":0,\"max\":2,"
                       "\"buckets\":[1,2,3,4]}");
    free(text);
}
END_TEST

START_TEST(integer_cog_has_its_nodata_and_no_float_statistics)
{
    struct pb_product_env env = env_of("plain");
    static const char *const names[] = {"B1"};
    env.band_names = names;
    env.n_bands = 1;
    struct pb_band_statistics statistics[] = {{.name = "B1", .count = 600, .valid = 600}};
    const struct pb_product_result results[] = {
        {.kind = &pb_kind_statistics, .statistics = statistics, .n_statistics = 1},
        {.kind = &pb_kind_cog, .file = "s.tif", .config = env.pipeline->products[0]},
        {.kind = &pb_kind_cog, .file = "t.tif", .config = env.pipeline->products[0]}};
    char *text = asset(&env, results, 3, 1);
    assert_holds(text, "\"data_type\":\"int16\",\"nodata\":-32768,\"raster:bits_per_sample\":16");
    assert_holds(text, "\"proj:code\":null,\"proj:shape\":[20,30],\"bands\"");
    assert_lacks(text, "\"statistics\"");
    free(text);
    text = asset(&env, results, 3, 2);
    assert_holds(text, "{\"data-2\":{");
    free(text);
}
END_TEST

START_TEST(quicklook_asset_is_not_placed)
{
    struct pb_product_env env = env_of("plain");
    strcpy(info.crs_code, "EPSG:4326");
    const struct pb_quicklook_config quicklook = {.size_px = 700};
    const struct pb_product_result results[] = {{.kind = &pb_kind_quicklook,
                                                 .config = &quicklook.product,
                                                 .name = "pretty",
                                                 .file = "s.pretty.png",
                                                 .width = 700,
                                                 .height = 20}};
    char *text = asset(&env, results, 1, 0);
    assert_holds(text, "{\"pretty\":{");
    assert_holds(text, "\"roles\":[\"overview\"]");
    assert_holds(text, "\"proj:code\":null,\"proj:shape\":[20,700]}");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stac");
    TCase *tc = tcase_create("stac");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, lineage_says_which_rule_scaled_and_every_formula);
    tcase_add_test(tc, lineage_has_invalid_values_and_unapplied_scaling);
    tcase_add_test(tc, band_has_a_formula_only_when_it_says_all);
    tcase_add_test(tc, unplaced_scene_has_null_geometry_and_no_bbox);
    tcase_add_test(tc, footprint_is_a_polygon);
    tcase_add_test(tc, footprint_across_the_antimeridian_is_two_polygons);
    tcase_add_test(tc, footprint_around_a_gap_is_a_polygon_with_a_hole);
    tcase_add_test(tc, cog_asset_tells_grid_bands_and_checksum);
    tcase_add_test(tc, integer_cog_has_its_nodata_and_no_float_statistics);
    tcase_add_test(tc, quicklook_asset_is_not_placed);
    suite_add_tcase(suite, tc);
    (void)scratch();
    int status = run_suite(suite);
    rmdir(scratch());
    return status;
}
