/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: loose files of one scene become one input. */
#include "config/group_pattern.h"
#include "config/base/base_name.h"
#include "service/cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The pipeline that takes the file as one of several; NULL = none does. */
static const struct pb_pipeline_config *group_of(const struct cli_run_options *o,
                                                 const struct pb_config *config, const char *path,
                                                 char scene[256])
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return NULL;
    if (o->pipeline == NULL)
        return pb_config_match_group(config, path, scene);
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(config, o->pipeline);
    bool fits = pipeline->input.group_pattern != NULL &&
                pb_group_pattern_fits(pipeline->input.group_pattern, pb_base_name(path), scene);
    return fits ? pipeline : NULL;
}

/* "DIR/SCENE"; malloc'd. */
static char *path_of(const char *file, const char *scene)
{
    const char *slash = strrchr(file, '/');
    size_t n = slash ? (size_t)(slash + 1 - file) : 0, bytes = n + strlen(scene) + 3;
    char *path = malloc(bytes);
    if (path != NULL)
        (void)snprintf(path, bytes, "%.*s%s", n ? (int)n : 2, n ? file : "./", scene);
    return path;
}

static bool is_known(const struct cli_run_options *o, int n, const char *path,
                     const struct pb_pipeline_config *pipeline)
{
    for (int i = 0; i < n; i++)
        if (o->groups[i] == pipeline && strcmp(o->inputs[i], path) == 0)
            return true;
    return false;
}

bool cli_input_gather(struct cli_run_options *o, const struct pb_config *config)
{
    int n = 0;
    o->groups = calloc((size_t)o->n_inputs + 1, sizeof *o->groups);
    for (int i = 0; o->groups != NULL && i < o->n_inputs; i++) {
        char scene[256], *path = o->inputs[i];
        const struct pb_pipeline_config *group = group_of(o, config, path, scene);
        if (group != NULL && (path = path_of(path, scene)) == NULL)
            return false;
        if (group != NULL && is_known(o, n, path, group)) {
            free(path);
            continue;
        }
        o->groups[n] = group;
        o->inputs[n++] = path;
    }
    o->n_inputs = n;
    return o->groups != NULL;
}

void cli_input_forget(struct cli_run_options *o)
{
    for (int i = 0; o->groups != NULL && i < o->n_inputs; i++)
        if (o->groups[i] != NULL)
            free(o->inputs[i]);
    free(o->groups);
}
