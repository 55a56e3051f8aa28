/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_metadata.h"

#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "config/pipeline_config.h"
#include "pipeline/scene/scene.h"
#include "pipeline/scene/sidecars.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void set_names(struct pb_run_metadata *out, const struct pb_run_options *options)
{
    const struct pb_input_config *input = &options->pipeline->input;
    const struct pb_scene_files *files = pb_scene_several(options->input);
    out->name[0] = files           ? files->file[0].path
                   : options->name ? options->name
                                   : options->input->path;
    for (size_t i = 0; i < input->n_sources; i++)
        out->name[i + 1] = files != NULL && files->file[i + 1].path != NULL
                               ? files->file[i + 1].path
                               : input->sources[i].file;
}

static bool is_utm(const char *crs)
{
    return strlen(crs) == 10 &&
           (strncmp(crs, "EPSG:326", 8) == 0 || strncmp(crs, "EPSG:327", 8) == 0);
}

/* Finds the CRS of a tile of the military grid ("T33XWJ"): UTM with its zone, north from band N
 * on. Returns false for tiles of other grids. */
static bool crs_of_tile(const char *tile, char out[16])
{
    if (strlen(tile) != 6 || tile[0] != 'T' || !isdigit((unsigned char)tile[1]) ||
        !isdigit((unsigned char)tile[2]) || !isupper((unsigned char)tile[3]))
        return false;
    (void)snprintf(out, 16, "EPSG:32%c%.2s", tile[3] >= 'N' ? '6' : '7', tile + 1);
    return true;
}

/* Compares the CRS of the metadata with that of the scene; if only their tile is known, its UTM
 * zone with that of a scene in UTM. */
static int check(const struct pb_metadata *facts, const struct pb_raster_info *info,
                 struct pb_err *err)
{
    const bool has_crs = facts->crs[0] != '\0';
    char of_tile[16];
    if (info->crs_code[0] == '\0' ||
        (!has_crs && (!is_utm(info->crs_code) || !crs_of_tile(facts->tile, of_tile))) ||
        strcmp(has_crs ? facts->crs : of_tile, info->crs_code) == 0)
        return 0;
    return pb_fail(err, PB_E_INPUT_METADATA_CONFLICT,
                   "the metadata are of another scene: theirs is %s%s%s, this one in %s",
                   has_crs ? "" : facts->tile, has_crs ? "in " : " in ",
                   has_crs ? facts->crs : of_tile, info->crs_code);
}

/* Lists base names: "MTD_MSIL2A.xml, MTD_TL.xml". */
static void name_files(struct pb_run_metadata *out, const struct pb_metadata_files *files)
{
    size_t used = 0;
    for (size_t i = 0; i < files->n && used < sizeof out->file; i++)
        used += (size_t)snprintf(out->file + used, sizeof out->file - used, "%s%s", i ? ", " : "",
                                 pb_base_name(files->file[i].path));
}

/* Names the file as the scene does: the service runs a scene in a folder of its own. */
static void blame(const struct pb_run_options *options, struct pb_err *err)
{
    const struct pb_scene_files *files = pb_scene_several(options->input);
    struct pb_err named = {0};
    char line[16] = "";
    if (files != NULL)
        pb_scene_files_blame(files, err);
    if (files != NULL || err == NULL || err->file[0] == '\0')
        return;
    if (err->line > 0)
        (void)snprintf(line, sizeof line, "%d:", err->line);
    (void)pb_fail_at(&named, err->code, options->input->path, 0, 0, "%s:%s %s",
                     pb_base_name(err->file), line, err->msg);
    *err = named;
}

int pb_run_metadata_read(struct pb_run_metadata *out, const struct pb_run_options *options,
                         const char *scene, const struct pb_raster_info *info, struct pb_err *err)
{
    const struct pb_scene_files *files = pb_scene_several(options->input);
    struct pb_metadata_files own, found;
    int rc = 0;
    pb_metadata_init(&out->facts);
    set_names(out, options);
    if (options->pipeline->input.n_metadata == 0 ||
        options->pipeline->input.metadata_each) /* run_order.h reads the metadata of each file */
        return 0;
    pb_metadata_files_init(&own);
    if (files == NULL && options->input->metadata.n == 0)
        rc = pb_sidecar_open(options->pipeline, options->input->path, scene, -1, &own, err);
    found = files                            ? files->metadata /* descriptors stay the owner's */
            : options->input->metadata.n > 0 ? options->input->metadata
                                             : own;
    if (rc == 0)
        name_files(out, &found);
    if (rc == 0) {
        rc = pb_metadata_read_files(found.file, found.n, &out->facts, err);
        if (rc < 0)
            blame(options, err);
    }
    pb_metadata_files_close(&own);
    return rc ? rc : check(&out->facts, info, err);
}

void pb_run_metadata_output(const struct pb_run_metadata *metadata,
                            struct pb_output_facts *out_facts)
{
    const struct pb_metadata *f = &metadata->facts;
    *out_facts = (struct pb_output_facts){.sensor = NULL};
    if (f->family == NULL)
        return;
    out_facts->sensor = f->platform[0] != '\0' ? f->platform : NULL;
    out_facts->has_time = pb_clock_read(f->datetime, &out_facts->time_s);
}
