/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/single.h"

#include "config/base/base_name.h"
#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "pipeline/scene/belonging.h"
#include "pipeline/scene/sidecar_names.h"

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
