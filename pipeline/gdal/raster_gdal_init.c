/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Initialisation of GDAL and PROJ, once per process, and the size of GDAL's block cache. */
#include "pipeline/gdal/raster_gdal_inside.h"
#include "pipeline/gdal/raster_gdal_place.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/raster_gdal_vsi.h"
#include "pipeline/raster/tiff_geo.h"
#include "pipeline/raster/tiff_tags.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_FLOOR_BYTES ((int64_t)1 << 20)

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER; /* protects cache_bytes */
static int64_t cache_bytes;

static void init_once(void)
{
    /* Set here so that they override the environment. */
    static const char *const options[][2] = {
        {"GDAL_DISABLE_READDIR_ON_OPEN", "EMPTY_DIR"},
        {"GDAL_PAM_ENABLED", "NO"},
        {"GDAL_NUM_THREADS", "1"},
        {"GTIFF_IGNORE_READ_ERRORS", "NO"},
        {"GTIFF_DIRECT_IO", "NO"},
        {"GTIFF_VIRTUAL_MEM_IO", "NO"},
        {"GTIFF_POINT_GEO_IGNORE", "FALSE"},
        {"GDAL_ENABLE_TIFF_SPLIT", "YES"}, /* huge strips row by row instead of at once */
        {"CPL_DEBUG", "OFF"},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        CPLSetConfigOption(options[i][0], options[i][1]);
    OSRSetPROJEnableNetwork(0);
    pb_gdal_file_install();
    GDALRegister_GTiff();
    GDALRegister_JP2OpenJPEG();
    GDALRegister_MEM(); /* for rasters without pixels; opens no file */
    GDALSetCacheMax64(CACHE_FLOOR_BYTES);
}

void pb_raster_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_once);
}

/* The query uses an arbitrary code that is in every database. */
int pb_raster_ready(struct pb_err *err)
{
    static atomic_bool ready; /* processes forked later inherit it */
    struct pb_gdal_words words;
    if (atomic_load(&ready))
        return 0;
    pb_raster_init();
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    pb_gdal_listen(&words, NULL);
    bool fine = srs != NULL && OSRImportFromEPSG(srs, 32632) == OGRERR_NONE;
    pb_gdal_unlisten();
    OSRDestroySpatialReference(srs);
    atomic_store(&ready, fine);
    if (fine)
        return 0;
    char **paths = OSRGetPROJSearchPaths();
    char looked[200] = "";
    for (size_t i = 0, used = 0; paths != NULL && paths[i] != NULL && used < sizeof looked; i++)
        used += (size_t)snprintf(looked + used, sizeof looked - used, "%s%s", i > 0 ? ", " : "",
                                 paths[i]);
    CSLDestroy(paths);
    return pb_fail(err, PB_E_SYSTEM,
                   "PROJ cannot use its database proj.db, so no CRS can be read (%s; looked for in "
                   "%s): install the package proj-data, or set PROJ_DATA to the directory that "
                   "holds it",
                   pb_gdal_said(&words), looked);
}

static bool make_sample(const char *name, int epsg)
{
    double transform[6] = {500000, 10, 0, 5000000, 0, -10};
    GDALDatasetH to = GDALCreate(GDALGetDriverByName("GTiff"), name, 1, 1, 1, GDT_UInt16, NULL);
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    bool fine = to != NULL && srs != NULL && OSRImportFromEPSG(srs, epsg) == OGRERR_NONE &&
                GDALSetSpatialRef(to, srs) == CE_None &&
                GDALSetGeoTransform(to, transform) == CE_None;
    OSRDestroySpatialReference(srs);
    if (to != NULL)
        GDALClose(to);
    return fine;
}

enum { KNOWN_MAX = 32 };

struct pb_known_system {
    struct pb_tiff_keys keys;
    OGRSpatialReferenceH system;
    struct pb_ground_unit unit; /* unit of the sample; valid for all images if the law is EVEN */
    char code[64];
    bool writes_keys; /* GDAL writes the same keys for a product of this CRS */
};

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static struct pb_known_system known[KNOWN_MAX];
static size_t n_known;

const struct pb_known_system *pb_gdal_known(const struct pb_tiff_keys *keys)
{
    const struct pb_known_system *found = NULL;
    pthread_mutex_lock(&known_lock);
    for (size_t i = 0; i < n_known && found == NULL && keys->n > 0; i++)
        if (known[i].keys.n == keys->n && memcmp(known[i].keys.bytes, keys->bytes, keys->n) == 0)
            found = &known[i];
    pthread_mutex_unlock(&known_lock);
    return found;
}

OGRSpatialReferenceH pb_gdal_known_lock(const struct pb_known_system *system)
{
    pthread_mutex_lock(&known_lock);
    return system->system;
}

void pb_gdal_known_unlock(void)
{
    pthread_mutex_unlock(&known_lock);
}

bool pb_gdal_known_place(const struct pb_known_system *system, struct pb_raster_info *info)
{
    if (system->unit.law != PB_GROUND_EVEN)
        return false;
    info->unit = system->unit;
    info->has_crs = true;
    memcpy(info->crs_code, system->code, sizeof info->crs_code);
    return true;
}

const struct pb_tiff_keys *pb_gdal_known_keys(const struct pb_known_system *system)
{
    return system->writes_keys ? &system->keys : NULL;
}

/* Takes the GeoKeys from the tags; false if they do not fit or are absent. */
static bool take_keys(const struct pb_tiff_tags *tags, struct pb_tiff_keys *out)
{
    static const uint16_t wanted[] = {34735, 34736, 34737};
    bool fine = true;
    for (size_t i = 0, at = 0; i < 3 && fine; i++) {
        while (at < tags->n && tags->tag[at].tag < wanted[i])
            at++;
        const bool there = at < tags->n && tags->tag[at].tag == wanted[i];
        const struct pb_tiff_tag *tag = there ? &tags->tag[at] : NULL;
        const uint64_t bytes = tag ? tag->count * pb_tiff_type_bytes(tag->type) : 0;
        fine = pb_tiff_keys_add(out, tag ? tag->value : NULL, bytes) && (tag != NULL || i > 0);
    }
    return fine;
}

/* Adds the CRS that GDAL reads from the sample's own GeoKeys. A CRS with a vertical part is left
 * out, because its unit is that of the bands. */
static void know(const char *name, const struct pb_raster *raster,
                 const struct pb_tiff_tags *product)
{
    GDALDatasetH sample = raster->dataset;
    static const uint16_t tags[] = {34735, 34736, 34737};
    struct pb_tiff_tags found = {NULL, 0};
    struct pb_known_system one = {.keys = {.n = 0}, .unit = raster->info.unit};
    vsi_l_offset n_bytes = 0;
    const GByte *bytes = VSIGetMemFileBuffer(name, &n_bytes, FALSE);
    OGRSpatialReferenceH srs = GDALGetSpatialRef(sample);
    bool fine = srs != NULL && GDALGetRasterUnitType(GDALGetRasterBand(sample, 1))[0] == '\0' &&
                bytes != NULL && pb_tiff_tags_take(bytes, (size_t)n_bytes, tags, 3, &found) == 0;
    struct pb_tiff_keys written = {.n = 0};
    fine = fine && take_keys(&found, &one.keys);
    one.writes_keys = take_keys(product, &written) && written.n == one.keys.n &&
                      memcmp(written.bytes, one.keys.bytes, written.n) == 0;
    pb_tiff_tags_free(&found);
    memcpy(one.code, raster->info.crs_code, sizeof one.code);
    pthread_mutex_lock(&known_lock);
    if (fine && n_known < KNOWN_MAX && (one.system = OSRClone(srs)) != NULL) {
        (void)OSRGetAuthorityCode(one.system, NULL); /* makes its tree, for forks of this process */
        known[n_known++] = one;
    }
    pthread_mutex_unlock(&known_lock);
}

void pb_raster_warm(int epsg)
{
    static const char name[] = "/vsimem/pb_warm.tif";
    static const struct pb_geo_extra extra = {.n_bands = 1, .type = PB_F32};
    struct pb_raster raster = {.file = {.fd = -1}, .info = {.width = 1, .height = 1}};
    struct pb_footprint footprint;
    struct pb_tiff_tags tags = {NULL, 0};
    struct pb_gdal_words words;
    pb_raster_init();
    pb_gdal_listen(&words, NULL);
    raster.dataset = make_sample(name, epsg) ? GDALOpen(name, GA_ReadOnly) : NULL;
    if (raster.dataset != NULL) {
        pb_gdal_read_place(&raster);
        (void)pb_raster_footprint(&raster, NULL, &footprint);
        free(pb_raster_wkt2(&raster));
        free(pb_raster_projjson(&raster));
        (void)pb_raster_geo_tags(&raster, &extra, NULL, &tags);
        know(name, &raster, &tags);
        pb_tiff_tags_free(&tags);
        GDALClose(raster.dataset);
    }
    (void)VSIUnlink(name);
    pb_gdal_unlisten();
    (void)pb_raster_ready(NULL); /* each run reports the error */
}

void pb_raster_cache_reserve(int64_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&cache_lock);
    cache_bytes += bytes;
    assert(cache_bytes >= 0);
    GDALSetCacheMax64(cache_bytes + CACHE_FLOOR_BYTES);
    pthread_mutex_unlock(&cache_lock);
}

const char *pb_raster_library(void)
{
    return "GDAL " GDAL_RELEASE_NAME;
}
