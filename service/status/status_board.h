/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATUS_BOARD_H
#define PB_STATUS_BOARD_H
/* Jobs that are shown otherwise than the job store has them: running ones with their progress,
 * those whose last change it has not taken yet (a full disk), and those that are just ending.
 * Thread: status. */
#include "service/jobs/job_store.h"

struct pb_board_entry {
    struct pb_job job;
    int64_t held_ms; /* since when, or 0 = not */
};

struct pb_board {
    struct pb_board_entry *at;
    size_t n, room;
};

void pb_board_fini(struct pb_board *board);
/* The job as the service told it last, or NULL: as it is stored. Borrowed until the next change. */
const struct pb_job *pb_board_find(const struct pb_board *board, const char *id);
/* A job changed; it is kept unless the store shows the change already. held: kept in any case,
 * until the next put of it (or a minute long). */
void pb_board_put(struct pb_board *board, struct pb_job_store *store, const struct pb_job *job,
                  bool held);
/* Forgets what the store has caught up with. */
void pb_board_sweep(struct pb_board *board, struct pb_job_store *store);
#endif
