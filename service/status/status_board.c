/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_board.h"

#include "config/base/clock.h"

#include <stdlib.h>
#include <string.h>

#define HOLD_MS 60000

void pb_board_fini(struct pb_board *board)
{
    for (size_t i = 0; i < board->n; i++)
        pb_job_fini(&board->at[i].job);
    free(board->at);
    *board = (struct pb_board){0};
}

const struct pb_job *pb_board_find(const struct pb_board *board, const char *id)
{
    for (size_t i = 0; i < board->n; i++) {
        if (strcmp(board->at[i].job.id, id) == 0)
            return &board->at[i].job;
    }
    return NULL;
}

static void forget(struct pb_board *board, const char *id)
{
    for (size_t i = 0; i < board->n; i++) {
        if (strcmp(board->at[i].job.id, id) != 0)
            continue;
        pb_job_fini(&board->at[i].job);
        board->at[i] = board->at[--board->n];
        return;
    }
}

/* Progress is never stored. A job that the store does not know any more was pruned. */
static bool is_stored(struct pb_job_store *store, const struct pb_job *job)
{
    struct pb_job row;
    struct pb_err err = {0};
    if (job->status == PB_JOB_RUNNING)
        return false;
    if (pb_job_store_find(store, job->id, &err, &row) != 0)
        return err.code == PB_E_JOB_UNKNOWN;
    bool same = row.status == job->status && row.updated_ms >= job->updated_ms;
    pb_job_fini(&row);
    return same;
}

void pb_board_put(struct pb_board *board, struct pb_job_store *store, const struct pb_job *job,
                  bool held)
{
    struct pb_board_entry entry = {.held_ms = held ? pb_clock_mono_ms() : 0};
    forget(board, job->id);
    if (!held && is_stored(store, job))
        return;
    if (board->n == board->room) {
        size_t room = board->room ? board->room * 2 : 16;
        struct pb_board_entry *more = realloc(board->at, room * sizeof *more);
        if (more == NULL)
            return; /* the stored state is shown */
        board->at = more;
        board->room = room;
    }
    if (pb_job_copy(&entry.job, job) == 0)
        board->at[board->n++] = entry;
}

void pb_board_sweep(struct pb_board *board, struct pb_job_store *store)
{
    int64_t now_ms = pb_clock_mono_ms();
    for (size_t i = board->n; i-- > 0;) {
        bool held = board->at[i].held_ms != 0 && now_ms - board->at[i].held_ms < HOLD_MS;
        if (!held && is_stored(store, &board->at[i].job))
            forget(board, board->at[i].job.id);
    }
}
