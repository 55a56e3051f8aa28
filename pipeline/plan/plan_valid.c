/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_valid.h"
#include "config/pipeline_config.h"
#include "config/product_words.h"
#include "pipeline/plan/plan.h"

#include "config/units.h"
#include "kernels/nodata.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Settings for reading one file of the run. */
struct file {
    const struct pb_raster_info *info;
    const char *name; /* name of its part of the configuration; NULL = the scene's file */
    bool of_files;    /* true: `name` is an entry of input.files */
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
    const char *entry = file->of_files && file->name == NULL ? file->bands[0].name : file->name;
    if (file->of_files && strcmp(key, "bands") == 0)
        (void)snprintf(out, 160, "input.files");
    else if (file->of_files)
        (void)snprintf(out, 160, "input.files.%s.%s", entry, key);
    else if (entry != NULL)
        (void)snprintf(out, 160, "input.sources.%s.%s", entry, key);
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

void pb_plan_valid(struct pb_plan *plan, const struct pb_plan_request *request)
{
    const struct pb_input_config *input = &request->pipeline->input;
    const struct file scene = {.info = request->info,
                               .of_files = input->n_files > 0,
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
                                  .of_files = config->of_scene,
                                  .bands = config->bands,
                                  .n_bands = config->n_bands,
                                  .has_nodata = config->has_nodata,
                                  .nodata = config->nodata};
        note_file(&plan->work.valid, &file);
    }
}
