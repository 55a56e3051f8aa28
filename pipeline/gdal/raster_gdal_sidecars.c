/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gdal/raster_gdal_sidecars.h"

#include "config/base/base_name.h"
#include "pipeline/gdal/raster_gdal_said.h"
#include "pipeline/gdal/raster_gdal_vsi.h"
#include "pipeline/raster/tiff_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define XML_BYTES_MAX ((uint64_t)16 << 20)

static bool ends_with(const struct pb_raster_file *sidecar, const char *ending)
{
    size_t n = strlen(sidecar->path), m = strlen(ending);
    return n > m && strcasecmp(sidecar->path + n - m, ending) == 0;
}

static bool is_world_file(const struct pb_raster_file *sidecar)
{
    static const char *const endings[] = {".tfw", ".tifw", ".tiffw", ".wld", ".j2w", ".jp2w"};
    bool is = false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && !is; i++)
        is = ends_with(sidecar, endings[i]);
    return is;
}

bool pb_gdal_has_mask_file(const struct pb_raster *raster)
{
    const struct pb_raster_file *sidecar;
    bool has = false;
    if (!raster->has_sidecars)
        return false;
    for (size_t i = 0; !has && (sidecar = pb_gdal_file_sidecar(raster, i)) != NULL; i++)
        has = ends_with(sidecar, ".msk");
    return has;
}

int pb_gdal_limit_sidecars(const struct pb_raster *raster, const struct pb_limits *limits,
                           struct pb_err *err)
{
    const struct pb_raster_file *sidecar;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (sidecar = pb_gdal_file_sidecar(raster, i)) != NULL; i++) {
        const struct pb_file_part part = pb_raster_file_part(sidecar);
        struct pb_tiff_header header;
        if (ends_with(sidecar, ".msk") || ends_with(sidecar, ".ovr"))
            rc = pb_tiff_header_read(&part, sidecar->path, limits, err, &header);
        else if (sidecar->bytes > XML_BYTES_MAX)
            rc = pb_fail_at(err, PB_E_INPUT_LIMIT, sidecar->path, 0, 0,
                            "it has %llu bytes, and a sidecar at most %llu",
                            (unsigned long long)sidecar->bytes, (unsigned long long)XML_BYTES_MAX);
    }
    return rc;
}

static int check_mask(const struct pb_raster *raster, const struct pb_raster_file *sidecar,
                      struct pb_err *err)
{
    GDALRasterBandH band = GDALGetMaskBand(GDALGetRasterBand(raster->dataset, 1));
    if (!raster->dataset_mask)
        return pb_fail_at(err, PB_E_INPUT_DAMAGED, sidecar->path, 0, 0, "GDAL finds no mask in it");
    int width = GDALGetRasterBandXSize(band), height = GDALGetRasterBandYSize(band);
    if (width == raster->info.width && height == raster->info.height)
        return 0;
    return pb_fail_at(err, PB_E_INPUT_DAMAGED, sidecar->path, 0, 0,
                      "it has %d x %d pixels, and the image that it belongs to %d x %d", width,
                      height, (int)raster->info.width, (int)raster->info.height);
}

static int check_xml(const struct pb_raster *raster, const struct pb_raster_file *sidecar,
                     struct pb_err *err)
{
    struct pb_gdal_words words;
    char name[640];
    const char *slash = strrchr(raster->vsi_name, '/');
    (void)snprintf(name, sizeof name, "%.*s%.255s", (int)(slash + 1 - raster->vsi_name),
                   raster->vsi_name, pb_base_name(sidecar->path));
    pb_gdal_listen(&words, NULL);
    CPLXMLNode *tree = CPLParseXMLFile(name);
    pb_gdal_unlisten();
    bool is = tree != NULL && CPLGetXMLNode(tree, "=PAMDataset") != NULL;
    CPLDestroyXMLNode(tree);
    return is ? 0
              : pb_fail_at(err, PB_E_INPUT_DAMAGED, sidecar->path, 0, 0,
                           "it is no PAMDataset in XML%s%s", words.first[0] ? ": " : "",
                           words.first);
}

/* Replaces a system without a code by the one of EPSG that is the same. */
static OGRSpatialReferenceH identified(OGRSpatialReferenceH srs)
{
    int n = 0, *confidence = NULL;
    OGRSpatialReferenceH *match = OSRFindMatches(srs, NULL, &n, &confidence), found = srs;
    if (n > 0 && confidence[0] >= 90 && (n == 1 || confidence[1] < confidence[0])) {
        found = OSRClone(match[0]);
        OSRDestroySpatialReference(srs);
    }
    OSRFreeSRSArray(match);
    CPLFree(confidence);
    return found;
}

/* Reads the file as a text; NULL: the errno is in raster->file. The caller frees it. */
static char *read_text(struct pb_raster *raster, const struct pb_raster_file *sidecar)
{
    const struct pb_file_part part = pb_raster_file_part(sidecar);
    char *text = calloc(1, sidecar->bytes + 1);
    const ssize_t n =
        text != NULL ? pb_file_part_read(&part, 0, text, sidecar->bytes, NULL) : -ENOMEM;
    if (n >= 0)
        return text;
    free(text);
    if (raster->file.error == 0)
        raster->file.error = (int)-n;
    return NULL;
}

OGRSpatialReferenceH pb_gdal_sidecar_system(struct pb_raster *raster)
{
    const struct pb_raster_file *sidecar = NULL;
    for (size_t i = 0; (sidecar = pb_gdal_file_sidecar(raster, i)) != NULL; i++)
        if (ends_with(sidecar, ".prj"))
            break;
    char *text = sidecar != NULL ? read_text(raster, sidecar) : NULL;
    if (text == NULL)
        return NULL;
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    char *lines[] = {text, NULL};
    const bool good = OSRImportFromESRI(srs, lines) == OGRERR_NONE;
    free(text);
    if (!good) {
        OSRDestroySpatialReference(srs);
        return NULL;
    }
    srs = identified(srs);
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

int pb_gdal_check_sidecars(const struct pb_raster *raster, struct pb_err *err)
{
    const struct pb_raster_info *info = &raster->info;
    const struct pb_raster_file *sidecar;
    int rc = 0;
    if (!raster->has_sidecars)
        return 0;
    for (size_t i = 0; rc == 0 && (sidecar = pb_gdal_file_sidecar(raster, i)) != NULL; i++) {
        const char *without = NULL;
        if (ends_with(sidecar, ".msk"))
            rc = check_mask(raster, sidecar, err);
        else if (ends_with(sidecar, ".aux.xml"))
            rc = check_xml(raster, sidecar, err);
        else if ((ends_with(sidecar, "_RPC.TXT") || ends_with(sidecar, ".RPB")) && !info->has_rpc)
            without = "RPCs";
        else if (is_world_file(sidecar) && !info->has_transform)
            without = "place of the image";
        else if (ends_with(sidecar, ".prj") && !info->has_crs)
            without = "coordinate system";
        if (without != NULL)
            rc = pb_fail_at(err, PB_E_INPUT_DAMAGED, sidecar->path, 0, 0, "GDAL finds no %s in it",
                            without);
    }
    return rc;
}
