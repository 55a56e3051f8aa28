/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

/* Whether every name that fits `later` fits `earlier`. A '*' of the earlier pattern takes any text,
 * also the wildcards of the later one and all that they stand for. */
static bool covers(const char *earlier, const char *later)
{
    if (strcasecmp(earlier, later) == 0)
        return true;
    return strpbrk(earlier, "?[\\") == NULL && fnmatch(earlier, later, FNM_CASEFOLD) == 0;
}

static bool covers_all(const struct pb_input_config *earlier, const struct pb_input_config *later)
{
    bool all = earlier->n_files == 0 && later->n_files == 0 && later->n_match > 0;
    for (size_t i = 0; i < later->n_match && all; i++) {
        bool one = false;
        for (size_t k = 0; k < earlier->n_match && !one; k++)
            one = covers(earlier->match[k], later->match[i]);
        all = one;
    }
    return all;
}

const struct pb_pipeline_config *pb_config_covers(const struct pb_config *config,
                                                  const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < config->n_pipelines && &config->pipelines[i] != pipeline; i++)
        if (covers_all(&config->pipelines[i].input, &pipeline->input))
            return &config->pipelines[i];
    return NULL;
}
