/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/values.h"
#include "config/pipeline_config.h"
#include "config/product_words.h"
#include "config/units.h"
#include "pipeline/codec/rest.h"

#include "kernels/nodata.h"
#include "kernels/ops/geometry/crop.h"
#include "kernels/ops/pixel/calibrate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings for reading one file of the run. */
struct file {
    const struct pb_raster_info *info;
    const char *name;    /* name of its part of the configuration; NULL = the scene's file */
    const char *section; /* result of pb_plan_section */
    const struct pb_band_config *bands;
    size_t n_bands;
    bool has_nodata; /* configured */
    double nodata;
};

/* Adds "; " and the note. One that does not fit is cut. */
static void __attribute__((format(printf, 3, 4)))
add(struct pb_plan_valid *valid, const struct file *file, const char *format, ...)
{
    const size_t room = sizeof valid->notes;
    size_t used = strlen(valid->notes);
    va_list args;
    int n = snprintf(valid->notes + used, room - used, "%s%s%s%s", used > 0 ? "; " : "",
                     file->name != NULL ? "file " : "", file->name != NULL ? file->name : "",
                     file->name != NULL ? ": " : "");
    used += n > 0 ? (size_t)n : 0;
    if (used >= room)
        return;
    va_start(args, format);
    (void)vsnprintf(valid->notes + used, room - used, format, args);
    va_end(args);
}

/* Key for messages: "input.bands", "input.sources.S.bands", "input.files.R": the key, or the name
 * of the file's bands. */
static const char *key_of(const struct file *file, const char *key, char out[160])
{
    const char *entry = file->name == NULL && file->n_bands > 0 ? file->bands[0].name : file->name;
    if (strcmp(file->section, "input.files") == 0 && strcmp(key, "bands") == 0)
        (void)snprintf(out, 160, "input.files");
    else if (strcmp(file->section, "input") != 0)
        (void)snprintf(out, 160, "%s.%s.%s", file->section, entry, key);
    else
        (void)snprintf(out, 160, "input.%s", key);
    return out;
}

static const char *name_of(const struct file *file, int32_t number)
{
    const char *name = "";
    for (size_t i = 0; i < file->n_bands; i++)
        if (file->bands[i].index == number)
            name = file->bands[i].name;
    return name;
}

/* Alpha is the opacity of a pixel; any opacity counts as valid. */
static const char *alpha_rule(enum pb_type type)
{
    return type == PB_F32 || type == PB_F64   ? "pixels are valid where it is 0.5 or more"
           : type == PB_I16 || type == PB_I32 ? "pixels are valid where it is 1 or more"
                                              : "pixels are valid where it is not 0";
}

static void note_nodata(struct pb_plan_valid *valid, const struct file *file)
{
    const struct pb_raster_info *info = file->info;
    char number[PB_UNITS_TEXT], key[160];
    if (file->has_nodata && info->complex.kind == PB_COMPLEX_NONE &&
        !pb_nodata_fits(info->type, file->nodata))
        add(valid, file, "%s %s is no value of %s and marks no pixel", key_of(file, "nodata", key),
            pb_units_number_text(file->nodata, number), pb_type_name(info->type));
    for (int32_t i = 0; i < info->n_bands; i++)
        if (info->band[i].nodata_unfit) {
            add(valid, file, "the file's nodata value %s is no value of %s and marks no pixel",
                pb_units_number_text(info->band[i].nodata, number), pb_type_name(info->type));
            return; /* a TIFF has one for all bands */
        }
}

static void note_file(struct pb_plan_valid *valid, const struct file *file)
{
    const struct pb_raster_info *info = file->info;
    char key[160];
    if (info->not_looked_at != NULL)
        add(valid, file, "%s not looked at (input.valid)", info->not_looked_at);
    if (info->data_alpha > 0)
        add(valid, file,
            "band %d is tagged as alpha and read as data, because %s names it %s "
            "(input.valid: mask takes it as alpha)",
            info->data_alpha, key_of(file, "bands", key), name_of(file, info->data_alpha));
    if (info->has_mask && info->alpha_band > 0 && info->type != PB_U8)
        add(valid, file, "alpha band %d is of %s, %s", info->alpha_band, pb_type_name(info->type),
            alpha_rule(info->type));
    note_nodata(valid, file);
}

static void say_by(struct pb_plan_valid *valid, const struct file *scene)
{
    const struct pb_raster_info *info = scene->info;
    char mask[60] = "";
    bool unfit = false;
    bool nodata = info->complex.has_nodata ||
                  (scene->has_nodata && pb_nodata_fits(info->type, scene->nodata));
    for (int32_t i = 0; i < info->n_bands; i++)
        nodata = nodata || info->band[i].has_nodata;
    for (int32_t i = 0; i < info->n_bands; i++)
        unfit = unfit || info->band[i].nodata_unfit;
    if (info->has_mask && info->alpha_band > 0)
        (void)snprintf(mask, sizeof mask, "by the file's alpha band %d", info->alpha_band);
    else if (info->has_mask)
        (void)snprintf(mask, sizeof mask, "by the file's mask");
    (void)snprintf(valid->by, sizeof valid->by, "%s%s", mask,
                   info->has_mask && nodata                       ? " and by nodata values"
                   : info->has_mask                               ? ""
                   : nodata                                       ? "by nodata values"
                   : info->type == PB_F32 || info->type == PB_F64 ? "all pixels but NaN"
                   : unfit
                       ? "all pixels: the file has neither a mask nor a nodata value that counts"
                       : "all pixels: the file has neither a mask nor a nodata value");
}

const char *pb_plan_section(const struct pb_input_config *input,
                            const struct pb_source_config *source)
{
    return source != NULL && !source->of_scene ? "input.sources"
           : input->n_files > 0                ? "input.files"
                                               : "input";
}

void pb_plan_valid(struct pb_plan *plan, const struct pb_plan_request *request)
{
    const struct pb_input_config *input = &request->pipeline->input;
    const struct file scene = {.info = request->info,
                               .section = pb_plan_section(input, NULL),
                               .bands = input->bands,
                               .n_bands = input->n_bands,
                               .has_nodata = input->has_nodata,
                               .nodata = input->nodata};
    plan->work.valid = (struct pb_plan_valid){.by = ""};
    say_by(&plan->work.valid, &scene);
    note_file(&plan->work.valid, &scene);
    for (size_t i = 0; i < request->n_others; i++) {
        const struct pb_plan_other *other = &request->others[i];
        if (other->made_of != PB_MADE_OF_FILE || other->is_absent)
            continue;
        const struct pb_source_config *config = other->config;
        const struct file file = {.info = other->info,
                                  .name = config->name,
                                  .section = pb_plan_section(input, config),
                                  .bands = config->bands,
                                  .n_bands = config->n_bands,
                                  .has_nodata = config->has_nodata,
                                  .nodata = config->nodata};
        note_file(&plan->work.valid, &file);
    }
}

/* --- calibration ------------------------------------------------------------------------------ */

/* Parameters of a step that calibrates; NULL for any other step. */
static const struct pb_calibrate *calibrate_of(const struct pb_step_config *step)
{
    return step->op == pb_op_find("calibrate") ? step->params : NULL;
}

static int check_sensor(const struct pb_calibrate *step, const struct pb_metadata *facts,
                        struct pb_err *err)
{
    size_t length;
    const char *word = pb_key_choice(PB_CALIBRATE_SENSORS, step->sensor, &length);
    if (step->sensor == 0 ||
        (strlen(facts->family->name) == length && memcmp(word, facts->family->name, length) == 0))
        return 0;
    return pb_fail(err, PB_E_INPUT_METADATA_CONFLICT,
                   "calibrate.sensor is %.*s, but the scene's metadata are of %s", (int)length,
                   word, facts->family->name);
}

static const char *as_of(const struct pb_calibrate *step, const char *band)
{
    for (size_t i = 0; i < step->as.n; i++)
        if (step->as.items[i].key != NULL && strcmp(step->as.items[i].key, band) == 0)
            return step->as.items[i].text;
    return NULL;
}

/* Configured solar irradiance of the band; 0 = not configured. */
static double irradiance_of(const struct pb_calibrate *step, const char *band)
{
    for (size_t i = 0; i < step->irradiance.n; i++)
        if (strcmp(step->irradiance.items[i].key, band) == 0)
            return step->irradiance.items[i].num;
    return 0;
}

/* True if an earlier step has replaced the band with calibrated values. */
static bool is_done(const struct pb_plan *plan, size_t step, const char *band)
{
    for (size_t i = 0; i < plan->work.n_calibrated; i++)
        if (plan->work.calibrated[i].step < step &&
            strcmp(plan->work.calibrated[i].band, band) == 0)
            return true;
    return false;
}

/* Gives a band the inputs of a table for columns. */
static int add_columns(struct pb_plan *plan, const struct pb_plan_request *request,
                       const struct pb_raster_info *info, struct pb_calibrated *out,
                       int32_t *tables, struct pb_err *err)
{
    if (info->width != request->info->width || info->height != request->info->height)
        return pb_fail(err, PB_E_PIPELINE_GRID,
                       "calibrate.columns: '%.60s' has %d x %d pixels and the scene %d x %d; the "
                       "table is for bands of the scene's size",
                       out->of, info->width, info->height, request->info->width,
                       request->info->height);
    out->has_columns = true;
    out->rule = (struct pb_calibration_rule){.gain = 1,
                                             .has_tables = true,
                                             .area = plan->work.first_table + *tables,
                                             .noise = plan->work.first_table + *tables + 1};
    *tables += 2;
    plan->work.n_calibrated++;
    return 0;
}

static int add_entry(struct pb_plan *plan, const struct pb_plan_request *request,
                     const struct pb_plan_inputs *in, size_t step, size_t entry, int32_t *tables,
                     struct pb_err *err)
{
    const struct pb_calibrate *of = calibrate_of(&request->pipeline->steps[step]);
    const struct pb_item *item = &of->bands.items[entry];
    struct pb_calibrated *out = &plan->work.calibrated[plan->work.n_calibrated];
    const struct pb_meta_band *band = NULL;
    size_t i = 0;
    while (i < in->n && strcmp(in->input[i].name, item->text) != 0)
        i++;
    if (i == in->n || is_done(plan, step, item->text))
        return pb_fail(err, PB_E_PIPELINE_BAND,
                       i == in->n ? "calibrate: '%.60s' is no band of the scene"
                                  : "calibrate: '%.60s' is calibrated by an earlier step already",
                       item->text);
    if (in->input[i].scale != 1 || in->input[i].offset != 0)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "calibrate: '%.60s' must have its stored values: leave scale and offset of "
                       "the input out",
                       item->text);
    const struct pb_raster_info *info =
        in->file[i] == 0 ? request->info : request->others[in->file[i] - 1].info;
    const struct pb_calibration_input input = {.name = item->text,
                                               .file = request->file_names[in->file[i]],
                                               .number = in->number[i],
                                               .n_bands = info->n_bands,
                                               .width = info->width,
                                               .height = info->height,
                                               .noise = of->noise == 1,
                                               .irradiance = irradiance_of(of, item->text),
                                               .as = as_of(of, item->text)};
    *out = (struct pb_calibrated){.step = step,
                                  .entry = entry,
                                  .to = (enum pb_quantity)of->to,
                                  .irradiance = input.irradiance};
    if (of->columns != NULL) {
        (void)snprintf(out->band, sizeof out->band, "%s", pb_item_band(item));
        (void)snprintf(out->of, sizeof out->of, "%s", item->text);
        return add_columns(plan, request, info, out, tables, err);
    }
    int rc = pb_calibration_of(request->metadata, &input, out->to, &out->rule, &band, err);
    if (rc < 0)
        return rc;
    if (out->rule.has_tables) {
        out->rule.area = plan->work.first_table + (*tables)++;
        out->rule.noise = out->rule.noise < 0 ? -1 : plan->work.first_table + (*tables)++;
    }
    (void)snprintf(out->band, sizeof out->band, "%s", pb_item_band(item));
    (void)snprintf(out->of, sizeof out->of, "%s", band->id);
    plan->work.n_calibrated++;
    return 0;
}

int32_t pb_plan_tables(const struct pb_pipeline_config *pipeline)
{
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_calibrate *step = calibrate_of(&pipeline->steps[i]);
        if (step != NULL && step->columns != NULL)
            n += 2 * step->bands.n;
        else if (step != NULL && pb_calibrate_is_radar(step))
            n += step->bands.n * (step->noise == 1 ? 2 : 1);
    }
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

int32_t pb_plan_cutlines(const struct pb_pipeline_config *pipeline)
{
    int32_t n = 0;
    for (size_t i = 0; i < pipeline->n_steps; i++)
        n += pipeline->steps[i].op == pb_op_find("crop") && pb_crop_cuts(pipeline->steps[i].params);
    return n;
}

static size_t count_entries(const struct pb_pipeline_config *pipeline)
{
    size_t n = 0;
    for (size_t i = 0; i < pipeline->n_steps; i++)
        if (calibrate_of(&pipeline->steps[i]) != NULL)
            n += calibrate_of(&pipeline->steps[i])->bands.n;
    return n;
}

/* True if a step calibrates by the scene's metadata. */
static bool needs_metadata(const struct pb_pipeline_config *pipeline)
{
    bool needs = false;
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_calibrate *step = calibrate_of(&pipeline->steps[i]);
        needs = needs || (step != NULL && step->columns == NULL);
    }
    return needs;
}

int pb_plan_calibrate(struct pb_plan *plan, const struct pb_plan_request *request,
                      const struct pb_plan_inputs *in, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = request->pipeline;
    size_t n = count_entries(pipeline);
    int32_t tables = 0;
    int rc = 0;
    if (n == 0)
        return 0;
    plan->work.calibrated = calloc(n, sizeof *plan->work.calibrated);
    if (plan->work.calibrated == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (request->rules != NULL) {
        plan->work.n_calibrated = request->n_rules < n ? request->n_rules : n;
        memcpy(plan->work.calibrated, request->rules,
               plan->work.n_calibrated * sizeof *plan->work.calibrated);
        return 0;
    }
    if (needs_metadata(pipeline) &&
        (request->metadata == NULL || request->metadata->family == NULL))
        return pb_fail(err, PB_E_INPUT_METADATA_MISSING,
                       "pipeline %s calibrates, and the scene has no metadata", pipeline->name);
    for (size_t s = 0; s < pipeline->n_steps && rc == 0; s++) {
        const struct pb_calibrate *step = calibrate_of(&pipeline->steps[s]);
        rc = step != NULL && step->columns == NULL ? check_sensor(step, request->metadata, err) : 0;
        for (size_t e = 0; step != NULL && e < step->bands.n && rc == 0; e++)
            rc = add_entry(plan, request, in, s, e, &tables, err);
    }
    return rc;
}

static bool find_rule(const void *of, const void *params, size_t entry,
                      struct pb_calibration_rule *out)
{
    const struct pb_plan_rules *rules = of;
    for (size_t i = 0; i < rules->plan->work.n_calibrated; i++) {
        const struct pb_calibrated *c = &rules->plan->work.calibrated[i];
        if (c->entry == entry && c->step < rules->pipeline->n_steps &&
            rules->pipeline->steps[c->step].params == params) {
            *out = c->rule;
            return true;
        }
    }
    return false;
}

void pb_plan_calibrate_facts(const struct pb_plan_rules *rules, struct pb_scene_facts *facts)
{
    facts->calibration = find_rule;
    facts->calibration_of = rules;
}

/* --- digits ----------------------------------------------------------------------------------- */

/* Finds the outputs that are bands of the scene, and the tags of all outputs. */
static void find_scene_bands(struct pb_plan *plan, const struct pb_plan_inputs *in)
{
    const int32_t *origins = pb_chain_origins(plan->work.chain);
    for (size_t i = 0; i < plan->work.outputs.n; i++)
        if (origins[i] >= 0 && in->file[origins[i]] == 0)
            plan->work.outputs.bands[i] = in->number[origins[i]];
    for (size_t i = 0; i < plan->work.outputs.n; i++)
        plan->work.outputs.tags[i] = pb_chain_output_tags(plan->work.chain, i);
}

/* Finds the outputs whose pixels are at their place in a band of the scene. */
static void find_kept(struct pb_plan *plan, const struct pb_plan_inputs *in)
{
    const int32_t *places = pb_chain_places(plan->work.chain);
    const bool *untouched = pb_chain_untouched(plan->work.chain);
    for (size_t i = 0; i < plan->work.outputs.n; i++) {
        if (places[i] < 0 || in->file[places[i]] != 0)
            continue;
        const struct pb_chain_input *input = &in->input[places[i]];
        plan->work.outputs.kept[i] = (struct pb_plane_kept){
            .band = in->number[places[i]],
            .untouched = untouched[i],
            .has_nodata = input->has_nodata,
            .nodata = input->nodata,
        };
    }
}

/* --- how products store outputs --------------------------------------------------------------- */

struct stored {
    bool as_float, whole; /* stored by a product in float32; by one in a type of more digits */
};

static int find_stored(const struct pb_plan *plan, const struct pb_plan_request *request,
                       struct stored *out, struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = request->pipeline;
    const struct pb_product_env env = {.config = request->config,
                                       .pipeline = pipeline,
                                       .band_names = (const char *const *)plan->work.outputs.names,
                                       .n_bands = plan->work.outputs.n,
                                       .n_default = plan->work.outputs.n_default};
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *config = pipeline->products[i];
        const struct pb_product_type *type = pb_product_type(config->kind);
        enum pb_digits digits = type->digits != NULL ? type->digits(config) : PB_DIGITS_SOME;
        uint32_t plane[PB_BANDS_MAX];
        int n = digits != PB_DIGITS_SOME ? pb_product_bands(&env, config, plane, err) : 0;
        if (n < 0)
            return n;
        for (int b = 0; b < n; b++) {
            out[plane[b]].as_float |= digits == PB_DIGITS_FLOAT;
            out[plane[b]].whole |= digits == PB_DIGITS_ALL;
        }
    }
    return 0;
}

/* --- bands with more digits than float32 ------------------------------------------------------ */

static struct pb_plan_wide wide_of(const struct pb_plan *plan, const struct pb_plan_inputs *in,
                                   uint32_t input)
{
    const struct pb_chain_input *band = &in->input[input];
    const struct pb_plan_source *source = &plan->work.source[in->file[input]];
    const struct pb_geometry grid = pb_chain_geometry(plan->work.chain);
    const struct pb_map shift = pb_map_between(&grid.map, &in->source[source->window].map);
    struct pb_plan_wide wide = {.window = source->window,
                                .plane = (uint32_t)source->plane,
                                .type = band->type,
                                .has_nodata = band->has_nodata,
                                .nodata = band->nodata};
    for (size_t i = 0; i < source->n_bands && source->bands[i] != in->number[input]; i++)
        wide.plane++;
    wide.shifts = grid.frame == 0 && in->source[source->window].placed && pb_map_is_shift(&shift);
    if (wide.shifts) {
        wide.dx = (int32_t)shift.offset_x;
        wide.dy = (int32_t)shift.offset_y;
    }
    (void)snprintf(wide.name, sizeof wide.name, "%s", band->name);
    return wide;
}

/* True if output i can keep all digits of the band. */
static bool keeps(const struct pb_plan *plan, const struct pb_plan_wide *wide, size_t i,
                  uint32_t input, const struct stored *stored)
{
    return stored[i].whole && wide->shifts &&
           pb_chain_places(plan->work.chain)[i] == (int32_t)input;
}

/* Kind of pixels to count in a band: rounded integers if a step or product uses them rounded;
 * rounded doubles if a product of doubles uses them, because everything else is float32 anyway. */
static enum pb_wide_count count_of(const struct pb_plan *plan, const struct pb_plan_wide *wide,
                                   uint32_t input, const struct stored *stored)
{
    const int32_t *origins = pb_chain_origins(plan->work.chain);
    bool kept = false, rounded = wide->type != PB_F64 && pb_chain_computed(plan->work.chain)[input];
    for (size_t i = 0; i < plan->work.outputs.n; i++) {
        if (origins[i] != (int32_t)input)
            continue;
        bool keep = keeps(plan, wide, i, input, stored);
        kept = kept || keep;
        rounded =
            rounded || (stored[i].whole && !keep) || (stored[i].as_float && wide->type != PB_F64);
    }
    return rounded ? PB_WIDE_ROUNDED : kept ? PB_WIDE_LOST : PB_WIDE_NOT;
}

/* Adds residual planes for the outputs that copy band `input` in place. */
static bool add_rests(struct pb_plan *plan, const struct pb_plan_wide *wide, uint32_t input,
                      const struct stored *stored)
{
    bool any = false;
    for (size_t i = 0; i < plan->work.outputs.n; i++) {
        if (!keeps(plan, wide, i, input, stored))
            continue;
        plan->work.outputs.rest[i] =
            (struct pb_plane_rest){plan->work.outputs.n_rest, pb_rest_planes(wide->type)};
        plan->work.outputs.rest_of[i] = (uint32_t)plan->work.n_wide;
        plan->work.outputs.n_rest += plan->work.outputs.rest[i].n;
        any = true;
    }
    return any;
}

static void find_wide(struct pb_plan *plan, const struct pb_plan_inputs *in,
                      const struct stored *stored)
{
    const uint32_t *used;
    size_t n = pb_chain_used(plan->work.chain, &used);
    for (size_t i = 0; i < n; i++) {
        if (pb_rest_planes(in->input[used[i]].type) == 0)
            continue;
        struct pb_plan_wide wide = wide_of(plan, in, used[i]);
        wide.count = count_of(plan, &wide, used[i], stored);
        bool has_rests = add_rests(plan, &wide, used[i], stored);
        if (has_rests || wide.count != PB_WIDE_NOT)
            plan->work.wide[plan->work.n_wide++] = wide;
    }
}

/* Finds bands of files in which an infinity is not a nodata value. Other inputs have no name. */
static void find_floats(struct pb_plan *plan, const struct pb_plan_inputs *in)
{
    const uint32_t *used;
    size_t n = pb_chain_used(plan->work.chain, &used);
    for (size_t i = 0; i < n; i++) {
        const struct pb_chain_input *band = &in->input[used[i]];
        if (band->name[0] != '\0' && (band->type == PB_F32 || band->type == PB_F64))
            plan->work.floats[plan->work.n_floats++] = wide_of(plan, in, used[i]);
    }
}

int pb_plan_digits(struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_inputs *in, struct pb_err *err)
{
    size_t n = plan->work.outputs.n;
    struct stored *stored = calloc(n + 1, sizeof *stored);
    plan->work.outputs.bands = calloc(n + 1, sizeof *plan->work.outputs.bands);
    plan->work.outputs.tags = calloc(n + 1, sizeof *plan->work.outputs.tags);
    plan->work.outputs.kept = calloc(n + 1, sizeof *plan->work.outputs.kept);
    plan->work.wide = calloc(in->n + 1, sizeof *plan->work.wide);
    plan->work.floats = calloc(in->n + 1, sizeof *plan->work.floats);
    plan->work.outputs.rest = calloc(n + 1, sizeof *plan->work.outputs.rest);
    plan->work.outputs.rest_of = calloc(n + 1, sizeof *plan->work.outputs.rest_of);
    const bool room = stored && plan->work.outputs.bands && plan->work.outputs.tags &&
                      plan->work.outputs.kept && plan->work.wide && plan->work.floats &&
                      plan->work.outputs.rest && plan->work.outputs.rest_of;
    int rc = room ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (rc == 0) {
        find_scene_bands(plan, in);
        find_kept(plan, in);
        rc = find_stored(plan, request, stored, err);
    }
    if (rc == 0)
        find_wide(plan, in, stored);
    if (rc == 0)
        find_floats(plan, in);
    free(stored);
    return rc;
}

/* --- memory ----------------------------------------------------------------------------------- */

uint32_t pb_plan_rest_slots(const struct pb_plan *plan)
{
    const uint32_t slots = plan->layout.by_workers ? plan->layout.workers
                                                   : plan->layout.in_slots + plan->layout.out_slots;
    return plan->work.outputs.n_rest > 0 ? slots : 0;
}

size_t pb_plan_rest_px(const struct pb_plan *plan)
{
    const struct pb_grid *g = &plan->layout.grid;
    int32_t w = g->side_px < g->image_w ? g->side_px : g->image_w;
    int32_t h = g->side_px < g->image_h ? g->side_px : g->image_h;
    const struct pb_tile largest = {.core = {0, 0, w, h}};
    return plan->work.outputs.n_rest * pb_tile_out_px(&largest);
}

uint64_t pb_plan_rest_bytes(const struct pb_plan *plan)
{
    return (uint64_t)pb_plan_rest_slots(plan) * pb_plan_rest_px(plan) * sizeof(float);
}
