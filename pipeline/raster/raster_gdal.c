/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The one file that knows GDAL: opening, reading, and the metadata only GDAL can spell. It is long
 * because GDAL's handles must not leak into other files; all that needs none of them lives apart
 * (tiff_header.c, tiff_tags.c, outline.c, raster_memory.c, text_clean.c).
 *
 * GDAL talks by messages, not only by return values: some codecs hand out garbage with CE_None and
 * an error message. So every call that matters runs with a collector installed for this thread, and
 * one error message fails a read whatever the call returned.
 *
 * Plain layouts are decoded by block_reader.c; what follows is about the others. A decoder may
 * return without an error and leave memory as it was: theirs is cleared (zero_malloc.c), and while
 * pixels are read a warning is an error, too.
 *
 * A read of a pixel-interleaved file goes block by block and, within a block, band by band: GDAL
 * keeps the last block it decoded, so each block is decoded once whatever the cache holds, and an
 * error names the block. Other layouts go band by band. */
#include "pipeline/raster/ground_unit.h"
#include "pipeline/raster/outline.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raster_blocks.h"
#include "pipeline/raster/raster_file.h"
#include "pipeline/io/text_clean.h"
#include "pipeline/raster/tiff_header.h"
#include "pipeline/raster/tiff_tags.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <gdal_alg.h>
#include <gdal_frmts.h>
#include <ogr_srs_api.h>

#define CACHE_FLOOR_BYTES ((int64_t)1 << 20)

struct pb_raster {
    GDALDatasetH dataset;
    struct pb_raster_file file; /* GDAL reads through it and opens nothing itself */
    uint64_t vsi_id;            /* names the file to GDAL */
    char vsi_name[48];
    struct pb_raster *next; /* in the list of open rasters */
    int alpha_band;         /* 1-based; 0 = none, or a mask goes before it */
    bool dataset_mask;      /* GDAL's per-dataset mask that is no alpha band */
    struct pb_raster_blocks blocks;
    struct pb_raster_info info;
};

static const struct {
    GDALDataType gdal;
    int bytes;
} types[PB_TYPE_COUNT] = {
    [PB_U8] = {GDT_Byte, 1},     [PB_I16] = {GDT_Int16, 2},  [PB_U16] = {GDT_UInt16, 2},
    [PB_I32] = {GDT_Int32, 4},   [PB_U32] = {GDT_UInt32, 4}, [PB_F32] = {GDT_Float32, 4},
    [PB_F64] = {GDT_Float64, 8},
};

/* --- what GDAL says ---------------------------------------------------------------------------*/

struct words {
    const char *path; /* GDAL begins many messages with it; ours name the file anyway */
    CPLErr least;     /* what counts: CE_Failure, or CE_Warning */
    unsigned n;       /* messages that count */
    CPLErrorNum number;
    char first[240];
};

/* Of the warnings while pixels are read: a last strip that was encoded at full height. */
static bool is_harmless(const char *text)
{
    return strstr(text, "JPEG strip size exceeds expected dimensions") != NULL;
}

static void CPL_STDCALL hear(CPLErr severity, CPLErrorNum number, const char *text)
{
    struct words *words = CPLGetErrorHandlerUserData();
    if (severity < words->least || (severity == CE_Warning && is_harmless(text)) || words->n++ > 0)
        return;
    words->number = number;
    size_t n = strlen(words->path);
    while (n > 0 && strncmp(text, words->path, n) == 0 && text[n] == ':')
        text += n + 1 + (text[n + 1] == ' ');
    (void)pb_text_clean(text, words->first, sizeof words->first);
}

/* Collects this thread's messages until unlisten. raster: NULL = of no file. */
static void listen(struct words *words, const struct pb_raster *raster)
{
    *words = (struct words){.path = raster != NULL ? raster->vsi_name : "", .least = CE_Failure};
    CPLErrorReset();
    CPLPushErrorHandlerEx(hear, words);
}

static void unlisten(void)
{
    CPLPopErrorHandler();
    CPLErrorReset();
}

static bool says(const struct words *words, const char *part)
{
    return strstr(words->first, part) != NULL;
}

static const char *said(const struct words *words)
{
    return words->first[0] ? words->first : "no reason given";
}

/* --- the file, as GDAL sees it ------------------------------------------------------------------
 *
 * GDAL opens no path: it is given a name below VSI_PREFIX, and what it reads there comes through
 * the raster's own descriptor. So the bytes are of the file whose header was checked, a failed read
 * keeps its errno, and no file name has a meaning of its own to GDAL. */

#define VSI_PREFIX "/vsipushbroom/"

struct vsi_file { /* one handle of GDAL's */
    struct pb_raster_file *file;
    uint64_t at;
    bool eof;
};

static pthread_mutex_t vsi_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and last_id */
static struct pb_raster *vsi_list;
static uint64_t vsi_last_id;

static void vsi_add(struct pb_raster *raster)
{
    pthread_mutex_lock(&vsi_lock);
    raster->vsi_id = ++vsi_last_id;
    raster->next = vsi_list;
    vsi_list = raster;
    pthread_mutex_unlock(&vsi_lock);
    (void)snprintf(raster->vsi_name, sizeof raster->vsi_name, VSI_PREFIX "%llu.tif",
                   (unsigned long long)raster->vsi_id);
}

static void vsi_remove(struct pb_raster *raster)
{
    pthread_mutex_lock(&vsi_lock);
    for (struct pb_raster **at = &vsi_list; *at != NULL; at = &(*at)->next) {
        if (*at == raster) {
            *at = raster->next;
            break;
        }
    }
    pthread_mutex_unlock(&vsi_lock);
}

/* name: without the prefix, as GDAL hands it to a handler. */
static struct pb_raster *vsi_find(const char *name)
{
    pthread_mutex_lock(&vsi_lock);
    struct pb_raster *raster = vsi_list;
    while (raster != NULL && strcmp(raster->vsi_name + strlen(VSI_PREFIX), name) != 0)
        raster = raster->next;
    pthread_mutex_unlock(&vsi_lock);
    return raster;
}

static int vsi_stat(void *user, const char *name, VSIStatBufL *out, int flags)
{
    const struct pb_raster *raster = vsi_find(name);
    (void)user;
    (void)flags;
    if (raster == NULL) {
        errno = ENOENT;
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->st_mode = S_IFREG;
    out->st_size = raster->file.stat.st_size;
    out->st_mtime = raster->file.stat.st_mtime;
    return 0;
}

static void *vsi_open(void *user, const char *name, const char *access)
{
    struct pb_raster *raster = vsi_find(name);
    (void)user;
    if (raster == NULL || access[0] != 'r' || strchr(access, '+') != NULL) {
        errno = raster == NULL ? ENOENT : EACCES;
        return NULL;
    }
    struct vsi_file *handle = calloc(1, sizeof *handle);
    if (handle != NULL)
        handle->file = &raster->file;
    else if (raster->file.error == 0)
        raster->file.error = ENOMEM;
    return handle;
}

static vsi_l_offset vsi_tell(void *user)
{
    return ((const struct vsi_file *)user)->at;
}

static int vsi_seek(void *user, vsi_l_offset offset, int whence)
{
    struct vsi_file *handle = user;
    uint64_t base = whence == SEEK_CUR   ? handle->at
                    : whence == SEEK_END ? (uint64_t)handle->file->stat.st_size
                                         : 0;
    handle->at = base + offset;
    handle->eof = false;
    return 0;
}

static size_t vsi_read(void *user, void *out, size_t size, size_t count)
{
    struct vsi_file *handle = user;
    if (size == 0 || count == 0 || count > SIZE_MAX / size)
        return 0;
    ssize_t n = pb_raster_file_read(handle->file, handle->at, out, size * count);
    if (n < 0)
        return 0;
    handle->at += (uint64_t)n;
    handle->eof = (size_t)n < size * count;
    return (size_t)n / size;
}

static int vsi_eof(void *user)
{
    return ((const struct vsi_file *)user)->eof;
}

static int vsi_close(void *user)
{
    free(user);
    return 0;
}

static void vsi_install(void)
{
    VSIFilesystemPluginCallbacksStruct *calls = VSIAllocFilesystemPluginCallbacksStruct();
    calls->stat = vsi_stat;
    calls->open = vsi_open;
    calls->tell = vsi_tell;
    calls->seek = vsi_seek;
    calls->read = vsi_read;
    calls->eof = vsi_eof;
    calls->close = vsi_close;
    (void)VSIInstallPluginHandler(VSI_PREFIX, calls);
    VSIFreeFilesystemPluginCallbacksStruct(calls);
}

/* --- once per process -------------------------------------------------------------------------*/

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER; /* protects cache_bytes */
static int64_t cache_bytes;

static void init_once(void)
{
    /* Set here so that they win over the environment. */
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
    vsi_install();
    GDALRegister_GTiff();
    GDALSetCacheMax64(CACHE_FLOOR_BYTES);
}

void pb_raster_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_once);
}

/* Any code will do; this one is in every database. */
int pb_raster_ready(struct pb_err *err)
{
    static atomic_bool ready; /* a process that is forked later finds it so as well */
    struct words words;
    if (atomic_load(&ready))
        return 0;
    pb_raster_init();
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    listen(&words, NULL);
    bool fine = srs != NULL && OSRImportFromEPSG(srs, 32632) == OGRERR_NONE;
    unlisten();
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
                   said(&words), looked);
}

static void read_place(struct pb_raster *raster);

static bool make_sample(const char *name)
{
    double transform[6] = {500000, 10, 0, 5000000, 0, -10};
    GDALDatasetH to = GDALCreate(GDALGetDriverByName("GTiff"), name, 1, 1, 1, GDT_UInt16, NULL);
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    bool fine = to != NULL && srs != NULL && OSRImportFromEPSG(srs, 32632) == OGRERR_NONE &&
                GDALSetSpatialRef(to, srs) == CE_None &&
                GDALSetGeoTransform(to, transform) == CE_None;
    OSRDestroySpatialReference(srs);
    if (to != NULL)
        GDALClose(to);
    return fine;
}

void pb_raster_warm(void)
{
    static const char name[] = "/vsimem/pb_warm.tif";
    static const struct pb_geo_extra extra = {.n_bands = 1, .type = PB_F32};
    struct pb_raster raster = {.file = {.fd = -1}, .info = {.width = 1, .height = 1}};
    struct pb_footprint footprint;
    struct pb_tiff_tags tags = {NULL, 0};
    struct words words;
    pb_raster_init();
    listen(&words, NULL);
    raster.dataset = make_sample(name) ? GDALOpen(name, GA_ReadOnly) : NULL;
    if (raster.dataset != NULL) {
        read_place(&raster);
        (void)pb_raster_footprint(&raster, NULL, &footprint);
        free(pb_raster_wkt2(&raster));
        free(pb_raster_projjson(&raster));
        (void)pb_raster_geo_tags(&raster, &extra, NULL, &tags);
        pb_tiff_tags_free(&tags);
        GDALClose(raster.dataset);
    }
    (void)VSIUnlink(name);
    unlisten();
}

void pb_raster_cache_reserve(int64_t bytes)
{
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

/* --- open -------------------------------------------------------------------------------------*/

static int64_t mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static enum pb_code open_code(const struct words *words)
{
    if (words->number == CPLE_OutOfMemory)
        return PB_E_MEMORY;
    if (says(words, "Too large block size") || says(words, "Too many blocks"))
        return PB_E_INPUT_LIMIT;
    if (words->number == CPLE_NotSupported || says(words, "missing codec") ||
        says(words, "nsupported") || says(words, "not supported") ||
        says(words, "Cannot open TIFF file"))
        return PB_E_INPUT_UNSUPPORTED;
    return PB_E_INPUT_DAMAGED;
}

static int open_dataset(struct pb_raster *raster, const char *path, struct pb_err *err)
{
    static const char *const drivers[] = {"GTiff", NULL};
    static const char *const options[] = {"GEOREF_SOURCES=INTERNAL", NULL};
    struct words words;
    listen(&words, raster);
    raster->dataset =
        GDALOpenEx(raster->vsi_name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
                   drivers, options, NULL);
    unlisten();
    int rc = pb_raster_file_check(&raster->file, err); /* the better explanation */
    if (rc == 0 && raster->dataset == NULL)
        rc =
            pb_fail_at(err, open_code(&words), path, 0, 0, "GDAL cannot open it: %s", said(&words));
    return rc;
}

static bool is_lossy(GDALDatasetH dataset, const char *compression)
{
    const char *kind = GDALGetMetadataItem(dataset, "COMPRESSION_REVERSIBILITY", "IMAGE_STRUCTURE");
    const char *error = GDALGetMetadataItem(dataset, "MAX_Z_ERROR", "IMAGE_STRUCTURE");
    if (strstr(compression, "JPEG") != NULL)
        return true;
    if (strcmp(compression, "WEBP") == 0 || strcmp(compression, "JXL") == 0)
        return kind == NULL || strncmp(kind, "LOSSLESS", 8) != 0;
    return strstr(compression, "LERC") != NULL && error != NULL && CPLAtof(error) > 0;
}

/* "2020:02:19 11:02:03" -> "2020-02-19T11:02:03Z"; anything else gives "". */
static void read_datetime(GDALDatasetH dataset, char out[32])
{
    const char *text = GDALGetMetadataItem(dataset, "TIFFTAG_DATETIME", NULL);
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

/* GDAL takes nonsense in the nodata tag for 0. */
static bool is_number(const char *text)
{
    char *end = NULL;
    (void)CPLStrtod(text, &end);
    while (end != NULL && *end == ' ')
        end++;
    return text[0] != '\0' && end != text && *end == '\0';
}

static void read_band(struct pb_raster *raster, const struct pb_tiff_header *header, int i)
{
    GDALRasterBandH band = GDALGetRasterBand(raster->dataset, i + 1);
    struct pb_raster_band *out = &raster->info.band[i];
    int has = 0;
    out->nodata = GDALGetRasterNoDataValue(band, &has);
    out->has_nodata = has && is_number(header->nodata);
    out->nodata_unreadable = header->geo.nodata && !out->has_nodata;
    out->is_alpha = GDALGetRasterColorInterpretation(band) == GCI_AlphaBand;
    (void)pb_text_clean(GDALGetDescription(band), out->description, sizeof out->description);
    out->scale = GDALGetRasterScale(band, &has);
    out->offset = GDALGetRasterOffset(band, &has);
    if (out->is_alpha && raster->alpha_band == 0)
        raster->alpha_band = i + 1;
}

static OGRSpatialReferenceH srs_of(const struct pb_raster *raster)
{
    OGRSpatialReferenceH srs = GDALGetSpatialRef(raster->dataset);
    return srs != NULL ? srs : GDALGetGCPSpatialRef(raster->dataset);
}

/* Runs one of GDAL's transformers (pixel -> ground) over n points, at most PB_OUTLINE_POINTS. */
static bool run_transformer(GDALTransformerFunc transform, void *arg, double (*xy)[2], int n)
{
    double x[PB_OUTLINE_POINTS], y[PB_OUTLINE_POINTS], z[PB_OUTLINE_POINTS] = {0};
    int ok[PB_OUTLINE_POINTS];
    for (int i = 0; i < n; i++) {
        x[i] = xy[i][0];
        y[i] = xy[i][1];
    }
    bool fine = transform(arg, FALSE, n, x, y, z, ok);
    for (int i = 0; fine && i < n; i++) {
        fine = ok[i];
        xy[i][0] = x[i];
        xy[i][1] = y[i];
    }
    return fine;
}

/* At the RPC's own mean height; the terrain is not known here. */
static bool rpc_to_ground(const struct pb_raster *raster, double (*xy)[2], int n)
{
    GDALRPCInfoV2 rpc;
    char height[64];
    if (!raster->info.has_rpc ||
        !GDALExtractRPCInfoV2(GDALGetMetadata(raster->dataset, "RPC"), &rpc))
        return false;
    const double scales[] = {rpc.dfLINE_SCALE, rpc.dfSAMP_SCALE, rpc.dfLAT_SCALE, rpc.dfLONG_SCALE,
                             rpc.dfHEIGHT_SCALE};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        if (!isfinite(scales[i]) || scales[i] == 0)
            return false;
    }
    (void)CPLsnprintf(height, sizeof height, "RPC_HEIGHT=%.17g", rpc.dfHEIGHT_OFF);
    const char *const options[] = {height, NULL};
    void *arg = GDALCreateRPCTransformerV2(&rpc, FALSE, 0, (char **)(uintptr_t)options);
    bool fine = arg != NULL && run_transformer(GDALRPCTransform, arg, xy, n);
    if (arg != NULL)
        GDALDestroyRPCTransformer(arg);
    return fine;
}

/* Which way rows and columns go, where no transform says it: by the plane that fits the GCPs best,
 * or by the RPCs around the middle of the image. */
static void read_orientation(struct pb_raster *raster)
{
    struct pb_raster_info *info = &raster->info;
    double fit[6], x = info->width / 2.0, y = info->height / 2.0;
    double at[3][2] = {{x, y}, {x + 1, y}, {x, y + 1}};
    if (info->has_transform) {
        memcpy(fit, info->transform, sizeof fit);
        info->has_orientation = true;
    } else if (info->n_gcps >= 3) {
        info->has_orientation =
            GDALGCPsToGeoTransform(info->n_gcps, GDALGetGCPs(raster->dataset), fit, TRUE);
    } else if (rpc_to_ground(raster, at, 3)) {
        fit[1] = at[1][0] - at[0][0];
        fit[2] = at[2][0] - at[0][0];
        fit[4] = at[1][1] - at[0][1];
        fit[5] = at[2][1] - at[0][1];
        info->has_orientation = true;
    }
    const double d[4] = {fit[1], fit[2], fit[4], fit[5]};
    for (int i = 0; info->has_orientation && i < 4; i++)
        info->has_orientation = isfinite(d[i]);
    if (info->has_orientation)
        memcpy(info->orientation, d, sizeof d);
}

static void read_unit(OGRSpatialReferenceH srs, struct pb_raster_info *info)
{
    const double *const t = info->transform;
    OGRErr rc = OGRERR_NONE;
    if (OSRIsGeographic(srs)) {
        const double unit = OSRGetAngularUnits(srs, NULL), semi_major = OSRGetSemiMajor(srs, &rc);
        const double y = t[3] + info->width / 2.0 * t[4] + info->height / 2.0 * t[5];
        if (rc == OGRERR_NONE && fabs(y * unit) < 1.5707)
            pb_ground_unit(semi_major, OSRGetInvFlattening(srs, &rc), y * unit, unit,
                           info->unit_metres);
    } else {
        info->unit_metres[0] = info->unit_metres[1] = OSRGetLinearUnits(srs, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (!isfinite(info->unit_metres[i]) || info->unit_metres[i] < 0)
            info->unit_metres[i] = 0;
}

static void read_place(struct pb_raster *raster)
{
    struct pb_raster_info *info = &raster->info;
    double transform[6], inverse[6];
    bool fine = GDALGetGeoTransform(raster->dataset, transform) == CE_None;
    for (int i = 0; fine && i < 6; i++)
        fine = isfinite(transform[i]);
    fine = fine && GDALInvGeoTransform(transform, inverse);
    for (int i = 0; fine && i < 6; i++)
        fine = isfinite(inverse[i]);
    info->has_transform = fine;
    if (fine)
        memcpy(info->transform, transform, sizeof transform);
    info->n_gcps = GDALGetGCPCount(raster->dataset);
    info->has_rpc = GDALGetMetadata(raster->dataset, "RPC") != NULL;
    read_orientation(raster);
    OGRSpatialReferenceH srs = srs_of(raster);
    info->has_crs = srs != NULL;
    if (srs != NULL && info->has_transform)
        read_unit(srs, info);
    const char *name = srs ? OSRGetAuthorityName(srs, NULL) : NULL;
    const char *code = srs ? OSRGetAuthorityCode(srs, NULL) : NULL;
    char both[sizeof info->crs_code];
    if (name != NULL && code != NULL &&
        snprintf(both, sizeof both, "%s:%s", name, code) < (int)sizeof both)
        (void)pb_text_clean(both, info->crs_code, sizeof info->crs_code);
}

/* What the header promises must be there; a product without it would look like a good one. */
static int check_place(const struct pb_raster *raster, const struct pb_tiff_geo *promised,
                       const struct words *words, struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    const char *what = NULL;
    if (promised->place && !info->has_transform && info->n_gcps == 0)
        what = "its tie points or its matrix give no finite, invertible transform";
    else if (promised->crs && !info->has_crs)
        what = "its GeoKeys give no CRS";
    else if (promised->rpc && !info->has_rpc)
        what = "its RPC tag gives no RPCs";
    if (says(words, "proj.db"))
        return pb_fail_at(err, PB_E_SYSTEM, raster->file.path, 0, 0, "%s", words->first);
    if (what == NULL)
        return 0;
    return pb_fail_at(err, PB_E_INPUT_GEOREFERENCE, raster->file.path, 0, 0, "%s: %s", what,
                      said(words));
}

static int read_type(struct pb_raster *raster, struct pb_err *err)
{
    GDALRasterBandH band = GDALGetRasterBand(raster->dataset, 1);
    GDALDataType type = GDALGetRasterDataType(band);
    const char *pixel = GDALGetMetadataItem(band, "PIXELTYPE", "IMAGE_STRUCTURE");
    int i = 0;
    while (i < PB_TYPE_COUNT && types[i].gdal != type)
        i++;
    if (pixel != NULL && strcmp(pixel, "SIGNEDBYTE") == 0)
        return pb_fail_at(err, PB_E_INPUT_UNSUPPORTED, raster->file.path, 0, 0,
                          "its pixels are signed 8-bit integers; pushbroom reads Byte, Int16, "
                          "UInt16, Int32, UInt32, Float32 and Float64");
    if (GDALDataTypeIsComplex(type))
        return pb_fail_at(err, PB_E_INPUT_COMPLEX, raster->file.path, 0, 0,
                          "its pixels are complex numbers (%s); pushbroom reads real ones",
                          GDALGetDataTypeName(type));
    if (i == PB_TYPE_COUNT)
        return pb_fail_at(err, PB_E_INPUT_UNSUPPORTED, raster->file.path, 0, 0,
                          "its pixels are %s; pushbroom reads Byte, Int16, UInt16, Int32, UInt32, "
                          "Float32 and Float64",
                          GDALGetDataTypeName(type));
    raster->info.type = (enum pb_type)i;
    return 0;
}

static int read_layout(struct pb_raster *raster, const struct pb_tiff_header *header,
                       struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    GDALRasterBandH band = GDALGetRasterBand(raster->dataset, 1);
    const char *interleave = GDALGetMetadataItem(raster->dataset, "INTERLEAVE", "IMAGE_STRUCTURE");
    const char *compression =
        GDALGetMetadataItem(raster->dataset, "COMPRESSION", "IMAGE_STRUCTURE");
    GDALGetBlockSize(band, &info->block_w, &info->block_h);
    info->pixel_interleaved =
        info->n_bands > 1 && interleave != NULL && strcmp(interleave, "PIXEL") == 0;
    (void)pb_text_clean(compression ? compression : "NONE", info->compression,
                        sizeof info->compression);
    info->has_palette = GDALGetRasterColorTable(band) != NULL;
    info->lossy = is_lossy(raster->dataset, info->compression);
    info->top_down = header->one_strip && info->block_h < info->height;
    info->stored_block_bytes = header->stored_block_max;
    for (int i = 0; i < info->n_bands; i++)
        read_band(raster, header, i);
    int flags = GDALGetMaskFlags(band);
    raster->dataset_mask = (flags & GMF_PER_DATASET) && !(flags & GMF_ALPHA);
    if (raster->dataset_mask)
        raster->alpha_band = 0;
    info->has_mask = raster->dataset_mask || raster->alpha_band > 0;
    if (info->width != header->width || info->height != header->height)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, raster->file.path, 0, 0,
                          "its header is contradictory: %d x %d or %d x %d pixels",
                          (int)header->width, (int)header->height, (int)info->width,
                          (int)info->height);
    return 0;
}

/* The limits once more, on what GDAL made of the header. */
static int check_limits(const struct pb_raster *raster, const struct pb_limits *limits,
                        struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    uint64_t planes = info->pixel_interleaved ? (uint64_t)info->n_bands : 1;
    uint64_t pixels = (uint64_t)info->block_w * (uint64_t)info->block_h;
    if (info->block_w < 1 || info->block_h < 1)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, raster->file.path, 0, 0,
                          "its blocks have no size");
    if (pixels > limits->max_block_bytes / ((uint64_t)types[info->type].bytes * planes))
        return pb_fail_at(err, PB_E_INPUT_LIMIT, raster->file.path, 0, 0,
                          "one block has %d x %d pixels of %llu bands, more than the limit of %llu "
                          "bytes (limits.max_block_bytes)",
                          (int)info->block_w, (int)info->block_h, (unsigned long long)planes,
                          (unsigned long long)limits->max_block_bytes);
    return 0;
}

static int read_info(struct pb_raster *raster, const struct pb_limits *limits,
                     const struct pb_tiff_header *header, struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    struct words words; /* metadata that GDAL complains about is taken as far as it goes */
    int n_bands = GDALGetRasterCount(raster->dataset);
    if (n_bands < 1)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, raster->file.path, 0, 0,
                          "the file has no bands");
    if (n_bands > limits->max_bands || n_bands > PB_BANDS_MAX)
        return pb_fail_at(err, PB_E_INPUT_LIMIT, raster->file.path, 0, 0,
                          "the file has %d bands; at most %d are taken (limits.max_bands)", n_bands,
                          limits->max_bands < PB_BANDS_MAX ? (int)limits->max_bands : PB_BANDS_MAX);
    info->width = GDALGetRasterXSize(raster->dataset);
    info->height = GDALGetRasterYSize(raster->dataset);
    info->n_bands = n_bands;
    info->file_bytes = (uint64_t)raster->file.stat.st_size;
    info->file_mtime_ns = mtime_ns(&raster->file.stat);
    int rc = read_type(raster, err);
    if (rc < 0)
        return rc;
    listen(&words, raster);
    rc = read_layout(raster, header, err);
    if (rc == 0) {
        read_place(raster);
        read_datetime(raster->dataset, info->datetime);
        rc = check_limits(raster, limits, err);
    }
    unlisten();
    /* Metadata that could not be read looks like metadata that is not there. */
    if (rc == 0)
        rc = pb_raster_file_check(&raster->file, err);
    return rc < 0 ? rc : check_place(raster, &header->geo, &words, err);
}

/* Our own decoders. Blocks that are not stored hold what GDAL says: nodata, else 0. */
static int open_blocks(struct pb_raster *raster, const struct pb_limits *limits, struct pb_err *err)
{
    struct pb_raster_info *info = &raster->info;
    int rc = pb_raster_blocks_open(&raster->blocks, raster->file.fd, raster->file.path,
                                   limits->max_directories, info, err);
    for (int i = 0; rc == 0 && i < info->n_bands; i++) {
        int has = 0;
        double fill = GDALGetRasterNoDataValue(GDALGetRasterBand(raster->dataset, i + 1), &has);
        if (!has)
            fill = 0;
        GDALCopyWords(&fill, GDT_Float64, 0, raster->blocks.fill.sample[i], types[info->type].gdal,
                      0, 1);
    }
    return rc;
}

int pb_raster_open(const char *path, const struct pb_limits *limits, struct pb_err *err,
                   struct pb_raster **out_raster)
{
    struct pb_tiff_header header;
    struct pb_raster *raster = calloc(1, sizeof *raster);
    if (raster == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", path);
    int rc = pb_raster_file_open(&raster->file, path, err);
    if (rc == 0)
        rc = pb_tiff_header_read(raster->file.fd, (uint64_t)raster->file.stat.st_size, path, limits,
                                 err, &header);
    if (rc == 0) {
        vsi_add(raster);
        rc = open_dataset(raster, path, err);
    }
    if (rc == 0)
        rc = read_info(raster, limits, &header, err);
    if (rc == 0)
        rc = open_blocks(raster, limits, err);
    if (rc == 0)
        rc = pb_raster_unchanged(raster, err); /* header and metadata come from one state */
    if (rc == 0)
        *out_raster = raster;
    else
        pb_raster_close(raster);
    return rc;
}

int pb_raster_open_again(const struct pb_raster *first, const struct pb_limits *limits,
                         struct pb_err *err, struct pb_raster **out_raster)
{
    struct pb_raster *raster = calloc(1, sizeof *raster);
    if (raster == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory to open %s", first->file.path);
    raster->info = first->info;
    raster->alpha_band = first->alpha_band;
    raster->dataset_mask = first->dataset_mask;
    int rc = pb_raster_file_again(&raster->file, &first->file, err);
    if (rc == 0)
        rc = pb_raster_blocks_open(&raster->blocks, raster->file.fd, raster->file.path,
                                   limits->max_directories, &raster->info, err);
    raster->blocks.fill = first->blocks.fill;
    if (rc == 0 && (!raster->info.own_blocks || raster->dataset_mask)) {
        vsi_add(raster);
        rc = open_dataset(raster, raster->file.path, err);
    }
    if (rc == 0)
        rc = pb_raster_unchanged(raster, err); /* or what first found out is of something else */
    if (rc == 0)
        *out_raster = raster;
    else
        pb_raster_close(raster);
    return rc;
}

void pb_raster_close(struct pb_raster *raster)
{
    struct words words;
    if (raster == NULL)
        return;
    if (raster->dataset != NULL) {
        listen(&words, raster);
        GDALClose(raster->dataset);
        unlisten();
    }
    vsi_remove(raster);
    pb_raster_blocks_close(&raster->blocks);
    pb_raster_file_close(&raster->file);
    free(raster);
}

const struct pb_raster_info *pb_raster_info(const struct pb_raster *raster)
{
    return &raster->info;
}

int pb_raster_unchanged(const struct pb_raster *raster, struct pb_err *err)
{
    return pb_raster_file_unchanged(&raster->file, err);
}

/* --- read -------------------------------------------------------------------------------------*/

/* A read in progress. */
struct read {
    struct pb_raster *raster;
    const struct pb_rect *rect;
    const struct pb_pixels *to;
    struct words words;
    int band;              /* the one that failed; 0 = the mask */
    struct pb_rect failed; /* the part of rect that failed */
};

/* Reads part (image coordinates, inside rect) of one band to its place. */
static bool read_part(struct read *read, const struct pb_rect *part, int band, size_t plane)
{
    enum pb_type type = read->raster->info.type;
    char *to = (char *)read->to->data + plane * read->to->plane_bytes +
               (size_t)(part->y - read->rect->y) * read->to->row_bytes +
               (size_t)(part->x - read->rect->x) * (size_t)types[type].bytes;
    CPLErr rc = GDALRasterIOEx(GDALGetRasterBand(read->raster->dataset, band), GF_Read, part->x,
                               part->y, part->w, part->h, to, part->w, part->h, types[type].gdal,
                               types[type].bytes, (GSpacing)read->to->row_bytes, NULL);
    if (rc == CE_None && read->words.n == 0)
        return true;
    read->band = band;
    read->failed = *part;
    return false;
}

static int32_t min_px(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static bool read_by_block(struct read *read, const int32_t *bands, size_t n_bands)
{
    const struct pb_raster_info *info = &read->raster->info;
    const struct pb_rect *rect = read->rect;
    struct pb_rect part;
    for (part.y = rect->y; part.y < rect->y + rect->h; part.y += part.h) {
        part.h = min_px(info->block_h - part.y % info->block_h, rect->y + rect->h - part.y);
        for (part.x = rect->x; part.x < rect->x + rect->w; part.x += part.w) {
            part.w = min_px(info->block_w - part.x % info->block_w, rect->x + rect->w - part.x);
            for (size_t i = 0; i < n_bands; i++) {
                if (!read_part(read, &part, bands[i], i))
                    return false;
            }
        }
    }
    return true;
}

static bool read_by_band(struct read *read, const int32_t *bands, size_t n_bands)
{
    for (size_t i = 0; i < n_bands; i++) {
        if (!read_part(read, read->rect, bands[i], i))
            return false;
    }
    return true;
}

/* An alpha of another type is clamped to bytes: below one half counts as 0. */
static bool read_mask(struct read *read)
{
    const struct pb_raster *raster = read->raster;
    const struct pb_rect *rect = read->rect;
    const struct pb_pixels *to = read->to;
    if (!raster->info.has_mask) {
        for (size_t y = 0; y < (size_t)rect->h; y++)
            memset(to->mask + y * to->mask_row_bytes, 255, (size_t)rect->w);
        return true;
    }
    GDALRasterBandH band = raster->dataset_mask
                               ? GDALGetMaskBand(GDALGetRasterBand(raster->dataset, 1))
                               : GDALGetRasterBand(raster->dataset, raster->alpha_band);
    CPLErr rc = GDALRasterIOEx(band, GF_Read, rect->x, rect->y, rect->w, rect->h, to->mask, rect->w,
                               rect->h, GDT_Byte, 1, (GSpacing)to->mask_row_bytes, NULL);
    read->band = 0;
    read->failed = *rect;
    return rc == CE_None && read->words.n == 0;
}

static int read_failed(const struct read *read, struct pb_err *err)
{
    const struct words *words = &read->words;
    const struct pb_rect *r = &read->failed;
    enum pb_code code = PB_E_INPUT_DAMAGED;
    char band[24] = "mask";
    int rc = pb_raster_file_check(&read->raster->file, err);
    if (rc == 0)
        rc = pb_raster_unchanged(read->raster, err);
    if (rc < 0)
        return rc; /* the better explanation */
    if (words->number == CPLE_OutOfMemory)
        code = PB_E_MEMORY;
    else if (says(words, "Read error") || says(words, "Seek error") ||
             says(words, "Cannot read offset"))
        code = PB_E_INPUT_TRUNCATED;
    if (read->band > 0)
        (void)snprintf(band, sizeof band, "band %d", read->band);
    return pb_fail_at(err, code, read->raster->file.path, 0, 0,
                      "%s, window at x %d, y %d of %d x %d pixels does not decode: %s: %s", band,
                      (int)r->x, (int)r->y, (int)r->w, (int)r->h, read->raster->info.compression,
                      said(words));
}

/* Hands over what our own decoders say, unless there is a better explanation. */
static int own_failed(const struct read *read, const struct pb_err *own, struct pb_err *err)
{
    bool input = own->code == PB_E_INPUT_DAMAGED || own->code == PB_E_INPUT_TRUNCATED;
    int rc = input ? pb_raster_unchanged(read->raster, err) : 0;
    if (rc < 0)
        return rc;
    if (err != NULL && err->code == PB_OK)
        *err = *own;
    return pb_code_errno(own->code);
}

static int check_blocks(struct read *read, bool mask, struct pb_err *err)
{
    struct pb_raster *raster = read->raster;
    struct pb_err own = {0};
    if (pb_raster_blocks_check(&raster->blocks, mask, &raster->info, read->rect, &own) == 0)
        return 0;
    return own_failed(read, &own, err);
}

static int read_own(struct read *read, const int32_t *bands, size_t n_bands, struct pb_err *err)
{
    struct pb_raster *raster = read->raster;
    struct pb_pixels to = *read->to;
    if (raster->dataset_mask)
        to.mask = NULL; /* GDAL's */
    const struct pb_block_target target = {
        .layout = pb_block_reader_layout(raster->blocks.image),
        .rect = read->rect,
        .bands = bands,
        .n_bands = n_bands,
        .sample_bytes = (size_t)types[raster->info.type].bytes,
        .type = raster->info.type,
        .alpha_band = raster->alpha_band,
        .fill = &raster->blocks.fill,
        .to = &to,
    };
    struct pb_err own = {0};
    if (pb_block_reader_read(raster->blocks.image, &target, &own) < 0)
        return own_failed(read, &own, err);
    if (read->to->mask == NULL || !raster->dataset_mask)
        return 0;
    int rc = check_blocks(read, true, err);
    if (rc < 0)
        return rc;
    listen(&read->words, raster);
    read->words.least = CE_Warning;
    bool fine = read_mask(read);
    unlisten();
    return fine && raster->file.error == 0 ? 0 : read_failed(read, err);
}

int pb_raster_read(struct pb_raster *raster, const struct pb_rect *rect, const int32_t *bands,
                   size_t n_bands, const struct pb_pixels *to, struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    struct read read = {.raster = raster, .rect = rect, .to = to};
    if (rect->x < 0 || rect->y < 0 || rect->w < 1 || rect->h < 1 ||
        rect->w > info->width - rect->x || rect->h > info->height - rect->y)
        return pb_fail_at(err, PB_E_SYSTEM, raster->file.path, 0, 0,
                          "a window outside the image was asked for (%d, %d, %d x %d)",
                          (int)rect->x, (int)rect->y, (int)rect->w, (int)rect->h);
    /* The caller planned with the file as it was when somebody else opened it. */
    if (to->row_bytes < (size_t)rect->w * (size_t)types[info->type].bytes)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, raster->file.path, 0, 0,
                          "its pixels are %s now; the file was replaced by another one",
                          pb_type_name(info->type));
    for (size_t i = 0; i < n_bands; i++) {
        if (bands[i] < 1 || bands[i] > info->n_bands)
            return pb_fail_at(err, PB_E_PIPELINE_BAND, raster->file.path, 0, 0,
                              "band %d does not exist; the file has %d", (int)bands[i],
                              (int)info->n_bands);
    }
    if (info->own_blocks)
        return read_own(&read, bands, n_bands, err);
    int rc = check_blocks(&read, false, err);
    if (rc == 0 && to->mask != NULL && raster->dataset_mask)
        rc = check_blocks(&read, true, err);
    if (rc < 0)
        return rc;
    listen(&read.words, raster);
    read.words.least = CE_Warning;
    bool fine = info->pixel_interleaved ? read_by_block(&read, bands, n_bands)
                                        : read_by_band(&read, bands, n_bands);
    if (fine && to->mask != NULL)
        fine = read_mask(&read);
    unlisten();
    fine = fine && raster->file.error == 0; /* whatever GDAL made of it */
    return fine ? 0 : read_failed(&read, err);
}

/* --- metadata for products --------------------------------------------------------------------*/

/* The GCPs at their pixels of another grid; the caller frees them with free_gcps(). NULL: no
 * memory. */
static GDAL_GCP *map_gcps(const struct pb_raster *raster, const struct pb_map *map)
{
    int n = raster->info.n_gcps;
    GDAL_GCP *gcps = GDALDuplicateGCPs(n, GDALGetGCPs(raster->dataset));
    for (int i = 0; gcps != NULL && i < n; i++) {
        gcps[i].dfGCPPixel = gcps[i].dfGCPPixel * map->scale_x + map->offset_x;
        gcps[i].dfGCPLine = gcps[i].dfGCPLine * map->scale_y + map->offset_y;
    }
    return gcps;
}

static void free_gcps(const struct pb_raster *raster, GDAL_GCP *gcps)
{
    if (gcps == NULL)
        return;
    GDALDeinitGCPs(raster->info.n_gcps, gcps);
    CPLFree(gcps);
}

/* One number of the RPCs, of another grid. Their pixel 0 is the centre of the first pixel. */
static void map_rpc(char ***rpc, const char *offset, const char *scale, double map_scale,
                    double map_offset)
{
    char text[40];
    const char *at = CSLFetchNameValue(*rpc, offset), *size = CSLFetchNameValue(*rpc, scale);
    if (at == NULL || size == NULL)
        return;
    (void)CPLsnprintf(text, sizeof text, "%.17g",
                      (CPLAtof(at) + 0.5) * map_scale + map_offset - 0.5);
    *rpc = CSLSetNameValue(*rpc, offset, text);
    (void)CPLsnprintf(text, sizeof text, "%.17g", CPLAtof(size) * map_scale);
    *rpc = CSLSetNameValue(*rpc, scale, text);
}

static void copy_rpc(GDALDatasetH from, GDALDatasetH to, const struct pb_map *map)
{
    const struct pb_map same = pb_map_identity();
    char **rpc = CSLDuplicate(GDALGetMetadata(from, "RPC"));
    if (rpc != NULL && !pb_map_equal(map, &same)) {
        map_rpc(&rpc, "SAMP_OFF", "SAMP_SCALE", map->scale_x, map->offset_x);
        map_rpc(&rpc, "LINE_OFF", "LINE_SCALE", map->scale_y, map->offset_y);
    }
    if (rpc != NULL)
        (void)GDALSetMetadata(to, rpc, "RPC");
    CSLDestroy(rpc);
}

static void copy_place(const struct pb_raster *raster, const struct pb_map *map, GDALDatasetH to)
{
    GDALDatasetH from = raster->dataset;
    const char *point = GDALGetMetadataItem(from, GDALMD_AREA_OR_POINT, NULL);
    OGRSpatialReferenceH srs = GDALGetSpatialRef(from);
    if (point != NULL) /* before the transform, which it shifts by half a pixel as it is written */
        (void)GDALSetMetadataItem(to, GDALMD_AREA_OR_POINT, point, NULL);
    if (srs != NULL)
        (void)GDALSetSpatialRef(to, srs);
    if (raster->info.has_transform) {
        double transform[6];
        pb_map_transform(map, raster->info.transform, transform);
        (void)GDALSetGeoTransform(to, transform);
    } else if (raster->info.n_gcps > 0) {
        GDAL_GCP *gcps = map_gcps(raster, map);
        (void)GDALSetGCPs2(to, raster->info.n_gcps, gcps, GDALGetGCPSpatialRef(from));
        free_gcps(raster, gcps);
    }
    copy_rpc(from, to, map);
}

static struct pb_map map_of(const struct pb_geo_extra *extra)
{
    return extra->grid != NULL ? extra->grid->map : pb_map_identity();
}

static bool write_small(const struct pb_raster *raster, const struct pb_geo_extra *extra,
                        const char *name)
{
    static const char *const options[] = {"PROFILE=GDALGeoTIFF", "PHOTOMETRIC=MINISBLACK",
                                          "INTERLEAVE=PIXEL", "BIGTIFF=NO", NULL};
    int n = extra->n_bands > 0 ? (int)extra->n_bands : 1;
    GDALDatasetH to = GDALCreate(GDALGetDriverByName("GTiff"), name, 1, 1, n,
                                 types[extra->type].gdal, (char **)(uintptr_t)options);
    if (to == NULL)
        return false;
    const struct pb_map map = map_of(extra);
    copy_place(raster, &map, to);
    for (int i = 0; i < n; i++) {
        GDALRasterBandH band = GDALGetRasterBand(to, i + 1);
        if (extra->band_names != NULL && extra->band_names[i] != NULL)
            GDALSetDescription(band, extra->band_names[i]);
        if (extra->has_nodata)
            (void)GDALSetRasterNoDataValue(band, extra->nodata);
    }
    GDALClose(to);
    return true;
}

/* GDAL reads the tie points of a PixelIsPoint file half a pixel on, and writes GCPs half a pixel on
 * again: a pass would move them by a pixel. Here they are what the reader undoes. */
static void fix_tie_points(const struct pb_raster *raster, const struct pb_geo_extra *extra,
                           struct pb_tiff_tags *tags)
{
    const struct pb_map map = map_of(extra);
    const char *point = GDALGetMetadataItem(raster->dataset, GDALMD_AREA_OR_POINT, NULL);
    double shift = point != NULL && strcmp(point, GDALMD_AOP_POINT) == 0 ? 0.5 : 0;
    uint64_t n = (uint64_t)raster->info.n_gcps;
    GDAL_GCP *gcp = n > 0 ? map_gcps(raster, &map) : NULL;
    for (size_t i = 0; gcp != NULL && i < tags->n && !raster->info.has_transform; i++) {
        double *value = tags->tag[i].value;
        if (tags->tag[i].tag != 33922 || tags->tag[i].type != 12 || tags->tag[i].count != 6 * n)
            continue;
        for (uint64_t k = 0; k < n; k++) {
            value[6 * k] = gcp[k].dfGCPPixel - shift;
            value[6 * k + 1] = gcp[k].dfGCPLine - shift;
        }
    }
    free_gcps(raster, gcp);
}

int pb_raster_geo_tags(struct pb_raster *raster, const struct pb_geo_extra *extra,
                       struct pb_err *err, struct pb_tiff_tags *out_tags)
{
    static const uint16_t wanted[] = {33550, 33922, 34264, 34735, 34736,
                                      34737, 42112, 42113, 50844};
    struct words words;
    char name[64];
    vsi_l_offset n_bytes = 0;
    int rc = -EIO, io = 0;
    (void)snprintf(name, sizeof name, "/vsimem/pb_geo_tags_%p.tif", (void *)raster);
    listen(&words, raster);
    bool fine = write_small(raster, extra, name) && raster->file.error == 0;
    const GByte *bytes = fine ? VSIGetMemFileBuffer(name, &n_bytes, FALSE) : NULL;
    if (bytes != NULL)
        rc = pb_tiff_tags_take(bytes, (size_t)n_bytes, wanted, sizeof wanted / sizeof wanted[0],
                               out_tags);
    if (rc == 0)
        fix_tie_points(raster, extra, out_tags);
    (void)VSIUnlink(name);
    unlisten();
    if ((io = pb_raster_file_check(&raster->file, err)) < 0)
        return io;
    if (rc < 0)
        return pb_fail_at(err, rc == -ENOMEM ? PB_E_MEMORY : PB_E_SYSTEM, raster->file.path, 0, 0,
                          "its georeferencing cannot be put into a product: %s", said(&words));
    return 0;
}

/* --- footprint and CRS ------------------------------------------------------------------------*/

#define N PB_OUTLINE_POINTS

/* Coordinates of srs -> longitude, latitude (WGS 84). */
static bool to_lonlat(OGRSpatialReferenceH srs, double xy[N][2])
{
    double x[N], y[N];
    bool fine = false;
    if (srs == NULL)
        return false;
    OGRSpatialReferenceH from = OSRClone(srs), wgs84 = OSRNewSpatialReference(NULL);
    OGRCoordinateTransformationH transformation = NULL;
    OSRSetAxisMappingStrategy(from, OAMS_TRADITIONAL_GIS_ORDER);
    OSRSetAxisMappingStrategy(wgs84, OAMS_TRADITIONAL_GIS_ORDER);
    if (OSRImportFromEPSG(wgs84, 4326) == OGRERR_NONE)
        transformation = OCTNewCoordinateTransformation(from, wgs84);
    for (size_t i = 0; i < N; i++) {
        x[i] = xy[i][0];
        y[i] = xy[i][1];
    }
    if (transformation != NULL)
        fine = OCTTransform(transformation, N, x, y, NULL);
    for (size_t i = 0; fine && i < N; i++) {
        xy[i][0] = x[i];
        xy[i][1] = y[i];
    }
    if (transformation != NULL)
        OCTDestroyCoordinateTransformation(transformation);
    OSRDestroySpatialReference(from);
    OSRDestroySpatialReference(wgs84);
    return fine;
}

static bool by_transform(const struct pb_raster *raster, double xy[N][2])
{
    if (!raster->info.has_transform)
        return false;
    for (size_t i = 0; i < N; i++)
        GDALApplyGeoTransform((double *)(uintptr_t)raster->info.transform, xy[i][0], xy[i][1],
                              &xy[i][0], &xy[i][1]);
    return to_lonlat(srs_of(raster), xy);
}

static bool by_gcps(const struct pb_raster *raster, double xy[N][2])
{
    if (raster->info.n_gcps < 3)
        return false;
    void *arg =
        GDALCreateGCPTransformer(raster->info.n_gcps, GDALGetGCPs(raster->dataset), 0, FALSE);
    bool fine = arg != NULL && run_transformer(GDALGCPTransform, arg, xy, N);
    if (arg != NULL)
        GDALDestroyGCPTransformer(arg);
    return fine && to_lonlat(GDALGetGCPSpatialRef(raster->dataset), xy);
}

static bool by_rpc(const struct pb_raster *raster, double xy[N][2])
{
    return rpc_to_ground(raster, xy, N);
}

/* Points along the edge of a grid in the image's pixel coordinates. */
static void outline_of(const struct pb_geometry *grid, double points[N][2])
{
    pb_outline_pixels(grid->w, grid->h, points);
    for (size_t i = 0; i < N; i++) {
        points[i][0] = (points[i][0] - grid->map.offset_x) / grid->map.scale_x;
        points[i][1] = (points[i][1] - grid->map.offset_y) / grid->map.scale_y;
    }
}

int pb_raster_footprint(struct pb_raster *raster, const struct pb_geometry *grid,
                        struct pb_footprint *out_footprint)
{
    static bool (*const ways[])(const struct pb_raster *, double[N][2]) = {by_transform, by_gcps,
                                                                           by_rpc};
    const struct pb_geometry own = {raster->info.width, raster->info.height, pb_map_identity()};
    struct words words; /* why a way does not work is of no interest */
    int rc = -ENODATA;
    listen(&words, raster);
    for (size_t i = 0; rc < 0 && i < sizeof ways / sizeof ways[0]; i++) {
        double points[N][2];
        outline_of(grid != NULL ? grid : &own, points);
        if (ways[i](raster, points))
            rc = pb_outline_footprint(points, out_footprint);
    }
    unlisten();
    return rc;
}

bool pb_raster_same_crs(const struct pb_raster *a, const struct pb_raster *b)
{
    OGRSpatialReferenceH one = srs_of(a), other = srs_of(b);
    struct words words; /* why they differ is of no interest */
    if (one == NULL || other == NULL)
        return one == other;
    listen(&words, a);
    bool same = OSRIsSame(one, other) != 0;
    unlisten();
    return same;
}

enum crs_text { CRS_WKT2, CRS_PROJJSON };

static char *crs_text(const struct pb_raster *raster, enum crs_text kind)
{
    static const char *const wkt2[] = {"FORMAT=WKT2_2019", "MULTILINE=NO", NULL};
    static const char *const json[] = {"MULTILINE=NO", NULL};
    OGRSpatialReferenceH srs = srs_of(raster);
    struct words words;
    char *text = NULL, *copy = NULL;
    OGRErr rc = OGRERR_FAILURE;
    if (srs == NULL)
        return NULL;
    listen(&words, raster);
    if (kind == CRS_WKT2)
        rc = OSRExportToWktEx(srs, &text, wkt2);
    else
        rc = OSRExportToPROJJSON(srs, &text, json);
    unlisten();
    if (rc == OGRERR_NONE && text != NULL && text[0] != '\0')
        copy = strdup(text);
    CPLFree(text);
    return copy;
}

char *pb_raster_wkt2(struct pb_raster *raster)
{
    return crs_text(raster, CRS_WKT2);
}

char *pb_raster_projjson(struct pb_raster *raster)
{
    return crs_text(raster, CRS_PROJJSON);
}
