/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/work.h"
#include "config/config.h"
#include "config/input_config.h"
#include "config/pipeline_config.h"
#include "config/wanted_bands.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/images/image_store.h"
#include "pipeline/plan/layout.h"
#include "pipeline/plan/ways.h"
#include "pipeline/plan/values.h"
#include "pipeline/raster/ground.h"

#include "kernels/expr/mask_presets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- limits of grids -------------------------------------------------------------------------- */

static uint64_t pixels_of(const struct pb_raster_info *info)
{
    return (uint64_t)info->width * (uint64_t)info->height;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Files of input.sources are the user's own, therefore a grid of the size of such a file is always
 * allowed; but their pixels do not count as the scene's. */
struct pb_grid_limits pb_plan_grid_limits(const struct pb_plan_request *request)
{
    const struct pb_limits *limits = &request->config->limits;
    uint64_t scene = pixels_of(request->info), largest = scene;
    for (size_t i = 0; i < request->n_others; i++) {
        const struct pb_plan_other *other = &request->others[i];
        if (other->made_of != PB_MADE_OF_FILE || other->is_absent)
            continue;
        largest = most(largest, pixels_of(other->info));
        scene += other->config->of_scene ? pixels_of(other->info) : 0;
    }
    const double grown = (double)scene * (double)limits->max_growth;
    return (struct pb_grid_limits){
        .side_px = limits->max_side_px,
        .pixels = limits->max_pixels,
        .growth_pixels = most(grown < (double)INT64_MAX ? (uint64_t)grown : UINT64_MAX,
                              most(largest, PB_GROWTH_FREE_PX)),
        .growth = limits->max_growth};
}

int pb_plan_tiles_fit(const struct pb_plan_request *request, size_t n, uint64_t pixels,
                      struct pb_err *err)
{
    const struct pb_grid_limits limits = pb_plan_grid_limits(request);
    if (pixels <= limits.growth_pixels)
        return 0;
    return pb_fail(err, PB_E_OUTPUT_LIMIT,
                   "%zu tiles would have %llu pixels together, more than %llu times as many as the "
                   "scene (limits.max_growth); check the scene's georeferencing and the size of "
                   "its pixels, or name the tiles that are wanted",
                   n, (unsigned long long)pixels, (unsigned long long)limits.growth);
}

/* Settings for reading one file: `input` or one of its sources. */
struct reading {
    const char *key; /* for messages */
    const struct pb_band_config *bands;
    size_t n_bands;
    double scale, offset, nodata;
    bool has_nodata;
    int32_t bring; /* enum pb_bring */
    bool is_absent;
    const char *file; /* pattern of the file's name; NULL if absent */
};

/* True if the mean of two pixels of the band may be meaningless. The process that owns a GPU
 * computes the same, from the configuration and the flags of the info. */
static bool is_class(const struct reading *r, const struct pb_raster_info *info, const char *name,
                     const struct pb_raster_band *band)
{
    return !pb_type_is_float(info->type) &&
           (band->is_class || (name != NULL && pb_mask_is_quality_band(name)) ||
            (r->file != NULL && pb_mask_is_quality_file(r->file)));
}

static struct pb_band_tags tags_of(const struct pb_raster_info *info, int32_t number)
{
    const struct pb_raster_band *band = &info->band[number - 1];
    return (struct pb_band_tags){.scale = band->scale,
                                 .offset = band->offset,
                                 .unit = band->unit,
                                 .color = band->color,
                                 .colours = number == 1 ? info->palette : NULL,
                                 .n_colours = number == 1 ? info->n_palette : 0};
}

static int add_band(const struct reading *r, const struct pb_raster_info *info, const char *name,
                    int32_t number, struct pb_plan_inputs *in, struct pb_err *err)
{
    const struct pb_raster_band *band = &info->band[number - 1];
    bool by_value = info->complex.kind == PB_COMPLEX_NONE; /* else nodata is NaN already */
    if (in->n == PB_BANDS_MAX)
        return pb_fail(err, PB_E_PIPELINE_BAND, "all sources together have more than %d bands",
                       PB_BANDS_MAX);
    if (band->nodata_unreadable && !r->has_nodata)
        return pb_fail(err, PB_E_INPUT_GEOREFERENCE,
                       "the file's nodata tag is not a number, so which pixels are valid is not "
                       "known; name the value with %s.nodata",
                       r->key);
    (void)snprintf(in->own_name[in->n], sizeof in->own_name[in->n], "B%d", number);
    in->number[in->n] = number;
    in->file[in->n] = (uint32_t)in->n_files;
    in->input[in->n] = (struct pb_chain_input){
        .name = name != NULL ? name : in->own_name[in->n],
        .type = info->type,
        .has_nodata = by_value && (r->has_nodata || band->has_nodata),
        .nodata = r->has_nodata ? r->nodata : band->nodata,
        .scale = r->scale,
        .offset = r->offset,
        .bring = r->bring,
        .is_absent = r->is_absent,
        .source = in->window[in->n_files],
        .is_class = is_class(r, info, name, band),
        .tags = tags_of(info, number),
    };
    in->n++;
    return 0;
}

static int add_bands(const struct reading *r, const struct pb_pipeline_config *pipeline,
                     const struct pb_raster_info *info, struct pb_plan_inputs *in,
                     struct pb_err *err)
{
    size_t n = r->n_bands > 0 ? r->n_bands : (size_t)info->n_bands;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        int32_t number = r->n_bands > 0 ? r->bands[i].index : (int32_t)i + 1;
        if (number > info->n_bands)
            return pb_fail(err, PB_E_PIPELINE_BAND,
                           "pipeline %s calls band %d of the file %s (%s.bands), but the file has "
                           "%d band%s",
                           pipeline->name, number, r->bands[i].name, r->key, info->n_bands,
                           info->n_bands == 1 ? "" : "s");
        rc = add_band(r, info, r->n_bands > 0 ? r->bands[i].name : NULL, number, in, err);
    }
    return rc;
}

/* True if a step decides from data which part of a tile is read. */
static bool has_gate(const struct pb_pipeline_config *pipeline)
{
    bool found = false;
    for (size_t i = 0; i < pipeline->n_steps && !found; i++) {
        const struct pb_step_config *step = &pipeline->steps[i];
        struct pb_op_exchange exchange = {.pattern = NULL};
        if (step->op->exchange != NULL)
            step->op->exchange(step->params, &exchange);
        found = exchange.by_data;
    }
    return found;
}

static bool is_alike(const struct pb_chain_source *a, const struct pb_chain_source *b)
{
    return a->w == b->w && a->h == b->h && a->placed && b->placed && pb_map_equal(&a->map, &b->map);
}

/* Source of the chain to which a file other than the first belongs: one of equal grid and type, or
 * a new one. A source has one mask at most, and a gate needs separate files. */
static int place_file(const struct pb_plan_request *request, const struct pb_raster_info *info,
                      const struct pb_chain_source *grid, struct pb_plan_inputs *in,
                      struct pb_err *err)
{
    bool apart = info->has_mask || has_gate(request->pipeline);
    uint32_t window = 0;
    while (window < in->n_sources &&
           (apart || !is_alike(&in->source[window], grid) || in->first[window]->has_mask ||
            in->first[window]->type != info->type))
        window++;
    if (window == PB_SOURCES_MAX)
        return pb_fail(err, PB_E_PIPELINE_BAND,
                       "the files are of more than %d kinds: files of one grid, one type and no "
                       "mask are one kind; with a mask, or with a gate among the steps, each is "
                       "its own",
                       PB_SOURCES_MAX);
    if (window == in->n_sources) {
        in->first[window] = info;
        in->source[in->n_sources++] = *grid;
    }
    in->window[in->n_files] = window;
    return 0;
}

/* Lists the nameless inputs for steps that calibrate or cut. */
static int list_made(struct pb_plan *plan, const struct pb_plan_request *request,
                     const struct pb_plan_other *o, struct pb_plan_inputs *in, struct pb_err *err)
{
    const struct pb_chain_source grid = {
        .w = o->info->width, .h = o->info->height, .placed = true, .map = o->map};
    const struct reading tables = {.key = "input", .scale = 1};
    const size_t first = in->n;
    int rc = place_file(request, o->info, &grid, in, err);
    if (o->made_of == PB_MADE_OF_TABLES)
        plan->work.first_table = (int32_t)first;
    else
        plan->work.first_cutline = (int32_t)first;
    rc = rc ? rc : add_bands(&tables, request->pipeline, o->info, in, err);
    for (size_t i = first; i < in->n; i++)
        in->input[i].name = "";
    in->n_files++;
    return rc;
}

static int list_other(const struct pb_plan_request *request, const struct pb_plan_other *o,
                      struct pb_plan_inputs *in, struct pb_err *err)
{
    char key[96];
    const char *section = pb_plan_section(&request->pipeline->input, o->config);
    if (strcmp(section, "input") == 0)
        (void)snprintf(key, sizeof key, "%s", section);
    else
        (void)snprintf(key, sizeof key, "%s.%s", section, o->config->name);
    const struct reading other = {key,
                                  o->config->bands,
                                  o->config->n_bands,
                                  o->config->scale,
                                  o->config->offset,
                                  o->config->nodata,
                                  o->config->has_nodata,
                                  o->config->resample,
                                  o->is_absent,
                                  o->config->file};
    const struct pb_chain_source grid = {
        .w = o->info->width, .h = o->info->height, .placed = o->placed, .map = o->map};
    int rc = o->is_absent ? 0 : place_file(request, o->info, &grid, in, err);
    if (o->is_absent)
        in->window[in->n_files] = 0; /* it is never read */
    rc = rc ? rc : add_bands(&other, request->pipeline, o->info, in, err);
    if (o->config->of_scene)
        in->n_scene = in->n;
    in->n_files++;
    return rc;
}

static int list_inputs(struct pb_plan *plan, const struct pb_plan_request *request,
                       struct pb_plan_inputs *in, struct pb_err *err)
{
    const struct pb_input_config *c = &request->pipeline->input;
    const struct reading scene = {pb_plan_section(c, NULL),
                                  c->bands,
                                  c->n_bands,
                                  c->scale,
                                  c->offset,
                                  c->nodata,
                                  c->has_nodata,
                                  PB_BRING_NO,
                                  false,
                                  c->file};
    int rc = add_bands(&scene, request->pipeline, request->info, in, err);
    in->n_scene = in->n;
    in->n_files = 1;
    in->first[0] = request->info;
    in->source[in->n_sources++] = (struct pb_chain_source){.w = request->info->width,
                                                           .h = request->info->height,
                                                           .placed = true,
                                                           .map = pb_map_identity()};
    for (size_t i = 0; rc == 0 && i < request->n_others; i++)
        rc = request->others[i].made_of == PB_MADE_OF_FILE
                 ? list_other(request, &request->others[i], in, err)
                 : list_made(plan, request, &request->others[i], in, err);
    return rc;
}

static int wanted_bands(const struct pb_pipeline_config *pipeline, const struct pb_plan_inputs *in,
                        struct pb_wanted_bands *wanted, struct pb_err *err)
{
    const char *inputs[PB_BANDS_MAX];
    for (size_t i = 0; i < in->n_scene; i++)
        inputs[i] = in->input[i].name;
    if (pb_wanted_bands(pipeline, inputs, in->n_scene, wanted) < 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "the products want more than %d bands",
                       PB_WANTED_BANDS_MAX);
    return 0;
}

/* Errors in a pipeline in one message, as many as fit. */
struct mistakes {
    const struct pb_pipeline_config *pipeline;
    enum pb_code code; /* code of the first */
    size_t n_left_out;
    char text[500];
};

static enum pb_code code_of(const struct pb_diag *diag, const struct pb_pipeline_config *pipeline)
{
    if (diag->step >= pipeline->n_steps)
        return PB_E_PIPELINE_PRODUCT;
    return diag->kind == PB_DIAG_EXPRESSION ? PB_E_PIPELINE_EXPRESSION
           : diag->kind == PB_DIAG_INDEX    ? PB_E_PIPELINE_INDEX
           : diag->kind == PB_DIAG_CONSTANT ? PB_E_PIPELINE_INDEX
           : diag->kind == PB_DIAG_OUTSIDE  ? PB_E_INPUT_OUTSIDE
           : diag->kind == PB_DIAG_LIMIT    ? PB_E_OUTPUT_LIMIT
           : diag->kind == PB_DIAG_PLACE    ? PB_E_INPUT_PLACE
           : diag->kind == PB_DIAG_GRID     ? PB_E_PIPELINE_GRID
           : diag->kind == PB_DIAG_SCALE    ? PB_E_INPUT_SCALE
                                            : PB_E_PIPELINE_BAND;
}

static void add_mistake(void *to, const struct pb_diag *diag)
{
    struct mistakes *m = to;
    char text[sizeof diag->msg + 80];
    size_t used = strlen(m->text);
    if (diag->step >= m->pipeline->n_steps)
        (void)snprintf(text, sizeof text, ": a product wants what no step makes: %s", diag->msg);
    else
        (void)snprintf(text, sizeof text, ", step %zu (%s): %s", diag->step + 1,
                       m->pipeline->steps[diag->step].op->name, diag->msg);
    if (strstr(m->text, text + 1) != NULL)
        return; /* the expression has the name twice */
    /* An error of the pipeline has precedence over a scene outside its area. */
    if (used == 0 || m->code == PB_E_INPUT_OUTSIDE)
        m->code = code_of(diag, m->pipeline);
    if (used == 0 || used + strlen(text) + sizeof "; also" < sizeof m->text)
        (void)snprintf(m->text + used, sizeof m->text - used, "%s%s", used ? "; also" : "",
                       used ? text + 1 : text);
    else
        m->n_left_out++;
}

static int fail_with(struct pb_err *err, const struct mistakes *m)
{
    char more[40] = "";
    if (m->n_left_out)
        (void)snprintf(more, sizeof more, "; and %zu more", m->n_left_out);
    return pb_fail(err, m->code, "pipeline %s%s%s", m->pipeline->name, m->text, more);
}

static struct pb_scene_facts facts_of(const struct pb_raster_info *info)
{
    struct pb_scene_facts facts = {.has_transform = info->has_transform, .unit = info->unit};
    memcpy(facts.transform, info->transform, sizeof facts.transform);
    return facts;
}

struct area_facts {
    const struct pb_plan *plan;
    const struct pb_plan_request *request;
};

/* params: parameters of a step of the pipeline. */
static bool find_area(const void *of, const void *params, struct pb_area *out)
{
    const struct area_facts *facts = of;
    const struct pb_plan_request *request = facts->request;
    for (size_t i = 0; i < request->n_areas; i++)
        if (request->areas[i].step < request->pipeline->n_steps &&
            request->pipeline->steps[request->areas[i].step].params == params) {
            *out = request->areas[i].area;
            out->cutline += facts->plan->work.first_cutline;
            return true;
        }
    return false;
}

static int compile(struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_inputs *in, const struct pb_wanted_bands *wanted,
                   struct pb_err *err)
{
    const struct pb_pipeline_config *pipeline = request->pipeline;
    const struct pb_plan_rules rules = {plan, pipeline};
    struct pb_scene_facts facts = facts_of(request->info);
    const struct area_facts areas = {plan, request};
    pb_plan_calibrate_facts(&rules, &facts);
    facts.area = find_area;
    facts.area_of = &areas;
    facts.tile = request->tile;
    const struct pb_grid_limits limits = pb_plan_grid_limits(request);
    facts.limits = &limits;
    struct pb_plan_ways_made made;
    const struct pb_way_finder ways = request->ways != NULL
                                          ? pb_plan_ways_take(request->ways)
                                          : pb_plan_ways_make(&made, plan, request, in);
    facts.ways = request->raster != NULL || request->ways != NULL ? &ways : NULL;
    struct pb_chain_step *steps = calloc(pipeline->n_steps + 1, sizeof *steps);
    if (steps == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    for (size_t i = 0; i < pipeline->n_steps; i++)
        steps[i] = (struct pb_chain_step){pipeline->steps[i].op, pipeline->steps[i].params};
    struct pb_chain_spec spec = {.inputs = in->input,
                                 .n_inputs = in->n,
                                 .steps = steps,
                                 .n_steps = pipeline->n_steps,
                                 .outputs = wanted->name,
                                 .n_outputs = wanted->n,
                                 .sources = in->source,
                                 .n_sources = in->n_sources,
                                 .scene = &facts};
    const char *class_bands[PB_BANDS_MAX];
    spec.class_bands = class_bands;
    spec.n_class_bands = pb_class_bands(pipeline, class_bands);
    struct mistakes mistakes = {.pipeline = pipeline};
    int rc = pb_chain_build(&spec, add_mistake, &mistakes, &plan->work.chain);
    free(steps);
    if (rc == -ENOMEM)
        return pb_fail(err, PB_E_MEMORY, "out of memory while compiling the steps");
    plan->work.outputs.n_default = wanted->n_default;
    if (rc < 0 && request->heights != NULL && request->heights->lacks.area.w > 0)
        return pb_fail(err, PB_E_SYSTEM, "the heights of the ground have not been read");
    if (rc < 0)
        return fail_with(err, &mistakes);
    const struct pb_ground *ground = pb_chain_ground(plan->work.chain);
    const struct pb_geometry grid = pb_chain_geometry(plan->work.chain);
    return ground != NULL && request->ways == NULL
               ? pb_raster_placed(ground, grid.w, grid.h, err, &plan->work.placed)
               : 0;
}

/* Copies the facts of the sources, of which whole images are the last. */
static int copy_info(struct pb_plan *plan, const struct pb_plan_request *request, size_t n,
                     struct pb_err *err)
{
    plan->work.info = calloc(n, sizeof *plan->work.info);
    if (plan->work.info == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    plan->work.info[0] = *request->info;
    for (size_t i = 0; i < request->n_others; i++)
        plan->work.info[1 + i] = *request->others[i].info;
    const struct pb_chain_image *image;
    (void)pb_chain_images(plan->work.chain, &image);
    for (size_t i = 0; i < plan->work.n_images; i++) {
        const struct pb_raster_made made = {
            .width = image[i].grid.w, .height = image[i].grid.h, .n_bands = 1, .type = PB_F32};
        pb_raster_made_info(&made, &plan->work.info[plan->work.first_image + i]);
    }
    return 0;
}

/* Sets the grid of a pass, and the bands to read from each file, in the order of the chain's
 * inputs, in which those of a file follow each other. */
static void set_sources(struct pb_plan *plan, const struct pb_plan_request *request,
                        const struct pb_plan_inputs *in)
{
    const uint32_t *used;
    size_t n = pb_chain_used(plan->work.chain, &used), planes[PB_SOURCES_MAX] = {0};
    plan->work.geometry = pb_chain_geometry(plan->work.chain);
    plan->work.halo = pb_chain_keeps_grid(plan->work.chain) ? pb_chain_halo(plan->work.chain) : 0;
    pb_plan_valid(plan, request);
    plan->work.complex = plan->work.info[0].complex;
    plan->work.n_sources = in->n_files;
    plan->work.n_windows = in->n_sources;
    for (size_t i = 0; i < in->n_files; i++) {
        const struct pb_raster_info *info = &plan->work.info[i];
        plan->work.source[i] = (struct pb_plan_source){
            .window = in->window[i], .type = info->type, .has_mask = info->has_mask};
    }
    for (size_t i = 0; i < n; i++) {
        struct pb_plan_source *source = &plan->work.source[in->file[used[i]]];
        if (source->n_bands == 0)
            source->plane = planes[source->window];
        source->bands[source->n_bands++] = in->number[used[i]];
        planes[source->window]++;
    }
    for (uint32_t i = 0; i < plan->work.n_sources; i++)
        pb_plan_gate_split(plan, i, &plan->work.info[i]);
}

/* Plans the passes that the chain needs before it. */
static int add_earlier(struct pb_plan *plan, const struct pb_plan_request *request,
                       const struct pb_plan_inputs *in, struct pb_err *err)
{
    size_t n = pb_chain_earlier_count(plan->work.chain);
    plan->work.warp = pb_chain_warp(plan->work.chain);
    plan->work.has_far_ways = request->remote && request->cuda && !pb_plan_ways_are_sound(plan);
    plan->earlier = calloc(n + 1, sizeof(struct pb_plan *));
    for (; plan->earlier != NULL && plan->n_earlier < n; plan->n_earlier++) {
        struct pb_plan *pass = calloc(1, sizeof *pass);
        if (pass == NULL)
            break;
        pass->work.chain = pb_chain_earlier(plan->work.chain, plan->n_earlier);
        pass->is_earlier = true;
        pass->work.info = plan->work.info;
        pass->work.first_image = plan->work.first_image;
        pass->work.n_images = plan->work.n_images;
        pass->work.ways = plan->work.ways;
        pass->work.n_ways = plan->work.n_ways;
        pass->work.warp = plan->work.warp;
        pass->work.has_far_ways = plan->work.has_far_ways;
        pass->work.outputs.n = pb_chain_output_count(pass->work.chain);
        set_sources(pass, request, in);
        pass->next = plan;
        if (plan->n_earlier > 0)
            plan->earlier[plan->n_earlier - 1]->next = pass;
        plan->earlier[plan->n_earlier] = pass;
    }
    return plan->earlier != NULL && plan->n_earlier == n
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
}

/* Adds the whole images after the other inputs, each in a source of its own. */
static int list_images(struct pb_plan *plan, struct pb_plan_inputs *in, struct pb_err *err)
{
    const struct pb_chain_image *images;
    size_t n = pb_chain_images(plan->work.chain, &images);
    if (in->n_files + n > PB_FILES_MAX)
        return pb_fail(err, PB_E_PIPELINE_BAND,
                       "a pipeline reads at most %d files, the bands that it sieves among them, "
                       "and this one %zu",
                       PB_FILES_MAX, in->n_files + n);
    plan->work.first_image = (uint32_t)in->n_files;
    plan->work.n_images = n;
    for (size_t i = 0; i < n; i++) {
        in->input[in->n] = (struct pb_chain_input){
            .name = "", .type = PB_F32, .scale = 1, .source = images[i].source};
        in->number[in->n] = 1;
        in->file[in->n++] = (uint32_t)in->n_files;
        in->source[images[i].source] = (struct pb_chain_source){.w = images[i].grid.w,
                                                                .h = images[i].grid.h,
                                                                .placed = true,
                                                                .map = images[i].grid.map};
        in->window[in->n_files++] = images[i].source;
        in->n_sources++;
    }
    return 0;
}

static int copy_names(struct pb_plan *plan, const struct pb_wanted_bands *wanted,
                      struct pb_err *err)
{
    plan->work.outputs.names = calloc(wanted->n, sizeof *plan->work.outputs.names);
    for (size_t i = 0; plan->work.outputs.names != NULL && i < wanted->n; i++) {
        plan->work.outputs.names[i] = strdup(wanted->name[i]);
        if (plan->work.outputs.names[i] == NULL)
            break;
        plan->work.outputs.n = i + 1;
    }
    return plan->work.outputs.n == wanted->n
               ? 0
               : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
}

int pb_plan_bands(struct pb_plan *plan, const struct pb_plan_request *request, struct pb_err *err)
{
    struct pb_wanted_bands *wanted = calloc(1, sizeof *wanted);
    struct pb_plan_inputs *in = calloc(1, sizeof *in);
    int rc = wanted && in ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    if (rc == 0)
        rc = list_inputs(plan, request, in, err);
    if (rc == 0)
        rc = wanted_bands(request->pipeline, in, wanted, err);
    if (rc == 0)
        rc = pb_plan_calibrate(plan, request, in, err);
    if (rc == 0)
        rc = compile(plan, request, in, wanted, err);
    if (rc == 0)
        rc = copy_names(plan, wanted, err);
    if (rc == 0)
        rc = list_images(plan, in, err);
    if (rc == 0)
        rc = copy_info(plan, request, in->n_files, err);
    if (rc == 0) {
        set_sources(plan, request, in);
        rc = pb_plan_digits(plan, request, in, err);
    }
    if (rc == 0)
        rc = add_earlier(plan, request, in, err);
    free(in);
    free(wanted);
    return rc;
}

/* --- whole images ----------------------------------------------------------------------------- */

uint64_t pb_plan_image_bytes(const struct pb_plan *pass)
{
    const struct pb_grid *g = &pass->layout.grid;
    const struct pb_chain_image *images;
    const uint64_t n = pass->is_earlier ? pb_chain_images(pass->work.chain, &images) : 0;
    const int32_t side = pb_areas_side(g->side_px);
    const uint64_t table = pb_areas_bytes(g->image_w, g->image_h, side);
    const uint64_t thread = pb_areas_scratch_bytes(g->image_w, g->image_h, side) +
                            (uint64_t)side * (uint64_t)side * sizeof(float);
    if (n == 0)
        return 0;
    if (table == UINT64_MAX)
        return UINT64_MAX;
    return n * (table + pb_image_store_bytes(pb_plan_image_cells(pass))) +
           pb_plan_sink_workers(pass) * thread;
}
