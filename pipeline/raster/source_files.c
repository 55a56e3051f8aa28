/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/source_files.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/raster/raster_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char SCENE[] = "{scene}";

/* Appends n bytes; returns false if they do not fit. */
static bool append(char *path, size_t *used, const char *text, size_t n)
{
    if (*used + n >= PATH_MAX)
        return false;
    memcpy(path + *used, text, n);
    path[ *used += n] = '\0';
    return true;
}

int pb_source_path(const struct pb_config *config, const struct pb_source_config *source,
                   const char *scene, char *out_path, struct pb_err *err)
{
    const char *text = source->file, *slash = strrchr(config->path ? config->path : "", '/');
    size_t used = 0;
    bool fits = true;
    out_path[0] = '\0';
    if (text[0] != '/' && slash != NULL)
        fits = append(out_path, &used, config->path, (size_t)(slash + 1 - config->path));
    for (const char *mark; fits && (mark = strstr(text, SCENE)) != NULL;
         text = mark + sizeof SCENE - 1)
        fits = append(out_path, &used, text, (size_t)(mark - text)) &&
               append(out_path, &used, scene, strlen(scene));
    if (!fits || !append(out_path, &used, text, strlen(text)))
        return pb_fail(err, PB_E_CONFIG_VALUE, "the path of source %s is longer than %d bytes",
                       source->name, PATH_MAX - 1);
    return 0;
}

void pb_source_files_open(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene, struct pb_source_files *out)
{
    char path[PATH_MAX];
    out->n = pipeline->input.n_sources;
    for (size_t i = 0; i < out->n; i++) {
        struct pb_err ignored = {0}; /* the run reports it */
        out->fd[i] = -ENAMETOOLONG;
        if (pipeline->input.sources[i].of_scene) /* opened by pb_scene_files_open */
            continue;
        if (pb_source_path(config, &pipeline->input.sources[i], scene, path, &ignored) < 0)
            continue;
        out->fd[i] = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
        if (out->fd[i] < 0)
            out->fd[i] = -errno;
    }
}

void pb_source_files_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline,
                          const char *scene, const struct pb_source_files *files)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < PB_FILES_MAX - 1; i++) {
        struct pb_err ignored = {0};
        if (pipeline != NULL && i < pipeline->input.n_sources &&
            pipeline->input.sources[i].of_scene)
            continue;
        bool known =
            pipeline != NULL && i < files->n && i < pipeline->input.n_sources &&
            pb_source_path(config, &pipeline->input.sources[i], scene, path, &ignored) == 0;
        pb_raster_file_hand_source(i, known ? path : "", known ? files->fd[i] : -EBADF);
    }
}

void pb_source_files_close(struct pb_source_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        if (files->fd[i] >= 0)
            (void)close(files->fd[i]);
    files->n = 0;
}

void pb_source_files_blame(const struct pb_config *config,
                           const struct pb_pipeline_config *pipeline, const char *scene,
                           struct pb_err *err)
{
    char path[PATH_MAX];
    if (err == NULL || err->file[0] == '\0')
        return;
    for (size_t i = 0; i < pipeline->input.n_sources; i++) {
        const struct pb_source_config *source = &pipeline->input.sources[i];
        struct pb_err place = {0}, named = {0}, ignored = {0};
        if (source->of_scene || pb_source_path(config, source, scene, path, &ignored) < 0)
            continue;
        (void)pb_fail_at(&place, err->code, path, 0, 0, "source"); /* in the form of err->file */
        if (strcmp(place.file, err->file) != 0)
            continue;
        (void)pb_fail(&named, err->code, "source %s, %s: %s", source->name, path, err->msg);
        *err = named;
        return;
    }
}

/* Rounds `v` to the whole number or unit fraction (a half, a third) from which it differs only
 * by rounding over n pixels; else returns v. */
static double snapped_scale(double v, double n)
{
    const double whole = rint(v), parts = rint(1 / v);
    if (whole >= 1 && fabs(v - whole) * n < 1e-6)
        return whole;
    return parts >= 1 && fabs(v - 1 / parts) * n < 1e-6 ? 1 / parts : v;
}

static double snapped(double v)
{
    return fabs(v - rint(v)) < 1e-6 ? rint(v) : v;
}

bool pb_source_place(const struct pb_raster *scene, const struct pb_raster *other,
                     struct pb_map *out_map)
{
    const struct pb_raster_info *a = pb_raster_info(scene), *b = pb_raster_info(other);
    *out_map = pb_map_identity();
    if (!a->has_transform && !b->has_transform)
        return a->width == b->width && a->height == b->height;
    if (!a->has_transform || !b->has_transform || !pb_raster_same_crs(scene, other))
        return false;
    const double *s = a->transform, *t = b->transform;
    const double determinant = t[1] * t[5] - t[2] * t[4];
    const double dx = s[0] - t[0], dy = s[3] - t[3];
    struct pb_map map = {.scale_x = (s[1] * t[5] - s[4] * t[2]) / determinant,
                         .scale_y = (s[5] * t[1] - s[2] * t[4]) / determinant,
                         .offset_x = (dx * t[5] - dy * t[2]) / determinant,
                         .offset_y = (dy * t[1] - dx * t[4]) / determinant};
    const double lean_x = (s[2] * t[5] - s[5] * t[2]) / determinant * a->height;
    const double lean_y = (s[4] * t[1] - s[1] * t[4]) / determinant * a->width;
    if (!(fabs(lean_x) < 1e-3 && fabs(lean_y) < 1e-3 && map.scale_x > 0 && map.scale_y > 0 &&
          fabs(map.offset_x) < 1e9 && fabs(map.offset_y) < 1e9))
        return false;
    map.scale_x = snapped_scale(map.scale_x, a->width);
    map.scale_y = snapped_scale(map.scale_y, a->height);
    map.offset_x = snapped(map.offset_x);
    map.offset_y = snapped(map.offset_y);
    *out_map = map;
    return true;
}
