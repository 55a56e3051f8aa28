/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rasters without a file, whose pixels are made by a function. */
#include "pipeline/gdal/raster_gdal_inside.h"

#include <stdlib.h>

enum { BLOCK_PX = 256 }; /* no block is stored; plans need a size */

void pb_raster_made_info(const struct pb_raster_made *made, struct pb_raster_info *out_info)
{
    *out_info = (struct pb_raster_info){.width = made->width,
                                        .height = made->height,
                                        .n_bands = made->n_bands,
                                        .type = made->type,
                                        .block_w = BLOCK_PX,
                                        .block_h = BLOCK_PX,
                                        .is_made = true,
                                        .compression = "NONE"};
}

int pb_raster_make(const struct pb_raster_made *made, struct pb_err *err,
                   struct pb_raster **out_raster)
{
    struct pb_raster *raster = calloc(1, sizeof *raster);
    if (raster == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for a raster");
    raster->made = *made;
    raster->file.fd = -1;
    pb_raster_made_info(made, &raster->info);
    *out_raster = raster;
    return 0;
}

int pb_gdal_read_made(const struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                      const struct pb_window *to, struct pb_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n_bands && rc == 0; i++)
        rc = raster->made.fill(raster->made.of, bands[i], &to->rect,
                               (char *)to->data + i * to->plane_bytes, to->row_bytes, err);
    return rc;
}
