/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/single.h"

#include "config/base/base_name.h"
#include "config/base/err.h"
#include "config/config.h"
#include "config/group_pattern.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/io/file_name.h"
#include "pipeline/scene/assemble.h"
#include "pipeline/scene/belonging.h"
#include "pipeline/scene/scene_walk.h"
#include "pipeline/scene/scene_search.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_sidecar(const struct pb_config *config, const char *path)
{
    const char *base = pb_base_name(path), *ending;
    bool is = false;
    for (size_t i = 0; !is && (ending = pb_sidecar_known(i)) != NULL; i++)
        is = pb_sidecar_stem(base, ending) > 0;
    for (size_t p = 0; !is && p < config->n_pipelines; p++) {
        const struct pb_input_config *input = &config->pipelines[p].input;
        for (size_t i = 0; !is && i < input->n_sidecars; i++)
            is = pb_sidecar_stem(base, input->sidecars[i]) > 0;
    }
    return is;
}

static void set(struct pb_single *out, enum pb_single_kind kind,
                const struct pb_pipeline_config *pipeline)
{
    out->kind = kind;
    out->pipeline = pipeline;
}

/* input.group may fit metadata, too. They belong to their file and are no part of a scene by
 * themselves. A file of a scene is no input by itself, even if input.match fits. */
void pb_single_find(const struct pb_config *config, const char *path, bool is_folder,
                    struct pb_single *out)
{
    *out = (struct pb_single){.kind = PB_SINGLE_FOREIGN};
    const struct pb_pipeline_config *found = NULL;
    if (is_folder) {
        found = pb_config_match_folder(config, path);
        set(out, found != NULL ? PB_SINGLE_INPUT : PB_SINGLE_FOREIGN, found);
        return;
    }
    const struct pb_pipeline_config *group = pb_config_match_group(config, path, NULL, out->scene);
    if (group == NULL)
        out->scene[0] = '\0';
    if (group != NULL && out->scene[0] != '\0')
        set(out, PB_SINGLE_PART, group);
    else if (group == NULL && (found = pb_config_match(config, path)) != NULL)
        set(out, PB_SINGLE_INPUT, found);
    else if ((found = pb_belonging_metadata(config, path)) != NULL)
        set(out, PB_SINGLE_METADATA, found);
    else if (group != NULL)
        set(out, PB_SINGLE_PART, group);
    else if (is_sidecar(config, path))
        set(out, PB_SINGLE_SIDECAR, NULL);
}

/* --- folder of a set -------------------------------------------------------------------------- */

/* Assembles the files of a walked folder; out_entry: borrowed by the assembly, malloc'd. */
static int assemble(const struct pb_config *config, const struct pb_scene_walk *walk,
                    struct pb_assembly *assembly, struct pb_entry **out_entry)
{
    struct pb_entry *entry = calloc(walk->n + 1, sizeof *entry);
    size_t n = 0;
    *out_entry = entry;
    for (size_t i = 0; entry != NULL && i < walk->n; i++)
        if (strchr(walk->entry[i].path, '/') == NULL)
            entry[n++] = (struct pb_entry){.path = walk->entry[i].path, .is_settled = true};
    const struct pb_assembly_input input = {
        .config = config, .entry = entry, .n = n, .wall_ms = INT64_MAX};
    return entry != NULL && assembly != NULL ? pb_assembly_group(assembly, &input) : -ENOMEM;
}

/* Returns true if the files may be those of the scene. A scene that metadata determine is not
 * checked again: the folder belongs to it. */
static bool is_of(const struct pb_config *config, const struct pb_assembled *set, const char *scene)
{
    char name[256];
    if (set->form == PB_FORM_GROUP) {
        pb_file_name_clean(set->name, name);
        return strcmp(name, scene) == 0;
    }
    if (set->form != PB_FORM_ORPHAN || set->pipeline_number == SIZE_MAX)
        return set->form == PB_FORM_UNASSIGNED;
    const struct pb_group_pattern *group =
        config->pipelines[set->pipeline_number].input.group_pattern;
    return group != NULL && pb_group_pattern_fits(group, set->name, NULL, name);
}

int pb_set_folder_pipeline(const struct pb_config *config, const char *path, const char *scene,
                           struct pb_err *err, const struct pb_pipeline_config **out)
{
    struct pb_scene_walk walk;
    struct pb_entry *entry = NULL;
    struct pb_assembly *assembly = pb_assembly_create();
    size_t first = config->n_pipelines;
    int rc = pb_scene_walk_open(path, err, &walk);
    if (rc == 0 && assemble(config, &walk, assembly, &entry) != 0)
        rc = pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", path);
    for (size_t i = 0; rc == 0 && i < pb_assembly_count(assembly); i++) {
        const struct pb_assembled *set = pb_assembly_at(assembly, i);
        if (is_of(config, set, scene) && set->pipeline_number < first)
            first = set->pipeline_number;
    }
    pb_assembly_destroy(assembly);
    free(entry);
    pb_scene_walk_close(&walk);
    if (rc == 0)
        *out = first < config->n_pipelines ? &config->pipelines[first] : NULL;
    return rc;
}
