/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Alerts: lines of the products' grid with at least `pixels` values beyond the limit. Consecutive
 * such lines are one alert, which is reported at its first line, at the pixel that is farthest
 * beyond the limit.
 *
 * Tiles arrive in any order and may have a part of a line only: each line has its own counts, and
 * lines are judged from the top as soon as all their pixels have arrived. The alerts of a scene
 * therefore do not depend on the tiles, and a scene that is computed again has the same ones with
 * the same numbers. */
#include "pipeline/product/alert/alert.h"

#include "config/base/json_writer.h"
#include "config/base/clock.h"
#include "pipeline/numbers/lonlat.h"
#include "pipeline/product/product.h"
#include "pipeline/product/product_text.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALERTS_MAX = 10000 };

/* Counts of a line. */
struct line {
    uint32_t seen;   /* pixels that have arrived */
    uint32_t pixels; /* values beyond the limit */
    int32_t sample;  /* place of the value that is farthest beyond */
    float value;
};

/* An alert: consecutive lines. */
struct found {
    int32_t first, last; /* lines */
    int32_t line, sample;
    float value;     /* farthest beyond, at line and sample */
    uint64_t pixels; /* count in all its lines */
};

struct alert {
    const struct pb_product_env *env;
    const struct pb_alert_config *config;
    uint32_t plane;
    struct pb_lonlat *place; /* NULL: the products have no known place */
    pthread_mutex_t lock;    /* protects everything below */
    struct line *line;
    int32_t next; /* first line that is not judged */
    struct found *found;
    uint32_t n_found, n_more; /* n_more: alerts beyond ALERTS_MAX */
    bool is_open;             /* the last judged line belongs to the last alert */
};

static uint64_t alert_bytes(const struct pb_product_env *env,
                            const struct pb_product_config *config)
{
    (void)config;
    return sizeof(struct alert) + (uint64_t)env->geometry.h * sizeof(struct line) +
           ALERTS_MAX * sizeof(struct found) + sizeof(struct pb_lonlat);
}

static void alert_destroy(void *product)
{
    struct alert *a = product;
    if (a == NULL)
        return;
    pthread_mutex_destroy(&a->lock);
    free(a->place);
    free(a->line);
    free(a->found);
    free(a);
}

static int alert_create(const struct pb_product_env *env, const struct pb_product_config *config,
                        struct pb_err *err, void **out_product)
{
    struct alert *a = calloc(1, sizeof *a);
    if (a == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for alerts");
    pthread_mutex_init(&a->lock, NULL);
    a->env = env;
    a->config = (const struct pb_alert_config *)config;
    a->line = calloc((size_t)env->geometry.h, sizeof *a->line);
    a->found = calloc(ALERTS_MAX, sizeof *a->found);
    a->place = malloc(sizeof *a->place);
    int rc = a->line == NULL || a->found == NULL || a->place == NULL
                 ? pb_fail(err, PB_E_MEMORY, "no memory for the alerts of %d lines",
                           (int)env->geometry.h)
                 : pb_product_bands(env, config, &a->plane, err);
    if (rc < 0) {
        alert_destroy(a);
        return rc;
    }
    if (!pb_lonlat_init(a->place, env->place_info->crs_code, env->transform, env->geometry.w,
                        env->geometry.h)) {
        free(a->place);
        a->place = NULL;
    }
    *out_product = a;
    return 0;
}

/* Distance beyond the limit; 0 or less: not beyond. NaN is not beyond. */
static float beyond(const struct pb_alert_config *c, float v)
{
    const float up = c->has_above ? v - (float)c->above : -FLT_MAX;
    const float down = c->has_below ? (float)c->below - v : -FLT_MAX;
    return up > down ? up : down;
}

/* Returns true if a value is beyond the limit. The loop has no branches and no early end, because
 * most lines have no such value, and the time counts for the latency of a line. */
static bool has_beyond(const struct pb_alert_config *c, const float *row, int32_t w)
{
    const float above = c->has_above ? (float)c->above : INFINITY;
    const float below = c->has_below ? (float)c->below : -INFINITY;
    int found = 0;
    for (int32_t i = 0; i < w; i++)
        found |= (row[i] > above) | (row[i] < below);
    return found != 0;
}

/* Counts the values of a part of a line. The smallest sample of equal values is kept: the result
 * does not depend on the order of the parts. */
static void count(const struct alert *a, const float *row, int32_t x, int32_t w, struct line *line)
{
    if (!has_beyond(a->config, row, w))
        return;
    for (int32_t i = 0; i < w; i++) {
        const float d = beyond(a->config, row[i]);
        if (!(d > 0))
            continue;
        const float best = line->pixels > 0 ? beyond(a->config, line->value) : 0;
        if (line->pixels == 0 || d > best || (d == best && x + i < line->sample)) {
            line->value = row[i];
            line->sample = x + i;
        }
        line->pixels++;
    }
}

/* Time of the scene's line at a line of the products. */
static int64_t acquired_ns(const struct alert *a, int32_t line)
{
    const struct pb_geometry *const g = &a->env->geometry;
    const double y = (line + 0.5) * g->map.scale_y + g->map.offset_y;
    return g->frame == 0 ? pb_raster_acquired_ns(a->env->raster, (int32_t)floor(y)) : 0;
}

static void report(const struct alert *a, uint32_t number, const struct found *f)
{
    struct pb_alert out = {
        .name = a->config->product.name,
        .band = a->config->product.bands[0],
        .number = number,
        .line = f->line,
        .sample = f->sample,
        .pixels = (uint32_t)f->pixels,
        .value = f->value,
    };
    if (a->env->alert == NULL)
        return;
    out.has_place = a->place != NULL &&
                    pb_lonlat_at(a->place, f->sample + 0.5, f->line + 0.5, &out.lon, &out.lat);
    out.acquired_ns = acquired_ns(a, f->line);
    a->env->alert(a->env->alert_user, &out);
}

/* Adds a line to the last alert, or begins one. */
static void judge(struct alert *a, int32_t y)
{
    const struct line *const line = &a->line[y];
    const bool is_alert = line->pixels >= (uint32_t)a->config->pixels;
    if (is_alert && !a->is_open && a->n_found == ALERTS_MAX) {
        a->n_more++;
    } else if (is_alert && !a->is_open) {
        struct found *const f = &a->found[a->n_found++];
        *f = (struct found){y, y, y, line->sample, line->value, line->pixels};
        report(a, a->n_found, f);
    } else if (is_alert && a->n_more == 0) {
        struct found *const f = &a->found[a->n_found - 1];
        f->last = y;
        f->pixels += line->pixels;
        if (beyond(a->config, line->value) > beyond(a->config, f->value)) {
            f->line = y;
            f->sample = line->sample;
            f->value = line->value;
        }
    }
    a->is_open = is_alert;
}

static int alert_tile(void *product, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    struct alert *a = product;
    const struct pb_rect *const core = &tile->core;
    (void)worker;
    (void)err;
    pthread_mutex_lock(&a->lock);
    for (int32_t y = 0; y < core->h; y++) {
        struct line *const line = &a->line[core->y + y];
        if (pixels->plane_px > 0)
            count(a, pixels->data + a->plane * pixels->plane_px + (size_t)y * (size_t)core->w,
                  core->x, core->w, line);
        line->seen += (uint32_t)core->w;
    }
    while (a->next < a->env->geometry.h && a->line[a->next].seen >= (uint32_t)a->env->geometry.w)
        judge(a, a->next++);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

/* --- the file --- */

static void write_place(const struct alert *a, struct pb_json *json, const struct found *f)
{
    double lon, lat;
    if (a->place == NULL || !pb_lonlat_at(a->place, f->sample + 0.5, f->line + 0.5, &lon, &lat)) {
        pb_json_null(json, "geometry");
        return;
    }
    pb_json_object(json, "geometry");
    pb_json_string(json, "type", "Point");
    pb_json_array(json, "coordinates");
    pb_json_number(json, NULL, lon);
    pb_json_number(json, NULL, lat);
    pb_json_end(json);
    pb_json_end(json);
}

static void write_alert(const struct alert *a, struct pb_json *json, uint32_t i)
{
    const struct found *const f = &a->found[i];
    const int64_t at_ns = acquired_ns(a, f->first);
    char time[PB_CLOCK_TEXT_BYTES];
    pb_json_object(json, NULL);
    pb_json_string(json, "type", "Feature");
    pb_json_int(json, "id", (int64_t)i + 1);
    write_place(a, json, f);
    pb_json_object(json, "properties");
    pb_json_string(json, "band", a->config->product.bands[0]);
    pb_json_float(json, "value", f->value);
    pb_json_int(json, "pixels", (int64_t)f->pixels);
    pb_json_int(json, "line", f->line);
    pb_json_int(json, "sample", f->sample);
    pb_json_int(json, "first_line", f->first);
    pb_json_int(json, "last_line", f->last);
    if (at_ns > 0) {
        pb_clock_text(at_ns / 1000000, time);
        pb_json_string(json, "datetime", time);
    } else {
        pb_json_null(json, "datetime");
    }
    pb_json_end(json);
    pb_json_end(json);
}

static int alert_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                        struct pb_err *err, struct pb_product_result *out_result)
{
    struct alert *a = product;
    struct pb_product_result result = {.kind = &pb_kind_alert,
                                       .name = a->config->product.name,
                                       .media_type = "application/geo+json",
                                       .config = &a->config->product};
    (void)earlier;
    (void)n_earlier;
    pb_product_file(a->env, result.config, result.file, sizeof result.file);
    if (a->n_more > 0)
        (void)snprintf(result.warning, sizeof result.warning,
                       "%s has the first %d alerts of more; raise its limit or its pixels", "alert",
                       ALERTS_MAX);
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_string(json, "type", "FeatureCollection");
    pb_json_array(json, "features");
    for (uint32_t i = 0; i < a->n_found; i++)
        write_alert(a, json, i);
    pb_json_end(json);
    pb_json_end(json);
    int rc = pb_product_text(a->env, json, err, &result);
    pb_json_destroy(json);
    if (rc == 0)
        *out_result = result;
    return rc;
}

const struct pb_product_type pb_product_alert = {
    .kind = &pb_kind_alert,
    .suffix = ".alerts.geojson",
    .asset = "alerts",
    .title = "Lines with values beyond a limit",
    .role = "metadata",
    .bytes = alert_bytes,
    .create = alert_create,
    .tile = alert_tile,
    .by_lines = true,
    .finish = alert_finish,
    .destroy = alert_destroy,
};
