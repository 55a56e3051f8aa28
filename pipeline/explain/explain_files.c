/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Assignment of files to the bands of the pipeline, and unused files in the scene's folder. */
#include "config/base/base_name.h"
#include "config/group_pattern.h"
#include "config/pipeline_config.h"
#include "config/product_words.h"
#include "pipeline/explain/explain_parts.h"
#include "pipeline/io/path.h"
#include "pipeline/metadata/observation.h"
#include "pipeline/raster/source_files.h"
#include "pipeline/scene/scene.h"
#include "pipeline/scene/scene_search.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/sidecars.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bands of file i with their names in the pipeline; a single file without names has B1, B2, ... */
struct bands {
    const struct pb_band_config *band;
    size_t n;
};

static struct bands bands_of(const struct pb_run_view *view, size_t i)
{
    const struct pb_input_config *input = &view->options->pipeline->input;
    return i == 0 ? (struct bands){input->bands, input->n_bands}
                  : (struct bands){input->sources[i - 1].bands, input->sources[i - 1].n_bands};
}

static bool is_named(const struct bands *bands, int32_t number)
{
    for (size_t b = 0; b < bands->n; b++)
        if (bands->band[b].index == number)
            return true;
    return false;
}

static void explain_band(const char *name, int32_t number, bool read, struct pb_json *json)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "name", name);
    pb_json_int(json, "number", number);
    pb_json_bool(json, "read", read);
    pb_json_end(json);
}

static void explain_bands(const struct pb_run_view *view, size_t i, struct pb_json *json)
{
    const struct pb_plan *plan = view->plan;
    const struct bands bands = bands_of(view, i);
    const struct pb_raster_info *info = pb_raster_info(view->sources->raster[i]);
    char name[16];
    pb_json_array(json, "bands");
    for (size_t b = 0; b < bands.n; b++)
        explain_band(bands.band[b].name, bands.band[b].index,
                     pb_plan_reads(plan, i, bands.band[b].index), json);
    for (int32_t b = 1; bands.n == 0 && b <= info->n_bands; b++) {
        (void)snprintf(name, sizeof name, "B%d", b);
        explain_band(name, b, pb_plan_reads(plan, i, b), json);
    }
    pb_json_end(json);
    pb_json_array(json, "unnamed_bands");
    for (int32_t b = 1; bands.n > 0 && b <= info->n_bands; b++)
        if (!is_named(&bands, b))
            pb_json_int(json, NULL, b);
    pb_json_end(json);
}

void pb_explain_pixel(const struct pb_raster_info *info, const double t[6], int32_t w, int32_t h,
                      struct pb_json *json)
{
    const double x = hypot(t[1], t[4]), y = hypot(t[2], t[5]);
    const bool is_known = info->unit.metres[0] > 0 && info->unit.metres[1] > 0;
    double metres[2];
    pb_json_array(json, "pixel");
    pb_json_number(json, NULL, x);
    pb_json_number(json, NULL, y);
    pb_json_end(json);
    pb_ground_metres(&info->unit, t[3] + w / 2.0 * t[4] + h / 2.0 * t[5], metres);
    if (!is_known || metres[0] <= 0 || metres[1] <= 0)
        return;
    pb_json_array(json, "pixel_metres");
    pb_json_number(json, NULL, x * metres[0]);
    pb_json_number(json, NULL, y * metres[1]);
    pb_json_end(json);
    if (info->unit.law != PB_GROUND_EVEN)
        pb_json_bool(json, "pixel_varies", true);
}

/* Returns the name of file i: of a source outside the scene its path (in room), of a file of the
 * scene its path inside it. */
static const char *name_of(const struct pb_run_view *view, size_t i, char room[PATH_MAX])
{
    const struct pb_run_options *o = view->options;
    const struct pb_source_config *source = i > 0 ? &o->pipeline->input.sources[i - 1] : NULL;
    if (source != NULL && !source->of_scene)
        return pb_source_path(o->config, source, view->scene, room, NULL) == 0 ? room
                                                                               : source->file;
    if (pb_scene_several(o->input) != NULL)
        return pb_scene_files_inner(pb_scene_several(o->input),
                                    pb_scene_several(o->input)->file[i].path);
    return pb_base_name(o->name ? o->name : o->input->path);
}

static void explain_file(const struct pb_run_view *view, size_t i, struct pb_json *json)
{
    static const char *const bring[] = {NULL, "nearest", "bilinear", "cubic", "average", "mode"};
    const struct pb_raster_info *info = pb_raster_info(view->sources->raster[i]);
    const struct pb_input_config *input = &view->options->pipeline->input;
    char room[PATH_MAX];
    pb_json_object(json, NULL);
    pb_json_string(json, "name", name_of(view, i, room));
    explain_bands(view, i, json);
    pb_json_int(json, "width", info->width);
    pb_json_int(json, "height", info->height);
    pb_json_int(json, "n_bands", info->n_bands);
    pb_json_string(json, "data_type",
                   info->complex.kind != PB_COMPLEX_NONE ? pb_complex_name(info->complex.kind)
                                                         : pb_type_name(info->type));
    if (info->complex.kind != PB_COMPLEX_NONE)
        pb_json_string(json, "read_as", info->complex.power ? "power" : "amplitude");
    pb_json_string(json, "compression", info->compression);
    const int32_t page = i == 0 ? input->file_page : input->sources[i - 1].page;
    if (page > 0)
        pb_json_int(json, "page", page);
    if (info->n_pages_more > 0)
        pb_json_int(json, "pages", info->n_pages_more + 1);
    if (info->has_transform)
        pb_explain_pixel(info, info->transform, info->width, info->height, json);
    pb_json_number(json, "scale", i == 0 ? input->scale : input->sources[i - 1].scale);
    pb_json_number(json, "offset", i == 0 ? input->offset : input->sources[i - 1].offset);
    pb_json_bool(json, "is_grid", i == 0);
    pb_json_string(json, "resample",
                   i > 0 ? bring[view->options->pipeline->input.sources[i - 1].resample] : NULL);
    pb_json_end(json);
}

static bool is_absent(const struct pb_source_config *source)
{
    return source->optional && source->is_needed;
}

/* Lists bands whose files no product needs, or, absent, whose optional files the scene lacks. */
static void explain_not_read(const struct pb_run_view *view, bool absent, struct pb_json *json)
{
    const struct pb_input_config *input = &view->options->pipeline->input;
    pb_json_array(json, absent ? "absent" : "not_opened");
    for (size_t i = 0; i < input->n_sources; i++) {
        const struct pb_source_config *source = &input->sources[i];
        if (view->sources->raster[i + 1] != NULL || is_absent(source) != absent)
            continue;
        for (size_t k = 0; k < (absent ? source->n_bands : 1); k++) {
            pb_json_object(json, NULL);
            pb_json_string(json, "band", absent ? source->bands[k].name : source->name);
            pb_json_string(json, "match", source->file);
            pb_json_end(json);
        }
    }
    pb_json_end(json);
}

static bool fits(const struct pb_run_view *view, const char *pattern, const char *path)
{
    char filled[PATH_MAX];
    return pattern != NULL && pb_scene_search_pattern(pattern, view->scene, filled, NULL) == 0 &&
           pb_scene_walk_fits(filled, path);
}

/* Returns true for a counted file that was opened: more files may match than there are numbers. */
static bool is_of_file(const struct pb_run_view *view, size_t i, const char *pattern, int32_t nth,
                       const char *path)
{
    const struct pb_scene_files *files = pb_scene_several(view->options->input);
    const char *opened = nth > 0 ? files->file[i].path : NULL;
    if (nth > 0)
        return opened != NULL && strcmp(pb_scene_files_inner(files, opened), path) == 0;
    return fits(view, pattern, path);
}

static bool is_of_pipeline(const struct pb_run_view *view, const char *path)
{
    const struct pb_input_config *input = &view->options->pipeline->input;
    bool found = is_of_file(view, 0, input->file, input->file_nth, path);
    found = found || fits(view, input->list, path);
    for (size_t i = 0; i < input->n_metadata && !found; i++)
        found = fits(view, input->metadata[i], path);
    for (size_t i = 0; i < input->n_sources && !found; i++)
        found = input->sources[i].of_scene &&
                is_of_file(view, i + 1, input->sources[i].file, input->sources[i].nth, path);
    return found;
}

static bool is_sidecar(const struct pb_run_options *o, const char *path)
{
    const struct pb_sidecars *sidecars = pb_scene_sidecars(o->input);
    bool is = false;
    for (size_t i = 0; sidecars != NULL && !is && i < sidecars->n; i++)
        is = strcmp(pb_scene_files_inner(pb_scene_several(o->input), sidecars->file[i].path),
                    path) == 0;
    for (size_t i = 0; sidecars != NULL && !is && i < sidecars->n_unused; i++)
        is = strcmp(sidecars->unused[i], path) == 0;
    return is;
}

/* Lists the files of the folder, or of the group, that no entry of input.files uses. */
static void explain_not_used(const struct pb_run_view *view,
                             const struct pb_explain_options *options, struct pb_json *json)
{
    const struct pb_run_options *o = view->options;
    struct pb_scene_walk walk;
    char folder[PATH_MAX];
    if (options->loose != NULL)
        pb_path_parent(o->input->path, folder);
    else
        (void)snprintf(folder, sizeof folder, "%s", pb_scene_several(o->input)->folder);
    int rc = options->loose != NULL ? pb_scene_walk_open_loose(folder, options->loose, NULL, &walk)
                                    : pb_scene_walk_open(folder, NULL, &walk);
    pb_json_bool(json, "counts_files", o->pipeline->input.file_nth > 0);
    pb_json_array(json, "not_used");
    for (size_t i = 0; rc == 0 && i < walk.n; i++)
        if (!is_of_pipeline(view, walk.entry[i].path) && !is_sidecar(o, walk.entry[i].path))
            pb_json_string(json, NULL, walk.entry[i].path);
    pb_json_end(json);
    pb_scene_walk_close(&walk);
}

static int32_t nth_of(const struct pb_input_config *input, size_t i)
{
    return i == 0 ? input->file_nth : input->sources[i - 1].nth;
}

static void explain_counted(const struct pb_run_view *view, size_t i, bool dated,
                            struct pb_json *json)
{
    const struct pb_scene_files *files = pb_scene_several(view->options->input);
    const struct pb_input_config *input = &view->options->pipeline->input;
    const char *name = pb_scene_files_inner(files, files->file[i].path);
    char date[PB_GROUP_DATE_BYTES] = "";
    if (dated)
        pb_group_pattern_date(input->group_pattern, pb_base_name(name), date);
    pb_json_object(json, NULL);
    pb_json_int(json, "nth", nth_of(input, i));
    pb_json_string(json, "file", name);
    pb_json_string(json, "date", date[0] ? date : NULL);
    pb_json_end(json);
}

/* Explains the order in which files are counted, and the value that decided for each. */
static void explain_order(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_input_config *input = &view->options->pipeline->input;
    const struct pb_scene_files *files = pb_scene_several(view->options->input);
    const bool dated = pb_files_by_date(input->order);
    if (view->observations->n > 0)
        pb_observations_print(view->observations, json);
    if (input->file_nth == 0 || view->observations->n > 0)
        return;
    pb_json_object(json, "order");
    pb_json_string(json, "by", dated ? "date" : "name");
    pb_json_bool(json, "descending", pb_files_from_the_last(input->order));
    pb_json_array(json, "files");
    for (int32_t nth = 1; nth <= PB_FILES_MAX; nth++)
        for (size_t i = 0; i < files->n; i++)
            if (files->file[i].path != NULL && nth_of(input, i) == nth)
                explain_counted(view, i, dated, json);
    pb_json_end(json);
    pb_json_end(json);
}

static void explain_metadata(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_metadata *f = &view->metadata->facts;
    if (f->family == NULL)
        return;
    pb_json_object(json, "metadata");
    pb_json_string(json, "file", view->metadata->file);
    pb_json_string(json, "family", f->family->name);
    pb_json_string(json, "platform", f->platform);
    pb_json_string(json, "product", f->product);
    pb_json_string(json, "level", f->level);
    pb_json_string(json, "baseline", f->baseline);
    pb_json_string(json, "datetime", f->datetime[0] ? f->datetime : NULL);
    pb_json_number(json, "sun_elevation", f->sun_elevation);
    pb_json_number(json, "cloud_cover", f->cloud_cover);
    if (isnan(f->sun_elevation) && f->family->companion != NULL)
        pb_json_string(json, "companion", f->family->companion);
    pb_json_end(json);
}

static void explain_archive(const struct pb_scene_files *files, struct pb_json *json)
{
    pb_json_object(json, "archive");
    pb_json_int(json, "members", (int64_t)files->n_members);
    pb_json_int(json, "needed_bytes", (int64_t)files->bytes);
    pb_json_int(json, "unpacked_bytes", (int64_t)files->unpacked_bytes);
    pb_json_end(json);
}

void pb_explain_files(const struct pb_run_view *view, const struct pb_explain_options *options,
                      struct pb_json *json)
{
    size_t n = view->options->pipeline->input.n_sources;
    bool is_folder = pb_scene_several(view->options->input) != NULL;
    bool is_archive = is_folder && pb_scene_several(view->options->input)->n_members > 0;
    pb_json_string(json, "kind",
                   is_archive               ? "archive"
                   : options->loose != NULL ? "group"
                   : is_folder              ? "folder"
                                            : "file");
    if (is_archive)
        explain_archive(pb_scene_several(view->options->input), json);
    pb_json_array(json, "files");
    for (size_t i = 0; i <= n; i++)
        if (view->sources->raster[i] != NULL)
            explain_file(view, i, json);
    pb_json_end(json);
    explain_not_read(view, false, json);
    explain_not_read(view, true, json);
    if (is_folder && !is_archive)
        explain_not_used(view, options, json);
    if (is_folder)
        explain_order(view, json);
    pb_sidecars_print(pb_scene_sidecars(view->options->input), json);
    explain_metadata(view, json);
}
