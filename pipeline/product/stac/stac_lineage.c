/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_lineage.h"

#include "config/base/base_name.h"
#include "config/pipeline_config.h"
#include "kernels/chain/chain.h"
#include "pipeline/metadata/calibration.h"
#include "pipeline/metadata/observation.h"
#include "pipeline/product/stac/stac_formula.h"
#include "pipeline/scene/manifest.h"
#include "pipeline/scene/sidecars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_TEXT = 40 };

static bool is_tagged(const struct pb_raster_band *band)
{
    return band->scale != 1 || band->offset != 0;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Returns true if every band of info has the nodata of the first. */
static bool same_nodata(const struct pb_raster_info *info)
{
    for (int32_t i = 1; i < info->n_bands; i++)
        if (info->band[i].has_nodata != info->band[0].has_nodata ||
            (info->band[i].has_nodata && !same_number(info->band[i].nodata, info->band[0].nodata)))
            return false;
    return true;
}

static void say_input(FILE *text, const struct pb_product_env *env)
{
    const struct pb_input_config *input = &env->pipeline->input;
    const struct pb_raster_info *info = env->info;
    char rule[PB_STAC_RULE_BYTES], number[PB_NUMBER_TEXT], tag_offset[PB_NUMBER_TEXT];
    pb_stac_input_rule(input, rule, sizeof rule);
    (void)fprintf(text, "Input: %s (input.scale, input.offset of pipeline %s).", rule,
                  env->pipeline->name);
    for (int32_t i = 0; i < info->n_bands; i++)
        if (is_tagged(&info->band[i])) {
            pb_stac_number_text(info->band[i].scale, number);
            pb_stac_number_text(info->band[i].offset, tag_offset);
            (void)fprintf(text,
                          " The file's own scale and offset tags (%s, %s on band %d) were not "
                          "applied.",
                          number, tag_offset, i + 1);
            break;
        }
    if (input->has_nodata) {
        pb_stac_number_text(input->nodata, number);
        (void)fprintf(text, " Invalid: DN = %s (input.nodata)", number);
    } else if (!same_nodata(info)) {
        (void)fprintf(text, " Invalid: DN = the nodata value of its band in the file");
    } else if (info->band[0].has_nodata) {
        pb_stac_number_text(info->band[0].nodata, number);
        (void)fprintf(text, " Invalid: DN = %s (nodata of the file)", number);
    } else {
        (void)fprintf(text, " No nodata value");
    }
    if (info->has_mask && info->alpha_band > 0)
        (void)fprintf(text, "; pixels masked by alpha band %d of the file", info->alpha_band);
    else if (info->has_mask)
        (void)fprintf(text, "; pixels masked in the file");
    (void)fprintf(text, ".");
    if (env->valid_notes != NULL && env->valid_notes[0] != '\0')
        (void)fprintf(text, " Validity: %s.", env->valid_notes);
    if (info->n_pages_more > 0)
        (void)fprintf(text, " The file has %d pages, of which the first was read.",
                      info->n_pages_more + 1);
    for (size_t i = 0; i < input->n_sources; i++)
        (void)fprintf(text, " Source %s: %s.", input->sources[i].name, input->sources[i].file);
}

/* Formats one value of a key. */
static void value_text(const struct pb_key *key, const struct pb_item *item,
                       char out[PB_NUMBER_TEXT], const char **out_text)
{
    *out_text = item->text ? item->text : "";
    if (pb_key_is_number(key->type)) {
        pb_stac_number_text(item->num, out);
        *out_text = out;
    }
}

/* " (R: percentile 2 = 412, percentile 98 = 2980)" for each band that the step reduced. */
static void say_results(FILE *text, const struct pb_chain *chain, size_t step)
{
    struct pb_chain_use use;
    for (size_t i = 0; chain != NULL && pb_chain_use_at(chain, i, &use); i++) {
        const struct pb_chain_reduction *r = use.reduction;
        for (uint32_t k = 0; k < use.n && use.step == step; k++) {
            char name[NAME_TEXT], number[PB_NUMBER_TEXT];
            pb_reduce_name(&r->reduce, use.first + k, name, sizeof name);
            pb_stac_number_text(r->results[use.first + k], number);
            (void)fprintf(text, "%s%s%s %s = %s", k ? "," : " (", k ? "" : use.band, k ? "" : ":",
                          name, number);
        }
        if (use.step == step)
            (void)fprintf(text, ")");
    }
}

/* "; R = DN * 2e-05 - 0.1 of band 4; by the metadata: (DN * ...) / sin(...)" */
static void say_calibration(FILE *text, const struct pb_product_env *env, size_t which)
{
    const struct pb_calibrated *last = NULL;
    char formula[256], rule[256];
    for (size_t i = 0; i < env->n_calibrated; i++)
        if (env->calibrated[i].step == which) {
            last = &env->calibrated[i];
            (void)fprintf(text, "; %s = %s of band %s", last->band,
                          pb_calibration_text(last, formula, sizeof formula), last->of);
        }
    if (last != NULL)
        (void)fprintf(text, "; %s%s", last->has_columns ? "" : "by the scene's metadata: ",
                      pb_calibrated_source(last, env->metadata, rule, sizeof rule));
}

/* "endmembers.SOIL = [0.1, 0.2], endmembers.WATER = [0.05, 0]" */
static void say_vectors(FILE *text, const struct pb_key *key, const struct pb_items *items,
                        bool *first)
{
    char number[PB_NUMBER_TEXT];
    for (size_t i = 0, n; i < items->n; i += n) {
        n = pb_items_of_vector(items, i);
        (void)fprintf(text, "%s %s.%s = [", *first ? "" : ",", key->name, items->items[i].key);
        *first = false;
        for (size_t k = 0; k < n; k++) {
            pb_stac_number_text(items->items[i + k].num, number);
            (void)fprintf(text, "%s%s", k ? ", " : "", number);
        }
        (void)fprintf(text, "]");
    }
}

/* Writes the entries of a key: "name = value" for each, "name = [value, value]" for a list;
 * *first: no entry was written before. */
static void say_items(FILE *text, const struct pb_step_config *step, const struct pb_key *key,
                      const struct pb_items *items, bool *first)
{
    char formula[PB_STAC_FORMULA_BYTES], number[PB_NUMBER_TEXT];
    if (key->type == PB_KEY_VECTORS) {
        say_vectors(text, key, items, first);
        return;
    }
    bool list = items->n > 1 && items->items[0].key == NULL &&
                !pb_stac_formula_of(step, key, &items->items[0], formula);
    for (size_t i = 0; i < items->n; i++) {
        const struct pb_item *item = &items->items[i];
        const char *value;
        value_text(key, item, number, &value);
        (void)fprintf(text, "%s ", *first ? "" : ",");
        *first = false;
        if (list)
            (void)fprintf(text, "%s%s%s", i ? "" : key->name, i ? "" : " = [", value);
        else if (pb_stac_formula_of(step, key, item, formula))
            (void)fprintf(text, "%s = %s", pb_item_band(item), formula);
        else
            (void)fprintf(text, "%s%s%s = %s", key->name, item->key ? "." : "",
                          item->key ? item->key : "", value);
    }
    if (list)
        (void)fprintf(text, "]");
}

static void say_step(FILE *text, const struct pb_product_env *env, size_t which)
{
    const struct pb_step_config *step = &env->pipeline->steps[which];
    bool first = true;
    (void)fprintf(text, " Step %s:", step->op->name);
    for (size_t k = 0; k < step->op->n_keys; k++) {
        const struct pb_key *key = &step->op->keys[k];
        struct pb_key_value room;
        const struct pb_items items = pb_key_items(key, step->params, &room);
        say_items(text, step, key, &items, &first);
    }
    say_results(text, env->chain, which);
    say_calibration(text, env, which);
    (void)fprintf(text, ".");
}

/* "Read: B02.tif (sha256 ...), ... " */
static void say_inputs(FILE *text, const struct pb_scene_manifest *inputs)
{
    size_t n = 0;
    for (size_t i = 0; inputs != NULL && i < inputs->n_entries; i++) {
        char name[PB_SCENE_MANIFEST_NAME_BYTES];
        const char *checksum = inputs->entry[i].checksum;
        if (checksum == NULL)
            continue;
        pb_scene_manifest_name(inputs, &inputs->entry[i], name);
        (void)fprintf(text, "%s%s (%.*s %s)", n++ > 0 ? ", " : "Read: ", name,
                      (int)strcspn(checksum, ":"), checksum, pb_checksum_digits(checksum));
    }
    if (n > 0)
        (void)fprintf(text, ". ");
}

/* Names files that were read only to find the order of files. */
static void say_not_used(FILE *text, const struct pb_observations *observations)
{
    const bool by_cloud = observations != NULL && observations->order == PB_FILES_BY_CLOUD;
    const char *begin =
        by_cloud ? "Not used, as others are less cloudy: " : "Not used, by the list of the files: ";
    size_t n = 0;
    for (size_t i = 0; observations != NULL && i < observations->n; i++)
        if (!observations->one[i].is_used)
            (void)fprintf(text, "%s%s", n++ ? ", " : begin, observations->one[i].file);
    if (n > 0)
        (void)fprintf(text, ". ");
}

static void say_unused(FILE *text, const struct pb_sidecars *sidecars)
{
    char names[PB_SIDECARS_TOLD_MAX * 260];
    if (sidecars == NULL || sidecars->n_unused == 0)
        return;
    pb_sidecars_text(sidecars, names, sizeof names);
    (void)fprintf(text, "Not read, as input.sidecars does not list them: %s. ", names);
}

/* Describes the grid of products that a step has transformed to another coordinate system. */
static void say_place(FILE *text, const struct pb_chain *chain)
{
    const struct pb_ground *ground = chain != NULL ? pb_chain_ground(chain) : NULL;
    if (ground != NULL && ground->by[0] != '\0')
        (void)fprintf(text, " The scene was placed by %s.", ground->by);
}

char *pb_stac_lineage(const struct pb_product_env *env, const struct pb_scene_manifest *inputs)
{
    char *lineage = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&lineage, &bytes);
    if (text == NULL)
        return NULL;
    (void)fprintf(text, "Made from %s by pipeline %s of pushbroom " PB_VERSION " on %s. ",
                  pb_base_name(env->input), env->pipeline->name, env->device ? env->device : "cpu");
    say_inputs(text, inputs);
    say_unused(text, env->sidecars);
    say_not_used(text, env->observations);
    say_input(text, env);
    for (size_t i = 0; i < env->pipeline->n_steps; i++)
        say_step(text, env, i);
    say_place(text, env->chain);
    bool failed = ferror(text) != 0;
    if (fclose(text) != 0 || failed) {
        free(lineage);
        return NULL;
    }
    return lineage;
}
