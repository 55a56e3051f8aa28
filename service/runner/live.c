/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/live.h"

#include "config/pipeline_config.h"
#include "pipeline/lines/segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool has_stream(const struct pb_config *config, const struct pb_job *job)
{
    const struct pb_pipeline_config *pipeline = pb_config_pipeline(config, job->pipeline);
    return pipeline != NULL && pipeline->input.stream != NULL && job->manifest.input != NULL;
}

bool pb_live_is_growing(const struct pb_config *config, const struct pb_job *job)
{
    if (!has_stream(config, job))
        return false;
    const int fd = open(job->manifest.input, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool grows = fd >= 0 && pb_segment_is_growing(fd) == 1;
    if (fd >= 0)
        (void)close(fd);
    return grows;
}

bool pb_live_is_of_stream(const struct pb_config *config, const struct pb_job *job)
{
    return has_stream(config, job) && job->manifest.n_entries == 1 &&
           job->manifest.entry[0].bytes < 0;
}

void pb_live_note_failed(struct pb_live *live, const char *id)
{
    for (size_t i = 0; i < PB_LIVE_KEPT; i++) {
        if (strcmp(live->failed[i].id, id) == 0) {
            live->failed[i].n++;
            return;
        }
    }
    const unsigned at = live->next++ % PB_LIVE_KEPT;
    (void)snprintf(live->failed[at].id, sizeof live->failed[at].id, "%s", id);
    live->failed[at].n = 1;
}

bool pb_live_may_try(const struct pb_live *live, const char *id)
{
    for (size_t i = 0; i < PB_LIVE_KEPT; i++)
        if (strcmp(live->failed[i].id, id) == 0)
            return live->failed[i].n < PB_LIVE_TRIES;
    return true;
}
