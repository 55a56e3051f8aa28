/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: makes one input of the loose files of one scene, and one for each scene in a
 * folder of such files. */
#include "config/config.h"
#include "config/group_pattern.h"
#include "config/base/base_name.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/scene/sidecar.h"
#include "service/cli/cli_run.h"
#include "pipeline/scene/belonging.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Finds the pipeline that takes the file as one of several, and the scene, "" if metadata
 * determine it; NULL if no pipeline does. */
static const struct pb_pipeline_config *group_of(const struct cli_run_options *o,
                                                 const struct pb_config *config, const char *path,
                                                 char scene[256])
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return NULL;
    const struct pb_pipeline_config *pipeline =
        o->pipeline != NULL ? pb_config_pipeline(config, o->pipeline)
                            : pb_config_match_group(config, path, NULL, scene);
    if (o->pipeline == NULL && pipeline == NULL)
        pipeline = pb_belonging_metadata(config, path);
    const struct pb_group_pattern *group = pipeline != NULL ? pipeline->input.group_pattern : NULL;
    if (group == NULL || pb_group_pattern_fits(group, pb_base_name(path), NULL, scene))
        return group != NULL ? pipeline : NULL;
    scene[0] = '\0';
    return pb_group_pattern_asks(group) && pb_sidecar_is_metadata(pipeline, path) ? pipeline : NULL;
}

/* Makes "DIR/SCENE"; malloc'd. */
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
        if (o->groups[i].pipeline == pipeline && strcmp(o->inputs[i], path) == 0)
            return true;
    return false;
}

/* Queries the metadata of all inputs at the same time. */
static bool ask(struct cli_run_options *o, const struct pb_config *config)
{
    bool good = true;
    for (int i = 0; good && i < o->n_inputs; i++) {
        char scene[256];
        const struct pb_pipeline_config *pipeline = group_of(o, config, o->inputs[i], scene);
        if (pipeline != NULL && scene[0] == '\0')
            good = cli_told_want(&o->told, pipeline, o->inputs[i]);
    }
    return good && (o->told == NULL || cli_told_wait(o->told, config, o));
}

/* Finds the group of an input and replaces its path (malloc'd); a file without a group keeps its
 * path. */
static bool find_group(const struct cli_run_options *o, const struct pb_config *config, char **path,
                       struct cli_group *out)
{
    char scene[256];
    *out = (struct cli_group){.pipeline = group_of(o, config, *path, scene)};
    if (out->pipeline == NULL)
        return true;
    if (scene[0] == '\0' && !cli_told_find(o->told, out->pipeline, *path, out, scene))
        return false;
    *path = out->err.code != PB_OK ? strdup(*path) : path_of(*path, scene);
    return *path != NULL;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* Returns true if the folder is not a scene itself, and a pipeline takes loose files. */
static bool may_hold_files(const struct cli_run_options *o, const struct pb_config *config,
                           const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    if (o->pipeline == NULL)
        return pb_config_match_folder(config, path) == NULL;
    return pb_config_pipeline(config, o->pipeline)->input.group_pattern != NULL;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool append(struct cli_run_options *o, char *path)
{
    char **more =
        path != NULL ? realloc(o->listed, ((size_t)o->n_listed + 1) * sizeof *more) : NULL;
    if (more == NULL) {
        free(path);
        return false;
    }
    o->listed = more;
    o->listed[o->n_listed++] = path;
    return true;
}

/* Appends the files of the folder that belong to groups, or the folder if it has no such files. */
static bool append_folder(struct cli_run_options *o, const struct pb_config *config,
                          const char *path)
{
    struct dirent **entry = NULL;
    const int before = o->n_listed, n = scandir(path, &entry, NULL, by_name);
    bool good = true;
    for (int i = 0; i < n; i++) {
        char scene[256];
        const size_t bytes = strlen(path) + strlen(entry[i]->d_name) + 2;
        char *file = malloc(bytes);
        if (file != NULL)
            (void)snprintf(file, bytes, "%s/%s", path, entry[i]->d_name);
        free(entry[i]);
        good = good && file != NULL;
        if (good && group_of(o, config, file, scene) != NULL)
            good = append(o, file);
        else
            free(file);
    }
    free(entry);
    return good && (o->n_listed > before || append(o, strdup(path)));
}

/* Replaces each folder with files of groups by these files. */
static bool list_folders(struct cli_run_options *o, const struct pb_config *config)
{
    bool any = false, good = true;
    for (int i = 0; i < o->n_inputs; i++)
        any = any || may_hold_files(o, config, o->inputs[i]);
    for (int i = 0; any && good && i < o->n_inputs; i++)
        good = may_hold_files(o, config, o->inputs[i]) ? append_folder(o, config, o->inputs[i])
                                                       : append(o, strdup(o->inputs[i]));
    if (!any || !good)
        return good;
    o->inputs = malloc((size_t)o->n_listed * sizeof *o->inputs);
    if (o->inputs == NULL)
        return false;
    memcpy(o->inputs, o->listed, (size_t)o->n_listed * sizeof *o->inputs);
    o->n_inputs = o->n_listed;
    return true;
}

bool cli_input_gather(struct cli_run_options *o, const struct pb_config *config)
{
    int n = 0;
    bool good = list_folders(o, config) && ask(o, config);
    o->groups = calloc((size_t)o->n_inputs + 1, sizeof *o->groups);
    for (int i = 0; good && o->groups != NULL && i < o->n_inputs; i++) {
        struct cli_group group;
        char *path = o->inputs[i];
        good = find_group(o, config, &path, &group);
        if (good && group.pipeline != NULL && is_known(o, n, path, group.pipeline)) {
            free(path);
            free(group.names);
            continue;
        }
        o->groups[n] = good ? group : (struct cli_group){.pipeline = NULL};
        o->inputs[n] = good ? path : o->inputs[n];
        n += good;
    }
    o->n_inputs = n;
    return good && o->groups != NULL;
}

void cli_input_forget(struct cli_run_options *o)
{
    for (int i = 0; o->groups != NULL && i < o->n_inputs; i++) {
        if (o->groups[i].pipeline != NULL)
            free(o->inputs[i]);
        free(o->groups[i].names);
    }
    free(o->groups);
    if (o->listed != NULL)
        free(o->inputs);
    for (int i = 0; i < o->n_listed; i++)
        free(o->listed[i]);
    free(o->listed);
    cli_told_destroy(o->told);
}
