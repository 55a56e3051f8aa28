/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Which pipeline takes an input, by its name. */
#include "config/base/archive_name.h"
#include "config/base/base_name.h"
#include "config/base/glob.h"
#include "config/config.h"
#include "config/group_pattern.h"
#include "config/match.h"
#include "config/pipeline_config.h"

#include <stdio.h>
#include <string.h>

/* The pattern of input.match that the name fits; NULL = none does. */
static const char *match_of(const struct pb_input_config *input, const char *name)
{
    for (size_t i = 0; i < input->n_match; i++)
        if (pb_glob_fits(input->match[i], name, PB_GLOB_ANY_CASE))
            return input->match[i];
    return NULL;
}

/* The last part of the folder's path; false: there is none, or it is too long. */
static bool folder_name(const char *path, char out[256])
{
    size_t n;
    const char *base = pb_base_name_folder(path, &n);
    if (n == 0 || n >= 256)
        return false;
    memcpy(out, base, n);
    out[n] = '\0';
    return true;
}

bool pb_config_takes_folder(const struct pb_pipeline_config *pipeline, const char *path)
{
    char name[256], pattern[256];
    const struct pb_input_config *input = &pipeline->input;
    return input->scene != NULL && folder_name(path, name) && folder_name(input->scene, pattern) &&
           pb_glob_fits(pattern, name, PB_GLOB_ANY_CASE | PB_GLOB_GROUPS);
}

/* The pattern of input.archives that the name of an archive fits; NULL = none does. */
static const char *archives_of(const struct pb_input_config *input, const char *name)
{
    for (size_t i = 0; i < input->n_archives && pb_archive_name_stem(name) > 0; i++)
        if (pb_glob_fits(input->archives[i], name, PB_GLOB_ANY_CASE))
            return input->archives[i];
    return NULL;
}

/* A SAFE is packed as X.SAFE.zip or as X.zip, the files of a group as SCENE.tar. */
static bool takes_archive(const struct pb_pipeline_config *pipeline, const char *base)
{
    char name[256];
    size_t stem = pb_archive_name_stem(base);
    if (archives_of(&pipeline->input, base) != NULL)
        return true;
    if (stem == 0 || stem + sizeof ".SAFE" > sizeof name)
        return false;
    if (pipeline->input.group_pattern != NULL)
        return pb_group_pattern_begins(pipeline->input.group_pattern, base, stem);
    (void)snprintf(name, sizeof name, "%.*s", (int)stem, base);
    if (pb_config_takes_folder(pipeline, name))
        return true;
    (void)snprintf(name + stem, sizeof name - stem, ".SAFE");
    return pb_config_takes_folder(pipeline, name);
}

const struct pb_pipeline_config *pb_config_match(const struct pb_config *config, const char *path)
{
    const char *base = pb_base_name(path);
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (match_of(&config->pipelines[i].input, base) != NULL ||
            takes_archive(&config->pipelines[i], base))
            return &config->pipelines[i];
    return NULL;
}

const struct pb_pipeline_config *pb_config_match_folder(const struct pb_config *config,
                                                        const char *path)
{
    for (size_t i = 0; i < config->n_pipelines; i++)
        if (pb_config_takes_folder(&config->pipelines[i], path))
            return &config->pipelines[i];
    return NULL;
}

const struct pb_pipeline_config *pb_config_match_group(const struct pb_config *config,
                                                       const char *path,
                                                       const struct pb_group_facts *facts,
                                                       char *out_scene)
{
    const char *base = pb_base_name(path);
    for (size_t i = 0; i < config->n_pipelines; i++) {
        const struct pb_group_pattern *group = config->pipelines[i].input.group_pattern;
        if (group != NULL && pb_group_pattern_fits(group, base, facts, out_scene))
            return &config->pipelines[i];
    }
    return NULL;
}

bool pb_config_match_why(const struct pb_pipeline_config *pipeline, const char *path,
                         enum pb_config_kind kind, char *out, size_t bytes)
{
    const struct pb_input_config *input = &pipeline->input;
    const char *pattern = kind == PB_INPUT_FILE ? match_of(input, pb_base_name(path)) : NULL;
    if (kind == PB_INPUT_GROUP)
        (void)snprintf(out, bytes, "the names of its files fit input.group");
    else if (kind == PB_INPUT_FOLDER && pb_config_takes_folder(pipeline, path))
        (void)snprintf(out, bytes, "its name fits input.scene '%s'", input->scene);
    else if (pattern != NULL)
        (void)snprintf(out, bytes, "its name fits '%s' of input.match", pattern);
    else if (kind == PB_INPUT_FILE && archives_of(input, pb_base_name(path)) != NULL)
        (void)snprintf(out, bytes, "its name fits '%s' of input.archives",
                       archives_of(input, pb_base_name(path)));
    else if (kind == PB_INPUT_FILE && takes_archive(pipeline, pb_base_name(path)))
        (void)snprintf(out, bytes, "its name without the suffix fits input.%s '%.120s'",
                       input->scene ? "scene" : "group",
                       input->scene ? input->scene : input->group);
    else
        return false;
    return true;
}

/* Adds to a text of n bytes; false: there is no room, and it ends in "...". */
static bool add(char *text, size_t n, const char *before, const char *word)
{
    size_t used = strlen(text);
    if (used + strlen(before) + strlen(word) + sizeof ", ..." > n) {
        (void)snprintf(text + used, n - used, "%s...", used ? ", " : "");
        return false;
    }
    (void)snprintf(text + used, n - used, "%s%s", before, word);
    return true;
}

void pb_config_takes(const struct pb_config *config, bool folders, char *out, size_t bytes)
{
    bool room = true;
    out[0] = '\0';
    for (size_t i = 0; i < config->n_pipelines && room; i++) {
        const struct pb_pipeline_config *p = &config->pipelines[i];
        const struct pb_input_config *input = &p->input;
        if (folders ? input->scene == NULL : input->n_match == 0 && input->group == NULL)
            continue;
        room = add(out, bytes, out[0] ? "; " : "", p->name) && add(out, bytes, " takes", "");
        if (!folders && input->group != NULL)
            room = room && add(out, bytes, " by input.group ", input->group);
        if (folders)
            room = room && add(out, bytes, " ", input->scene);
        for (size_t k = 0; !folders && k < input->n_match && room; k++)
            room = add(out, bytes, " ", input->match[k]);
    }
    if (out[0] == '\0')
        (void)snprintf(out, bytes, "none takes %s",
                       folders ? "folders" : "single files by their names (input.match)");
}
