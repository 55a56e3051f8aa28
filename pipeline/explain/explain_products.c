/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Products, their place, and its current content. */
#include "config/output/output_path.h"
#include "pipeline/plan/describe.h"
#include "config/pipeline_config.h"
#include "pipeline/explain/explain_parts.h"
#include "pipeline/publish/publish_parents.h"
#include "pipeline/publish/publish_place.h"
#include "pipeline/scene/scene.h"
#include "pipeline/scene/scene_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void explain_product(const struct pb_run_view *view, size_t i, struct pb_json *json)
{
    const struct pb_product_env *env = view->env;
    const struct pb_product_config *config = env->pipeline->products[i];
    const struct pb_product_type *type = pb_product_type(config->kind);
    char file[300];
    pb_product_file(env, config, file, sizeof file);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", config->kind->section.name);
    pb_json_string(json, "name", config->name);
    pb_json_string(json, "file", file);
    if (!config->kind->describes_others) {
        pb_json_array(json, "bands");
        for (size_t b = 0; b < pb_product_band_count(env, config); b++)
            pb_json_string(json, NULL, pb_product_band_name(env, config, b));
        pb_json_end(json);
    }
    if (type->explain != NULL)
        type->explain(env, config, json);
    if (view->plan->engine.cuda && type->tile != NULL && i < PB_OUT_PRODUCTS) {
        const struct pb_plan_out *out = &view->plan->engine.out;
        char why[200] = "";
        if (out->why[i] != NULL)
            pb_plan_reason(out->why[i], out->why_bytes, why, sizeof why);
        pb_json_string(json, "encoded_on", out->why[i] == NULL ? "device" : "host");
        pb_json_string(json, "encoded_on_why", out->why[i] != NULL ? why : NULL);
    }
    pb_json_end(json);
}

static struct pb_input_id identity_of(const struct pb_run_view *view)
{
    const struct pb_run_options *o = view->options;
    const struct pb_raster_info *info = view->env->info;
    struct pb_input_id id = {.bytes = 0};
    const struct pb_scene_files *files = pb_scene_several(o->input);
    if (files != NULL)
        pb_input_id_set(&id, o->name ? o->name : files->folder, files->bytes, files->mtime_ns);
    else
        pb_input_id_set(&id, o->name ? o->name : o->input->path, info->file_bytes,
                        info->file_mtime_ns);
    return id;
}

/* Describes the content of the selected place. */
static const char *there(int base_fd, const char *place, const struct pb_place_wanted *wanted,
                         bool depends)
{
    struct pb_place_look look;
    if (depends)
        return "alike";
    if (pb_place_look(base_fd, place, wanted, &look) != 0)
        return "unknown";
    if (look.scene_fd >= 0)
        (void)close(look.scene_fd);
    return look.state == PB_PLACE_FREE    ? "nothing"
           : look.state == PB_PLACE_HOLDS ? "products"
                                          : "other pipelines";
}

/* Lists the input's files, without reading them; *out is empty if the input is one file. */
static int find_files(const struct pb_run_view *view, const char *name, struct pb_err *err,
                      struct pb_scene_manifest *out)
{
    const struct pb_run_options *o = view->options;
    const struct pb_scene_inputs inputs = {.config = o->config,
                                           .pipeline = o->pipeline,
                                           .name = view->env->facts.scene,
                                           .delivered = name,
                                           .scene = o->input};
    *out = (struct pb_scene_manifest){.n_roots = 0};
    return pb_scene_several(o->input) != NULL ? pb_scene_inputs_sum(&inputs, err, out, NULL) : 0;
}

/* Finds the place of the products by the rules of publish.h, with an unknown checksum of the
 * input. */
static int explain_place(const struct pb_run_view *view, const char *products, struct pb_json *json,
                         struct pb_err *err)
{
    static const char *const exists[] = {"refuse", "replace", "version"};
    const struct pb_output_config *output = &view->options->pipeline->output;
    const struct pb_input_id input = identity_of(view);
    struct pb_output_place place;
    enum pb_checksum needs;
    char chosen[256], shown[PB_OUTPUT_PATH_BYTES + 4096];
    struct pb_scene_manifest files = {.n_roots = 0};
    int rc = pb_output_path_expand(output->path, &view->env->facts, err, &place);
    rc = rc ? rc : find_files(view, input.name, err, &files);
    if (rc < 0)
        return rc;
    (void)snprintf(shown, sizeof shown, "%s%s%s", products, place.parents[0] ? "/" : "",
                   place.parents);
    const struct pb_place_wanted wanted = {
        .shown = shown,
        .scene = place.scene,
        .inner = place.inner,
        .pipeline = view->options->pipeline->name,
        .input = &input,
        .checksum = output->checksum,
        .input_path = view->options->input->path,
        .existing = output->exists,
        .files = pb_scene_several(view->options->input) != NULL ? &files : NULL,
        .set = view->options->pipeline->input.group != NULL ? pb_scene_several(view->options->input)
                                                            : NULL,
        .is_open = view->options->pipeline->input.complete.reopen_ms > 0};
    int fd = open(products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int base_fd = fd < 0 ? -1 : pb_publish_parents(fd, place.parents, false, 0);
    rc = pb_place_choose(base_fd, &wanted, err, chosen, &needs);
    const char *found = rc < 0 ? "another input" : there(base_fd, chosen, &wanted, rc == 1);
    if (base_fd >= 0)
        (void)close(base_fd);
    if (fd >= 0)
        (void)close(fd);
    pb_scene_manifest_fini(&files);
    size_t used = strlen(shown);
    (void)snprintf(shown + used, sizeof shown - used, "/%s%s%s", chosen, place.inner[0] ? "/" : "",
                   place.inner);
    pb_json_string(json, "directory", shown);
    pb_json_string(json, "exists", exists[output->exists]);
    pb_json_string(json, "there", found);
    return rc < 0 ? rc : 0;
}

int pb_explain_products(const struct pb_run_view *view, const struct pb_explain_options *options,
                        struct pb_json *json, struct pb_err *err)
{
    int rc = explain_place(view, options->products, json, err);
    pb_json_array(json, "products");
    for (size_t i = 0; i < view->env->pipeline->n_products; i++)
        explain_product(view, i, json);
    pb_json_end(json);
    return rc;
}
