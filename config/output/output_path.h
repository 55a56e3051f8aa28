/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OUTPUT_PATH_H
#define PB_OUTPUT_PATH_H
/* Templates of `output.path` and `output.name`: text with placeholders in braces.
 *
 *   {scene}  {pipeline}          always known
 *   {product}                    of output.name: the product's name, else its kind
 *   {tile}                       of output.name: the tile of a grid that the products are of
 *   {sensor}  {datetime:FORMAT}  of the scene's metadata; FORMAT as of strftime, UTC
 *
 * A path is relative to the directory of products and has components, split at every '/', also
 * those of a FORMAT. The one with {scene} belongs to one scene, and so does all below it; those
 * before it are shared. After it there may be one more. Values never add components: one that holds
 * '/' or a control character, or leaves a component empty or hidden, is an error. Pure functions.
 * Thread: any. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_OUTPUT_PATH_BYTES   1024
#define PB_OUTPUT_PARTS_MAX    16
#define PB_OUTPUT_PATH_DEFAULT "{scene}/{pipeline}"

struct pb_output_facts {
    const char *scene, *pipeline;
    const char *product; /* NULL: of a path */
    const char *tile;    /* NULL: of a path, or there is no grid of tiles */
    const char *sensor;  /* NULL = not known */
    bool has_time;
    int64_t time_s; /* of acquisition, since 1970-01-01 UTC */
};

struct pb_output_place {
    char parents[PB_OUTPUT_PATH_BYTES]; /* "a/b", shared by scenes; "" = none */
    char scene[256];                    /* the directory that belongs to the scene */
    char inner[256];                    /* in it, where the files go; "" = into it */
};

/* Whether the template can be used; else what is wrong with it, as "<template> <why>". */
bool pb_output_path_check(const char *path, char why[200]);
bool pb_output_name_check(const char *name, char why[200]);
/* Whether a name that was checked has {tile}, so that its {scene} is the scene's alone; without
 * it {scene} stands for the scene and the tile, "<scene>_<tile>". */
bool pb_output_name_has_tile(const char *name);
/* Fails with output.path when a value is not known, or makes no name of a directory. */
int pb_output_path_expand(const char *path, const struct pb_output_facts *facts, struct pb_err *err,
                          struct pb_output_place *out);
/* Whether it has a {sensor} or {datetime}. */
bool pb_output_path_needs_metadata(const char *path);
/* A file's name without its suffix, at most 200 bytes. */
int pb_output_name_expand(const char *name, const struct pb_output_facts *facts, struct pb_err *err,
                          char out[256]);

/* What a path may expand to, whatever the values that are not in facts. */
struct pb_output_part {
    char pattern[512]; /* for pb_glob_fits() without flags */
    char exact[256];   /* "" = several fit */
};
struct pb_output_pattern {
    struct pb_output_part part[PB_OUTPUT_PARTS_MAX];
    size_t n, scene; /* number of the part that may have a version, "~2" */
};
/* path was checked. */
void pb_output_path_pattern(const char *path, const struct pb_output_facts *facts,
                            struct pb_output_pattern *out);
/* Whether a component fits part i, with or without a version. */
bool pb_output_part_fits(const struct pb_output_pattern *pattern, size_t i, const char *component);
/* Whether "a/b/c" fits as a whole. */
bool pb_output_path_fits(const struct pb_output_pattern *pattern, const char *relative);
#endif
