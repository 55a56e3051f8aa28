/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Polygons of vector files, in the coordinate system of a scene. */
#include "config/base/err.h"
#include "config/limits_config.h"
#include "pipeline/gdal/vector_table.h"
#include "pipeline/raster/raster.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <gdal.h>
#include <gdal_frmts.h>
#include <math.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/pb_test_vector_XXXXXX";
static char path[3][300];
static struct pb_raster *scene;

static const struct pb_limits limits = {
    .max_pixels = 1 << 20,
    .max_block_bytes = 1 << 20,
    .max_side_px = 1 << 20,
    .max_bands = 4,
    .max_directories = 4,
};

/* Two fields in UTM 33: a square with a hole, and two parts; and a feature without geometry. */
static const char *const shapes[] = {
    "POLYGON ((500100 5000000,500200 5000000,500200 5000100,500100 5000100,500100 5000000),"
    "(500120 5000020,500120 5000040,500140 5000040,500140 5000020,500120 5000020))",
    "MULTIPOLYGON (((500300 5000000,500400 5000000,500350 5000050,500300 5000000)),"
    "((500300 5000200,500400 5000200,500350 5000250,500300 5000200)))",
    NULL,
};

static void write_file(const char *name, const char *text)
{
    FILE *to = fopen(name, "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_int_ge(fputs(text, to), 0);
    ck_assert_int_eq(fclose(to), 0);
}

static void make_vector(const char *driver, const char *name)
{
    GDALDatasetH to = GDALCreate(GDALGetDriverByName(driver), name, 0, 0, 0, GDT_Unknown, NULL);
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    ck_assert_int_eq(OSRImportFromEPSG(srs, 32633), OGRERR_NONE);
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    OGRLayerH layer = GDALDatasetCreateLayer(
        to, "fields", srs, strcmp(driver, "GPKG") == 0 ? wkbUnknown : wkbPolygon, NULL);
    ck_assert_ptr_nonnull(layer);
    OGRFieldDefnH id = OGR_Fld_Create("id", OFTInteger), crop = OGR_Fld_Create("crop", OFTString);
    ck_assert_int_eq(OGR_L_CreateField(layer, id, TRUE), OGRERR_NONE);
    ck_assert_int_eq(OGR_L_CreateField(layer, crop, TRUE), OGRERR_NONE);
    for (int i = 0; i < 3; i++) {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        char *wkt = (char *)(uintptr_t)shapes[i];
        OGRGeometryH shape = NULL;
        OGR_F_SetFieldInteger(feature, 0, 7 + i);
        if (i != 1)
            OGR_F_SetFieldString(feature, 1, i == 0 ? "wheat" : "barley");
        if (wkt != NULL) {
            ck_assert_int_eq(OGR_G_CreateFromWkt(&wkt, NULL, &shape), OGRERR_NONE);
            ck_assert_int_eq(OGR_F_SetGeometryDirectly(feature, shape), OGRERR_NONE);
        }
        ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
        OGR_F_Destroy(feature);
    }
    OGR_Fld_Destroy(id);
    OGR_Fld_Destroy(crop);
    OSRDestroySpatialReference(srs);
    GDALClose(to);
}

static void make_scene(const char *name, int epsg)
{
    double transform[6] = {500000, 10, 0, 5001000, 0, -10};
    unsigned char pixels[100 * 100] = {1};
    GDALDatasetH to = GDALCreate(GDALGetDriverByName("GTiff"), name, 100, 100, 1, GDT_Byte, NULL);
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    ck_assert_int_eq(OSRImportFromEPSG(srs, epsg), OGRERR_NONE);
    ck_assert_int_eq(GDALSetSpatialRef(to, srs), CE_None);
    ck_assert_int_eq(GDALSetGeoTransform(to, transform), CE_None);
    ck_assert_int_eq(GDALRasterIO(GDALGetRasterBand(to, 1), GF_Write, 0, 0, 100, 100, pixels, 100,
                                  100, GDT_Byte, 0, 0),
                     CE_None);
    OSRDestroySpatialReference(srs);
    GDALClose(to);
}

static const char *in_folder(const char *name)
{
    static char out[8][300];
    static int last;
    last = (last + 1) % 8;
    (void)snprintf(out[last], sizeof out[last], "%s/%s", folder, name);
    return out[last];
}

static void setup(void)
{
    struct pb_err err = {0};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    pb_raster_init();
    GDALAllRegister();
    make_vector("GPKG", in_folder("a.gpkg"));
    make_vector("ESRI Shapefile", in_folder("a.shp"));
    make_scene(in_folder("scene.tif"), 32633);
    (void)snprintf(path[0], sizeof path[0], "%s", in_folder("a.gpkg"));
    (void)snprintf(path[1], sizeof path[1], "%s", in_folder("a.shp"));
    ck_assert_msg(pb_raster_open(in_folder("scene.tif"), &limits, &err, &scene) == 0, "%s",
                  err.msg);
}

static void teardown(void)
{
    char command[400];
    pb_raster_close(scene);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct pb_polygons *read_good(const struct pb_vector_request *request)
{
    struct pb_err err = {0};
    struct pb_polygons *polygons = NULL;
    ck_assert_msg(pb_vector_read(request, scene, &err, &polygons) == 0, "%s: %s", request->path,
                  err.msg);
    return polygons;
}

START_TEST(rings_and_values_are_those_of_the_file)
{
    static const char *const fields[] = {"id", "crop", "fid"};
    const struct pb_vector_request request = {
        .path = path[_i], .fields = fields, .n_fields = 3, .tolerance = 1};
    struct pb_polygons *polygons = read_good(&request);
    ck_assert_uint_eq(polygons->n, 3);
    ck_assert_uint_eq(polygons->n_rings, 4);
    ck_assert_uint_eq(polygons->n_vertices, 4 + 4 + 3 + 3);
    ck_assert_uint_eq(polygons->polygon[0].n_rings, 2);
    ck_assert_uint_eq(polygons->polygon[1].first_ring, 2);
    ck_assert_uint_eq(polygons->polygon[2].n_rings, 0);
    ck_assert_str_eq(polygons->polygon[0].values[0].text, "7");
    ck_assert(polygons->polygon[1].values[0].num == 8);
    ck_assert_str_eq(polygons->polygon[0].values[1].text, "wheat");
    ck_assert(isnan(polygons->polygon[0].values[1].num));
    ck_assert_ptr_null(polygons->polygon[1].values[1].text);
    ck_assert(polygons->polygon[0].values[2].num == (double)polygons->polygon[0].fid);
    double bounds[4];
    ck_assert(pb_polygons_bounds(polygons, bounds));
    ck_assert(bounds[0] == 500100 && bounds[1] == 5000000 && bounds[2] == 500400 &&
              bounds[3] == 5000250);
    pb_polygons_free(polygons);
}
END_TEST

START_TEST(features_are_chosen_by_a_field)
{
    static const char *const seven[] = {"07", "barley"};
    struct pb_vector_request request = {
        .path = path[_i], .where = "id", .values = seven, .n_values = 1};
    struct pb_polygons *polygons = read_good(&request);
    ck_assert_uint_eq(polygons->n, 1);
    pb_polygons_free(polygons);
    request.where = "crop";
    request.n_values = 2;
    polygons = read_good(&request);
    ck_assert_uint_eq(polygons->n, 1);
    ck_assert_uint_eq(polygons->polygon[0].n_rings, 0);
    pb_polygons_free(polygons);
}
END_TEST

/* Long edges along a parallel are bent in UTM: vertices are added until they are on the curve. */
START_TEST(geographic_polygon_comes_in_the_scenes_system)
{
    write_file(in_folder("b.geojson"),
               "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\",\"properties\":"
               "{\"name\":\"\\u00e4\"},\"geometry\":{\"type\":\"Polygon\",\"coordinates\":"
               "[[[13,45],[17,45],[17,46],[13,46],[13,45]]]}}]}");
    struct pb_vector_request request = {.path = in_folder("b.geojson"), .tolerance = 0};
    struct pb_polygons *polygons = read_good(&request);
    ck_assert_uint_eq(polygons->n_vertices, 4);
    pb_polygons_free(polygons);
    request.tolerance = 1;
    polygons = read_good(&request);
    ck_assert_uint_gt(polygons->n_vertices, 50);
    ck_assert_uint_lt(polygons->n_vertices, 2000);
    double south = INFINITY;
    for (size_t i = 0; i < polygons->n_vertices; i++)
        south = fmin(south, polygons->xy[i][1]);
    /* The parallel's nearest place is at the central meridian: 45 N is 4 982 950.4 m there. */
    ck_assert_double_eq_tol(south, 4982950.4, 1.0);
    pb_polygons_free(polygons);
}
END_TEST

static const struct {
    const char *name, *text, *layer, *field, *where;
    enum pb_code code;
    const char *said;
} mistakes[] = {
    {"none.geojson", NULL, NULL, NULL, NULL, PB_E_VECTOR_MISSING, "no such file"},
    {"c.geojson", "{\"type\":\"FeatureCol", NULL, NULL, NULL, PB_E_VECTOR_INVALID, "GeoJSON"},
    {"c.txt", "fields", NULL, NULL, NULL, PB_E_VECTOR_INVALID, "GeoPackage"},
    {"d.geojson",
     "{\"type\":\"Feature\",\"id\":5,\"properties\":{},\"geometry\":{\"type\":\"Point\","
     "\"coordinates\":[13,45]}}",
     NULL, NULL, NULL, PB_E_VECTOR_INVALID, "feature 5 is a POINT"},
    {"e.geojson",
     "{\"type\":\"Feature\",\"properties\":{},\"geometry\":{\"type\":\"Polygon\",\"coordinates\":"
     "[[[13,45],[1e400,45],[17,46],[13,45]]]}}",
     NULL, NULL, NULL, PB_E_VECTOR_INVALID, "feature 0 has coordinates"},
    {"a.gpkg", NULL, "plots", NULL, NULL, PB_E_VECTOR_CHOICE, "its layers: fields"},
    {"a.gpkg", NULL, NULL, "name", NULL, PB_E_VECTOR_CHOICE, "its fields: id, crop"},
    {"a.gpkg", NULL, NULL, NULL, "crop", PB_E_VECTOR_CHOICE, "values given for 'crop'"},
};

START_TEST(mistakes_name_the_file_and_the_feature)
{
    const char *fields[] = {mistakes[_i].field}, *values[] = {"rye"};
    const struct pb_vector_request request = {.path = in_folder(mistakes[_i].name),
                                              .layer = mistakes[_i].layer,
                                              .fields = fields,
                                              .n_fields = mistakes[_i].field != NULL,
                                              .where = mistakes[_i].where,
                                              .values = values,
                                              .n_values = 1};
    struct pb_err err = {0};
    struct pb_polygons *polygons = NULL;
    if (mistakes[_i].text != NULL)
        write_file(request.path, mistakes[_i].text);
    ck_assert_int_lt(pb_vector_read(&request, scene, &err, &polygons), 0);
    ck_assert_msg(err.code == mistakes[_i].code, "%s: %s", pb_code_id(err.code), err.msg);
    ck_assert_msg(strstr(err.msg, mistakes[_i].said) != NULL, "%s", err.msg);
    ck_assert_str_eq(err.file, request.path);
    ck_assert_ptr_null(polygons);
}
END_TEST

START_TEST(shapefile_without_its_system_is_refused)
{
    const struct pb_vector_request request = {.path = path[1]};
    struct pb_err err = {0};
    struct pb_polygons *polygons = NULL;
    ck_assert_int_eq(unlink(in_folder("a.prj")), 0);
    ck_assert_int_lt(pb_vector_read(&request, scene, &err, &polygons), 0);
    ck_assert_int_eq(err.code, PB_E_VECTOR_INVALID);
    ck_assert_msg(strstr(err.msg, ".prj") != NULL, "%s", err.msg);
}
END_TEST

START_TEST(outlines_of_a_file_that_has_changed_are_refused)
{
    static const char text[] =
        "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\",\"properties\":{},"
        "\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[15,45],[15.1,45],[15.1,45.1],[15,45]"
        "]]}}]}";
    struct pb_vector_request request = {.path = in_folder("edited.geojson")};
    const uint32_t feature = 0;
    struct pb_err err = {0};
    char *file = NULL;
    size_t bytes = 0;
    struct pb_table *table = pb_table_create();
    pb_table_column(table, "n", PB_CELL_INT);
    pb_table_row(table);
    pb_table_int(table, 1);
    const struct pb_vector_rows rows = {
        .table = table, .feature = &feature, .name = "zones", .format = PB_VECTOR_GEOJSON};
    write_file(request.path, text);
    struct pb_polygons *polygons = read_good(&request);
    request.stamp = polygons->stamp;
    ck_assert_int_eq(pb_vector_table(&request, &rows, &err, &file, &bytes), 0);
    write_file(request.path, text);
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, request.path, times, 0), 0);
    free(file);
    ck_assert_int_lt(pb_vector_table(&request, &rows, &err, &file, &bytes), 0);
    ck_assert_int_eq(err.code, PB_E_VECTOR_INVALID);
    ck_assert_msg(strstr(err.msg, "changed since") != NULL, "%s", err.msg);
    pb_polygons_free(polygons);
    pb_table_destroy(table);
}
END_TEST

START_TEST(bounds_come_in_the_scenes_system)
{
    struct pb_err err = {0};
    double out[4];
    const double geographic[4] = {13, 45, 17, 46}, far[4] = {104.9, -0.1, 105.1, 0.1};
    ck_assert_int_eq(pb_vector_bounds(geographic, "EPSG:4326", scene, &err, out), 0);
    /* The southern edge bends down to the central meridian, the northern one up to the corners. */
    ck_assert_double_eq_tol(out[1], 4982950.4, 1.0);
    ck_assert_double_gt(out[3], 5094270);
    ck_assert_double_lt(out[0], 500000 - 150000);
    ck_assert_int_eq(pb_vector_bounds(geographic, "EPSG:99999", scene, &err, out), -EINVAL);
    ck_assert_int_eq(err.code, PB_E_VECTOR_INVALID);
    err = (struct pb_err){0};
    ck_assert_int_eq(pb_vector_bounds(geographic, "/etc/passwd", scene, &err, out), -EINVAL);
    ck_assert_int_eq(pb_vector_bounds(far, "EPSG:4326", scene, &err, out), -ERANGE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vector");
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, rings_and_values_are_those_of_the_file, 0, 2);
    tcase_add_loop_test(tc, features_are_chosen_by_a_field, 0, 2);
    tcase_add_test(tc, geographic_polygon_comes_in_the_scenes_system);
    tcase_add_loop_test(tc, mistakes_name_the_file_and_the_feature, 0,
                        sizeof mistakes / sizeof mistakes[0]);
    tcase_add_test(tc, shapefile_without_its_system_is_refused);
    tcase_add_test(tc, bounds_come_in_the_scenes_system);
    tcase_add_test(tc, outlines_of_a_file_that_has_changed_are_refused);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
