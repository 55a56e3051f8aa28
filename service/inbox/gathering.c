/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/gathering.h"

#include "service/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb_gathering {
    struct pb_sets *sets;
    struct pb_settle_file *as_file; /* one a set: what the intake says about it */
    size_t next;                    /* set to look at */
    size_t n_offered;               /* files of the sets that were offered */
    struct pb_gathering_told shown;
};

struct pb_gathering *pb_gathering_create(void)
{
    struct pb_gathering *gathering = calloc(1, sizeof *gathering);
    if (gathering != NULL && (gathering->sets = pb_sets_create()) == NULL) {
        free(gathering);
        gathering = NULL;
    }
    return gathering;
}

void pb_gathering_destroy(struct pb_gathering *gathering)
{
    if (gathering == NULL)
        return;
    pb_sets_destroy(gathering->sets);
    free(gathering->as_file);
    free(gathering);
}

static bool gathers(const struct pb_config *config)
{
    bool any = false;
    for (size_t i = 0; i < config->n_pipelines; i++)
        any = any || config->pipelines[i].input.group_pattern != NULL;
    return any;
}

/* rc: of the files before; after a failure they are held all the same, as none of them is a job. */
static int add(struct pb_gathering *gathering, const struct pb_config *config,
               struct pb_settle *settle, size_t i, int rc)
{
    char scene[256];
    const struct pb_settle_file *file = pb_settle_at(settle, i);
    const struct pb_pipeline_config *pipeline =
        file->is_folder ? NULL : pb_config_match_group(config, file->name, scene);
    if (pipeline == NULL)
        return rc;
    const struct pb_set_file of_set = {.name = file->name,
                                       .size = file->size,
                                       .inode = file->inode,
                                       .mtime_ns = file->mtime_ns,
                                       .ctime_ns = file->ctime_ns,
                                       .is_still = pb_settle_hold(settle, i),
                                       .number = i};
    return rc ? rc
              : pb_sets_add(gathering->sets, (size_t)(pipeline - config->pipelines), scene,
                            &of_set);
}

/* A set as the one input that it is. */
static int describe(struct pb_gathering *gathering)
{
    size_t n = pb_sets_count(gathering->sets);
    free(gathering->as_file);
    gathering->as_file = calloc(n + 1, sizeof *gathering->as_file);
    for (size_t i = 0; gathering->as_file != NULL && i < n; i++) {
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        struct pb_settle_file *file = &gathering->as_file[i];
        file->name = set->scene;
        file->size = set->bytes;
        file->mtime_ns = set->youngest_ns;
        file->is_folder = true;
    }
    return gathering->as_file != NULL ? 0 : -1;
}

void pb_gathering_sort(struct pb_gathering *gathering, struct pb_intake *intake,
                       struct pb_settle *settle, int64_t mono_ms, int64_t wall_ms)
{
    const struct pb_sets_now now = {wall_ms, pb_settle_trusts_wall(settle, mono_ms)};
    int rc = 0;
    pb_sets_begin(gathering->sets);
    gathering->next = gathering->n_offered = 0;
    (void)pthread_mutex_lock(&intake->lock);
    const struct pb_config *config = intake->config;
    bool any = gathers(config);
    for (size_t i = 0; any && i < pb_settle_count(settle); i++)
        rc = add(gathering, config, settle, i, rc);
    rc = rc ? rc : pb_sets_end(gathering->sets, config, &now);
    (void)pthread_mutex_unlock(&intake->lock);
    rc = rc ? rc : describe(gathering);
    if (rc != 0) { /* the files wait for the next scan */
        pb_sets_begin(gathering->sets);
        pb_log(PB_LOG_WARNING, "inbox: no memory to gather files");
    }
}

bool pb_gathering_next(struct pb_gathering *gathering, struct pb_settle *settle,
                       struct pb_claimed *out)
{
    const struct pb_settle_file *file = pb_settle_next(settle);
    *out = (struct pb_claimed){.file = file};
    if (file != NULL)
        return true;
    while (gathering->next < pb_sets_count(gathering->sets)) {
        size_t i = gathering->next++;
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        if (!set->is_due)
            continue;
        gathering->n_offered += set->n;
        *out = (struct pb_claimed){.file = &gathering->as_file[i], .set = set};
        return true;
    }
    return false;
}

void pb_gathering_again(struct pb_gathering *gathering, struct pb_settle *settle,
                        const struct pb_claimed *file)
{
    const struct pb_set *set = file->set;
    if (set == NULL) {
        pb_settle_again(settle, file->file);
        return;
    }
    gathering->n_offered -= set->n;
    for (size_t i = 0; i < set->n; i++)
        pb_settle_again(settle, pb_settle_at(settle, set->file[i].number));
}

size_t pb_gathering_waiting(const struct pb_gathering *gathering, const struct pb_settle *settle)
{
    return pb_settle_waiting(settle) - gathering->n_offered;
}

int64_t pb_gathering_due_ms(const struct pb_gathering *gathering, int64_t wall_ms)
{
    return pb_sets_due_ms(gathering->sets, wall_ms);
}

void pb_gathering_show(struct pb_gathering *gathering)
{
    struct pb_gathering_told *out = &gathering->shown;
    out->n = out->n_all = 0;
    for (size_t i = 0; i < pb_sets_count(gathering->sets); i++) {
        const struct pb_set *set = pb_sets_at(gathering->sets, i);
        if (!set->is_incomplete || set->is_due)
            continue;
        out->n_all++;
        if (out->n == PB_GATHERING_TOLD_MAX)
            continue;
        struct pb_gathering_set *told = &out->set[out->n++];
        (void)snprintf(told->scene, sizeof told->scene, "%s", set->scene);
        (void)snprintf(told->pipeline, sizeof told->pipeline, "%s", set->pipeline);
        (void)snprintf(told->missing, sizeof told->missing, "%s", set->missing);
        told->files = set->n;
        told->expires_ms = set->expires_ms;
    }
}

const struct pb_gathering_told *pb_gathering_shown(const struct pb_gathering *gathering)
{
    return &gathering->shown;
}
