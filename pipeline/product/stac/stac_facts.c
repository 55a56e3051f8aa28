/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_facts.h"

#include "config/pipeline_config.h"
#include "kernels/chain/chain.h"
#include "pipeline/metadata/calibration.h"
#include "pipeline/metadata/sensor_bands.h"

#include <math.h>
#include <string.h>

static const struct pb_metadata *facts_of(const struct pb_stac_item *item)
{
    const struct pb_metadata *facts = item->env->metadata;
    return facts != NULL && facts->family != NULL ? facts : NULL;
}

static void number(struct pb_json *json, const char *key, double value)
{
    if (!isnan(value))
        pb_json_number(json, key, value);
}

static void text(struct pb_json *json, const char *key, const char *given, const char *found)
{
    const char *value = given != NULL ? given : found;
    if (value != NULL && value[0] != '\0')
        pb_json_string(json, key, value);
}

bool pb_stac_has_sar(const struct pb_stac_item *item)
{
    const struct pb_metadata *f = facts_of(item);
    return f != NULL && f->radar_mode[0] != '\0' && f->n_bands > 0;
}

/* Returns the extension's product type for images on a map by the geometry of the radar, at one
 * height or by that of the ground; else the producer's type. */
static const char *type_of(const struct pb_stac_item *item, const struct pb_metadata *f)
{
    const struct pb_chain *chain = item->env->chain;
    const struct pb_ground *ground = chain != NULL ? pb_chain_ground(chain) : NULL;
    if (ground == NULL || ground->model != PB_GROUND_SENSOR)
        return f->level;
    return ground->on_relief ? "GTC" : "GEC";
}

/* The polarisations are those of the metadata that were read. The satellites of the family look
 * to the right, at 5.4 GHz. */
static void radar_facts(const struct pb_stac_item *item, const struct pb_metadata *f)
{
    struct pb_json *json = item->json;
    pb_json_string(json, "sar:instrument_mode", f->radar_mode);
    pb_json_string(json, "sar:frequency_band", "C");
    number(json, "sar:center_frequency", f->radar_ghz);
    pb_json_array(json, "sar:polarizations");
    for (size_t i = 0; i < f->n_bands; i++)
        pb_json_string(json, NULL, f->band[i].id);
    pb_json_end(json);
    text(json, "sar:product_type", NULL, type_of(item, f));
    number(json, "sar:pixel_spacing_range", f->range_spacing);
    number(json, "sar:pixel_spacing_azimuth", f->azimuth_spacing);
    pb_json_string(json, "sar:observation_direction", "right");
}

void pb_stac_facts(const struct pb_stac_item *item)
{
    const struct pb_metadata *f = facts_of(item);
    struct pb_json *json = item->json;
    text(json, "platform", item->config->platform, f ? f->platform : NULL);
    text(json, "constellation", item->config->constellation, f ? f->constellation : NULL);
    if (f == NULL)
        return;
    if (f->instrument[0] != '\0') {
        pb_json_array(json, "instruments");
        pb_json_string(json, NULL, f->instrument);
        pb_json_end(json);
    }
    number(json, "gsd", f->gsd);
    number(json, "view:sun_azimuth", f->sun_azimuth);
    number(json, "view:sun_elevation", f->sun_elevation);
    number(json, "view:azimuth", f->view_azimuth);
    number(json, "view:off_nadir", f->off_nadir);
    number(json, "view:incidence_angle", f->incidence);
    number(json, "eo:cloud_cover", f->cloud_cover);
    text(json, "sat:orbit_state", NULL, f->orbit_state);
    number(json, "sat:relative_orbit", f->relative_orbit);
    number(json, "sat:absolute_orbit", f->absolute_orbit);
    if (pb_stac_has_sar(item))
        radar_facts(item, f);
    text(json, "pushbroom:source_product", NULL, f->product);
    text(json, "pushbroom:processing_baseline", NULL, f->baseline);
}

bool pb_stac_has_view(const struct pb_stac_item *item)
{
    const struct pb_metadata *f = facts_of(item);
    return f != NULL && (!isnan(f->sun_azimuth) || !isnan(f->sun_elevation) ||
                         !isnan(f->view_azimuth) || !isnan(f->off_nadir) || !isnan(f->incidence));
}

bool pb_stac_has_sat(const struct pb_stac_item *item)
{
    const struct pb_metadata *f = facts_of(item);
    return f != NULL &&
           (f->orbit_state[0] != '\0' || !isnan(f->relative_orbit) || !isnan(f->absolute_orbit));
}

/* Returns true if a step after `step` makes a band of that name. */
static bool is_changed(const struct pb_product_env *env, size_t step, const char *band)
{
    bool changed = false;
    for (size_t i = step + 1; i < env->pipeline->n_steps && !changed; i++)
        changed = pb_op_makes(env->pipeline->steps[i].op, env->pipeline->steps[i].params, band);
    return changed;
}

static int32_t number_of(const struct pb_band_config *bands, size_t n, const char *band)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(bands[i].name, band) == 0)
            return bands[i].index;
    return 0;
}

/* Finds the sensor band of an input band that no step changes, by the name of its file or its
 * number. */
static const struct pb_sensor_band *input_band(const struct pb_product_env *env, const char *band)
{
    const struct pb_input_config *in = &env->pipeline->input;
    struct pb_calibration_input input = {.name = band,
                                         .number = number_of(in->bands, in->n_bands, band),
                                         .n_bands = env->info->n_bands};
    size_t file = 0;
    for (; input.number == 0 && file < in->n_sources; file++) {
        input.number = number_of(in->sources[file].bands, in->sources[file].n_bands, band);
        input.n_bands = (int32_t)in->sources[file].n_bands;
    }
    for (size_t i = 0; i < env->pipeline->n_steps; i++)
        if (pb_op_makes(env->pipeline->steps[i].op, env->pipeline->steps[i].params, band))
            return NULL;
    if (input.number == 0 || env->file_names == NULL || env->file_names[file] == NULL)
        return NULL;
    input.file = env->file_names[file];
    const struct pb_meta_band *of = pb_calibration_band(env->metadata, &input);
    return of != NULL ? pb_sensor_band_find(env->metadata, of->id) : NULL;
}

/* Finds the sensor band for the product's band `band`; NULL: not a sensor band. */
static const struct pb_sensor_band *sensor_band(const struct pb_stac_item *item, const char *band)
{
    const struct pb_product_env *env = item->env;
    for (size_t i = 0; facts_of(item) != NULL && i < env->n_calibrated; i++)
        if (strcmp(env->calibrated[i].band, band) == 0 && !env->calibrated[i].has_columns &&
            !is_changed(env, env->calibrated[i].step, band))
            return pb_sensor_band_find(env->metadata, env->calibrated[i].of);
    return facts_of(item) != NULL ? input_band(env, band) : NULL;
}

bool pb_stac_has_eo(const struct pb_stac_item *item)
{
    const struct pb_metadata *f = facts_of(item);
    bool has = f != NULL && !isnan(f->cloud_cover);
    for (size_t i = 0; f != NULL && i < item->env->n_bands && !has; i++)
        has = sensor_band(item, item->env->band_names[i]) != NULL;
    return has;
}

void pb_stac_band_facts(const struct pb_stac_item *item, const char *band)
{
    const struct pb_sensor_band *of = sensor_band(item, band);
    if (of == NULL)
        return;
    if (of->common[0] != '\0')
        pb_json_string(item->json, "eo:common_name", of->common);
    pb_json_number(item->json, "eo:center_wavelength", of->center_um);
    pb_json_number(item->json, "eo:full_width_half_max", of->width_um);
}

void pb_stac_calibration(struct pb_json *json, const struct pb_product_env *env)
{
    char formula[256], rule[256];
    if (env->n_calibrated == 0)
        return;
    pb_json_array(json, "calibration");
    for (size_t i = 0; i < env->n_calibrated; i++) {
        const struct pb_calibrated *c = &env->calibrated[i];
        pb_json_object(json, NULL);
        pb_json_string(json, "band", c->band);
        pb_json_string(json, "of", c->of);
        pb_json_string(json, "to", pb_calibrated_quantity(c));
        pb_json_string(json, "formula", pb_calibration_text(c, formula, sizeof formula));
        pb_json_string(json, "rule", pb_calibrated_source(c, env->metadata, rule, sizeof rule));
        if (!c->has_columns)
            pb_json_string(json, "source", env->metadata->family->source);
        pb_json_end(json);
    }
    pb_json_end(json);
}
