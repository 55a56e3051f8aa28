/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_INSIDE_H
#define PB_RASTER_GDAL_INSIDE_H
/* The raster struct, shared by the files raster_gdal*.c, and GDAL's headers, which no other file
 * includes. */
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raster_blocks.h"
#include "pipeline/raster/raster_file.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <gdal_alg.h>
#include <gdal_frmts.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

struct pb_raster {
    GDALDatasetH dataset;       /* NULL: not opened; see pb_gdal_dataset */
    struct pb_raster_file file; /* GDAL reads through it and opens nothing itself */
    uint64_t vsi_id;            /* names the file for GDAL */
    char vsi_name[320];
    const struct pb_known_system *known; /* CRS of its GeoKeys, if that is loaded; else NULL */
    OGRSpatialReferenceH system; /* a sidecar's .prj, or a copy of `known`; NULL if unused */
    struct pb_segment *lines;    /* the closed segment that the file is; NULL: it is another file */
    bool is_plain;               /* read without GDAL: a plain GeoTIFF whose CRS is `known` */
    bool has_sidecars;           /* GDAL uses the file's own name and its sidecars */
    struct pb_raster *next;      /* in the list of open rasters */
    bool is_jp2;                 /* JPEG 2000, which GDAL decodes with OpenJPEG; else TIFF */
    bool dataset_mask;           /* GDAL's per-dataset mask that is not an alpha band */
    void *complex_row; /* samples of a block read by GDAL, before the conversion to real; NULL: not
                          yet allocated */
    struct pb_raster_blocks blocks;
    uint8_t (*palette)[4]; /* info.palette; NULL in a raster opened again, because the first one
                              owns it */
    struct pb_raster_made made; /* with info.is_made; the members above are unused then */
    struct pb_raster_info info;
};

/* Implements pb_raster_read for a raster of pb_raster_make. */
int pb_gdal_read_made(const struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                      const struct pb_window *to, struct pb_err *err);

struct pb_gdal_type {
    GDALDataType gdal;
    int bytes;
};
extern const struct pb_gdal_type pb_gdal_types[PB_TYPE_COUNT];
#endif
