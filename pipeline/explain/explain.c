/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/explain/explain.h"
#include "pipeline/plan/describe.h"

#include "config/config.h"
#include "pipeline/explain/explain_parts.h"
#include "pipeline/explain/explain_plan.h"
#include "pipeline/plan/engine.h"

#include <stdio.h>
#include <string.h>

static void explain_grid(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_product_env *env = view->env;
    const struct pb_raster_info *info = env->place_info;
    pb_json_object(json, "grid");
    pb_json_string(json, "crs", info->crs_code[0] ? info->crs_code : NULL);
    pb_json_bool(json, "has_crs", info->has_crs);
    pb_json_int(json, "width", env->geometry.w);
    pb_json_int(json, "height", env->geometry.h);
    if (info->has_transform) {
        pb_explain_pixel(info, env->transform, env->geometry.w, env->geometry.h, json);
        pb_json_array(json, "transform");
        for (int i = 0; i < 6; i++)
            pb_json_number(json, NULL, env->transform[i]);
        pb_json_end(json);
    }
    const struct pb_ground *ground = pb_chain_ground(view->plan->work.chain);
    pb_json_string(json, "placed_by", ground != NULL ? ground->by : NULL);
    pb_json_int(json, "gcps", info->n_gcps);
    pb_json_bool(json, "rpc", info->has_rpc);
    pb_json_end(json);
}

/* Explains the tiles of a grid; the products and the schedule are those of the first planned
 * tile. */
static void explain_tiles(const struct pb_run_view *view, struct pb_json *json)
{
    const struct pb_run_tiles *tiles = view->tiles;
    if (tiles->n == 0)
        return;
    pb_json_array(json, "tiles");
    for (size_t i = 0; i < tiles->n; i++) {
        const struct pb_run_tile *tile = &tiles->tile[i];
        pb_json_object(json, NULL);
        pb_json_string(json, "id", tile->place.id);
        pb_json_string(json, "state", pb_run_tile_state(tile->state));
        pb_json_string(json, "crs", tile->place.crs);
        pb_json_array(json, "bounds");
        for (int k = 0; k < 4; k++)
            pb_json_number(json, NULL, tile->place.bounds[k]);
        pb_json_end(json);
        if (tile->w > 0) {
            pb_json_int(json, "width", tile->w);
            pb_json_int(json, "height", tile->h);
        }
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* Writes the lines of a plan, "key  words"; a line without a key continues the one before it. */
static void explain_schedule(const struct pb_run_view *view, struct pb_json *json)
{
    char text[4096], value[1024] = "", key[32] = "";
    char *save = NULL;
    (void)pb_plan_describe(view->plan, text, sizeof text);
    pb_json_object(json, "schedule");
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        size_t word = strcspn(line, " "), gap = strspn(line + word, " ");
        if (word == 0) {
            size_t used = strlen(value);
            (void)snprintf(value + used, sizeof value - used, "; %s", line + gap);
            continue;
        }
        if (key[0] != '\0')
            pb_json_string(json, key, value);
        (void)snprintf(key, sizeof key, "%.*s", (int)word, line);
        (void)snprintf(value, sizeof value, "%s", line + word + gap);
    }
    if (key[0] != '\0')
        pb_json_string(json, key, value);
    pb_json_end(json);
}

/* Writes the engines that the plan does not use, or uses in part, with what the reader can do. */
static void explain_limits(const struct pb_run_view *view, struct pb_json *json)
{
    struct pb_engine_reason reason[PB_ENGINE_REASONS_MAX];
    const size_t n = pb_engine_reasons(view->plan, reason);
    if (n == 0)
        return;
    pb_json_array(json, "limits");
    for (size_t i = 0; i < n; i++) {
        const struct pb_engine_limit *limit = pb_engine_limit_of(reason[i].reason);
        pb_json_object(json, NULL);
        pb_json_string(json, "engine", pb_engine_words(reason[i].engine));
        pb_json_string(json, "reason", reason[i].reason);
        if (limit != NULL) {
            pb_json_string(json, "feature", limit->feature);
            pb_json_string(json, "kind", pb_limit_kind_name(limit->kind));
            pb_json_string(json, "remedy", limit->remedy[0] != '\0' ? limit->remedy : NULL);
        }
        pb_json_end(json);
    }
    pb_json_end(json);
}

int pb_explain(const struct pb_run *run, const struct pb_explain_options *options,
               struct pb_json *json, struct pb_err *err)
{
    struct pb_run_view view;
    pb_run_view(run, &view);
    pb_json_string(json, "scene", view.scene);
    pb_explain_files(&view, options, json);
    pb_explain_steps(&view, json);
    explain_grid(&view, json);
    explain_tiles(&view, json);
    int rc = pb_explain_products(&view, options, json, err);
    pb_json_int(json, "memory_bytes", (int64_t)pb_plan_total_bytes(view.plan));
    pb_json_int(json, "memory_budget_bytes", (int64_t)view.options->config->compute.memory_bytes);
    pb_json_string(json, "device", view.device);
    explain_limits(&view, json);
    explain_schedule(&view, json);
    pb_explain_passes(view.plan, json);
    return rc;
}
