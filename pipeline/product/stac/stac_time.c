/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_time.h"

#include "config/pipeline_config.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/metadata/observation.h"
#include "pipeline/product/product_lines.h"
#include "pipeline/raster/raster.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Sets the range from the first to the last of the observations that were used. */
static int from_observations(const struct pb_observations *all, struct pb_stac_when *out,
                             struct pb_err *err)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct pb_observation *one = &all->one[i];
        if (!one->is_used)
            continue;
        if (one->datetime[0] == '\0')
            return pb_fail(err, PB_E_INPUT_DATETIME,
                           "the STAC item needs the times at which the files were taken, and no "
                           "file of input.metadata has that of %.200s",
                           one->file);
        if (out->start[0] == '\0' ||
            pb_meta_julian_day(one->datetime) < pb_meta_julian_day(out->start))
            (void)snprintf(out->start, sizeof out->start, "%s", one->datetime);
        if (out->end[0] == '\0' || pb_meta_julian_day(one->datetime) > pb_meta_julian_day(out->end))
            (void)snprintf(out->end, sizeof out->end, "%s", one->datetime);
    }
    if (strcmp(out->start, out->end) == 0)
        (void)snprintf(out->datetime, sizeof out->datetime, "%s", out->start);
    return 0;
}

static int from_metadata(const struct pb_stac_config *config, const struct pb_product_env *env,
                         struct pb_stac_when *out, struct pb_err *err)
{
    const struct pb_metadata *facts = env->metadata;
    out->source = "metadata";
    if (env->observations != NULL && env->observations->n > 0 &&
        env->observations->order != PB_FILES_BY_LIST)
        return from_observations(env->observations, out, err);
    if (facts != NULL && facts->datetime[0] != '\0')
        (void)snprintf(out->datetime, sizeof out->datetime, "%s", facts->datetime);
    else if (facts != NULL && facts->start[0] != '\0') {
        (void)snprintf(out->start, sizeof out->start, "%s", facts->start);
        (void)snprintf(out->end, sizeof out->end, "%s", facts->end);
    } else if (facts != NULL && facts->family != NULL)
        return pb_fail(err, PB_E_INPUT_DATETIME,
                       "the STAC item needs the time at which the scene was taken, and its "
                       "metadata (%s) do not have it",
                       facts->family->name);
    else if (pb_product_line_span(env, out->start, out->end)) {
        out->source = "lines";
        if (strcmp(out->start, out->end) == 0)
            (void)snprintf(out->datetime, sizeof out->datetime, "%s", out->start);
    } else if (pb_raster_has_lines(env->raster))
        return pb_raster_is_growing(env->raster)
                   ? 0 /* lines with times are expected */
                   : pb_fail(err, PB_E_INPUT_DATETIME,
                             "the STAC item needs the time at which the scene was taken, and the "
                             "writer of stream %s gave its lines no times; set stac.datetime",
                             env->pipeline->input.stream ? env->pipeline->input.stream : "");
    else if (config->time == PB_STAC_TIME_METADATA)
        return pb_fail(err, PB_E_INPUT_DATETIME,
                       "stac.datetime is metadata, but pipeline %s names none (input.metadata)",
                       env->pipeline->name);
    else
        return pb_fail(err, PB_E_INPUT_DATETIME,
                       "the STAC item needs the time at which the scene was taken, and it is "
                       "unknown: pipeline %s has neither input.metadata nor stac.datetime",
                       env->pipeline->name);
    return 0;
}

static int from_name(const struct pb_stac_config *config, const struct pb_product_env *env,
                     struct pb_stac_when *out, struct pb_err *err)
{
    char start[32] = "", end[32] = "";
    int found = pb_meta_name_time(config->pattern, env->scene, start, end);
    out->source = "name";
    if (found != 1)
        return pb_fail(err, PB_E_INPUT_DATETIME,
                       found == 2
                           ? "stac.datetime: %.100s finds several times in the scene's name, "
                             "%.200s; write the text next to the right one into the pattern"
                           : "stac.datetime: %.100s finds no time in the scene's name, %.200s",
                       config->pattern, env->scene);
    (void)snprintf(out->start, sizeof out->start, "%s", start);
    (void)snprintf(out->end, sizeof out->end, "%s", end);
    if (strcmp(start, end) == 0)
        (void)snprintf(out->datetime, sizeof out->datetime, "%s", start);
    return 0;
}

static int from_file(const struct pb_product_env *env, struct pb_stac_when *out)
{
    time_t seconds = (time_t)(env->info->file_mtime_ns / 1000000000);
    struct tm tm;
    out->source = "modification time";
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(out->datetime, sizeof out->datetime, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        (void)snprintf(out->datetime, sizeof out->datetime, "1970-01-01T00:00:00Z");
    return 0;
}

int pb_stac_when(const struct pb_stac_config *config, const struct pb_product_env *env,
                 struct pb_stac_when *out, struct pb_err *err)
{
    *out = (struct pb_stac_when){.source = "config"};
    switch (config->time) {
    case PB_STAC_TIME_GIVEN:
        (void)snprintf(out->datetime, sizeof out->datetime, "%s", config->datetime);
        return 0;
    case PB_STAC_TIME_NAME:
        return from_name(config, env, out, err);
    case PB_STAC_TIME_TAG:
        out->source = "tag";
        (void)snprintf(out->datetime, sizeof out->datetime, "%s", env->info->datetime);
        return out->datetime[0] != '\0'
                   ? 0
                   : pb_fail(err, PB_E_INPUT_DATETIME,
                             "stac.datetime is tag, but the file has no TIFF tag DateTime");
    case PB_STAC_TIME_FILE:
        return from_file(env, out);
    default:
        return from_metadata(config, env, out, err);
    }
}
