/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_presets.h"

#include "config/base/json_writer.h"
#include "config/pipeline_config.h"
#include "kernels/expr/mask_presets.h"
#include "kernels/op.h"
#include "kernels/resample/resample.h"

#include <stdio.h>
#include <string.h>

static bool has_band(const struct pb_band_config *bands, size_t n, const char *band)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(bands[i].name, band) == 0)
            return true;
    return false;
}

/* Returns true for a band of the input with its stored values: neither scaled nor interpolated. */
static bool is_stored(const struct pb_input_config *input, const char *band)
{
    if (has_band(input->bands, input->n_bands, band))
        return input->scale == 1 && input->offset == 0;
    for (size_t i = 0; i < input->n_sources; i++) {
        const struct pb_source_config *source = &input->sources[i];
        if (has_band(source->bands, source->n_bands, band))
            return source->scale == 1 && source->offset == 0 &&
                   (source->resample == PB_BRING_NO ||
                    source->resample == PB_BRING_NO + 1 + PB_NEAREST ||
                    source->resample == PB_BRING_NO + 1 + PB_MODE);
    }
    return false;
}

/* Text of a step's key; NULL if absent. */
static const char *text_of(const struct pb_step_config *step, const char *name)
{
    for (size_t k = 0; k < step->op->n_keys; k++) {
        const struct pb_key *key = &step->op->keys[k];
        struct pb_key_value room;
        if (strcmp(key->name, name) != 0)
            continue;
        const struct pb_items items = pb_key_items(key, step->params, &room);
        return items.n == 1 ? items.items[0].text : NULL;
    }
    return NULL;
}

/* Returns true if the step selects among the band's values: the remaining ones are still
 * classes. */
static bool selects(const struct pb_product_env *env, const struct pb_step_config *step,
                    const char *band)
{
    bool classes = false;
    for (size_t i = 0; i < env->n_bands && env->classes != NULL && !classes; i++)
        classes = env->classes[i] && strcmp(env->band_names[i], band) == 0;
    return classes && step->op->keeps_tags != NULL && step->op->keeps_tags(step->params);
}

static bool find(const struct pb_product_env *env, const char *band, struct pb_mask_preset *out)
{
    const struct pb_pipeline_config *pipeline = env->pipeline;
    bool found = false;
    if (!is_stored(&pipeline->input, band))
        return false;
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_step_config *step = &pipeline->steps[i];
        const char *of = text_of(step, "band"), *preset = text_of(step, "preset");
        bool knows = of != NULL && preset != NULL && strcmp(of, band) == 0;
        if (knows)
            found = pb_mask_preset_find(preset, out);
        else if (preset == NULL && pb_op_makes(step->op, step->params, band) &&
                 !selects(env, step, band))
            return false; /* its values are changed; a mask changes none */
    }
    return found;
}

bool pb_stac_has_preset(const struct pb_product_env *env, const char *band)
{
    struct pb_mask_preset preset;
    return find(env, band, &preset);
}

static void write_class(struct pb_json *json, const struct pb_mask_meaning *meaning)
{
    char words[64];
    (void)snprintf(words, sizeof words, "%s", meaning->word);
    for (char *c = words; *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    pb_json_object(json, NULL);
    pb_json_int(json, "value", meaning->value);
    pb_json_string(json, "name", meaning->word);
    pb_json_string(json, "description", words);
    pb_json_end(json);
}

/* Writes the meanings of the same bits as the classes of one field. */
static void write_field(struct pb_json *json, const struct pb_mask_preset *preset, size_t first)
{
    const struct pb_mask_meaning *meaning = &preset->meaning[first];
    pb_json_object(json, NULL);
    pb_json_int(json, "offset", meaning->from);
    pb_json_int(json, "length", meaning->n);
    if (meaning->n == 1)
        pb_json_string(json, "name", meaning->word);
    pb_json_array(json, "classes");
    for (size_t i = first; i < preset->n; i++)
        if (preset->meaning[i].from == meaning->from && preset->meaning[i].n == meaning->n)
            write_class(json, &preset->meaning[i]);
    pb_json_end(json);
    pb_json_end(json);
}

static bool is_first(const struct pb_mask_preset *preset, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (preset->meaning[k].from == preset->meaning[i].from &&
            preset->meaning[k].n == preset->meaning[i].n)
            return false;
    return true;
}

void pb_stac_preset(struct pb_json *json, const struct pb_product_env *env, const char *band)
{
    struct pb_mask_preset preset;
    if (!find(env, band, &preset))
        return;
    pb_json_array(json, preset.is_bits ? "classification:bitfields" : "classification:classes");
    for (size_t i = 0; i < preset.n; i++) {
        if (!preset.is_bits)
            write_class(json, &preset.meaning[i]);
        else if (is_first(&preset, i))
            write_field(json, &preset, i);
    }
    pb_json_end(json);
}
