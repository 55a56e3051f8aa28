/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/config_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 64

struct pb_config_wait {
    int64_t job;
    enum pb_code code;
    char pipeline[256];
};

/* Index of the first entry whose job is not below this one. */
static size_t slot_of(const struct pb_config_waits *waits, int64_t job)
{
    size_t low = 0, high = waits->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (waits->at[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_proved(const struct pb_config_waits *waits, const char *pipeline)
{
    for (size_t i = 0; i < waits->n_proved; i++) {
        if (strcmp(waits->proved[i], pipeline) == 0)
            return true;
    }
    return false;
}

static int grow(struct pb_config_waits *waits)
{
    size_t room = waits->room ? waits->room * 2 : ROOM_FIRST;
    struct pb_config_wait *more =
        waits->n < waits->room ? waits->at : realloc(waits->at, room * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    waits->room = waits->n < waits->room ? waits->room : room;
    waits->at = more;
    return 0;
}

int pb_config_waits_fault(struct pb_config_waits *waits, int64_t job, const char *pipeline,
                          enum pb_code code)
{
    if (code != PB_E_PLAN_MEMORY && is_proved(waits, pipeline))
        return 0;
    size_t at = slot_of(waits, job);
    if (at == waits->n || waits->at[at].job != job) {
        if (grow(waits) != 0)
            return -ENOMEM;
        memmove(&waits->at[at + 1], &waits->at[at], (waits->n - at) * sizeof *waits->at);
        waits->n++;
    }
    waits->at[at] = (struct pb_config_wait){.job = job, .code = code};
    (void)strncpy(waits->at[at].pipeline, pipeline, sizeof waits->at[at].pipeline - 1);
    return 1;
}

/* Notes a success of the pipeline; if out of memory, only its next success is noted. */
static void prove(struct pb_config_waits *waits, const char *pipeline)
{
    char **more = realloc(waits->proved, (waits->n_proved + 1) * sizeof *more);
    char *name = more != NULL ? strdup(pipeline) : NULL;
    if (more != NULL)
        waits->proved = more;
    if (name != NULL)
        waits->proved[waits->n_proved++] = name;
}

bool pb_config_waits_success(struct pb_config_waits *waits, const char *pipeline)
{
    size_t kept = 0;
    if (is_proved(waits, pipeline))
        return false;
    prove(waits, pipeline);
    for (size_t i = 0; i < waits->n; i++) {
        const struct pb_config_wait *wait = &waits->at[i];
        if (wait->code == PB_E_PLAN_MEMORY || strcmp(wait->pipeline, pipeline) != 0)
            waits->at[kept++] = *wait;
    }
    bool freed = kept < waits->n;
    waits->n = kept;
    return freed;
}

void pb_config_waits_over(struct pb_config_waits *waits, int64_t job)
{
    size_t at = slot_of(waits, job);
    if (at == waits->n || waits->at[at].job != job)
        return;
    waits->n--;
    memmove(&waits->at[at], &waits->at[at + 1], (waits->n - at) * sizeof *waits->at);
}

int64_t *pb_config_waits_copy(const struct pb_config_waits *waits)
{
    int64_t *jobs = waits->n > 0 ? malloc(waits->n * sizeof *jobs) : NULL;
    for (size_t i = 0; jobs != NULL && i < waits->n; i++)
        jobs[i] = waits->at[i].job;
    return jobs;
}

void pb_config_waits_clear(struct pb_config_waits *waits)
{
    for (size_t i = 0; i < waits->n_proved; i++)
        free(waits->proved[i]);
    free(waits->proved);
    free(waits->at);
    memset(waits, 0, sizeof *waits);
}
