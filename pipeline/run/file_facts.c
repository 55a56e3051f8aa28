/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/file_facts.h"

#include "pipeline/metadata/meta_time.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/raster/raster.h"
#include "pipeline/raster/raster_file.h"

#include <math.h>
#include <stdio.h>

static int take_time(struct pb_raster *raster, const char *path, struct pb_file_facts *out,
                     struct pb_err *err)
{
    char text[64];
    pb_raster_acquired(raster, text, sizeof text);
    if (text[0] == '\0' || pb_meta_time(text, out->datetime, sizeof out->datetime) == 0)
        return 0;
    out->datetime[0] = '\0';
    return pb_fail_at(err, PB_E_INPUT_METADATA_VALUE, path, 0, 0,
                      "ACQUISITIONDATETIME (domain IMAGERY) is '%.60s', which is no time", text);
}

/* Reads facts from the metadata in the file itself. */
static int look_inside(const struct pb_raster_file *file, const struct pb_limits *limits,
                       const struct pb_file_wants *wants, struct pb_file_facts *out,
                       struct pb_err *err)
{
    struct pb_raster *raster = NULL;
    pb_raster_file_hand_open(0, file);
    int rc = pb_raster_open_page(file->path, wants->page, limits, err, &raster);
    if (rc < 0)
        return rc;
    if (isnan(out->cloud_cover))
        out->cloud_cover = pb_raster_cloud_cover(raster);
    if (wants->date && out->datetime[0] == '\0')
        rc = take_time(raster, file->path, out, err);
    pb_raster_close(raster);
    return rc;
}

int pb_file_facts_read(struct pb_raster_file *metadata, size_t n_metadata,
                       const struct pb_raster_file *file, const struct pb_limits *limits,
                       const struct pb_file_wants *wants, struct pb_file_facts *out,
                       struct pb_err *err)
{
    struct pb_metadata facts;
    int rc = 0;
    pb_metadata_init(&facts);
    if (n_metadata > 0)
        rc = pb_metadata_read_files(metadata, n_metadata, &facts, err);
    out->cloud_cover = facts.cloud_cover;
    (void)snprintf(out->datetime, sizeof out->datetime, "%s", facts.datetime);
    (void)snprintf(out->tile, sizeof out->tile, "%s", facts.tile);
    pb_metadata_fini(&facts);
    const bool lacks =
        (wants->date && out->datetime[0] == '\0') || (wants->cloud && isnan(out->cloud_cover));
    return rc == 0 && lacks && file != NULL ? look_inside(file, limits, wants, out, err) : rc;
}
