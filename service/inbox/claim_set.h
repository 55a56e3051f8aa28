/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLAIM_SET_H
#define PB_CLAIM_SET_H
/* Moves a set of loose files into work/, into a folder there, as if it had been delivered as one.
 * Its files are checked one by one before the move and again after it: a file that was written in
 * between has other times, and a file that is still open for writing has a writer. Thread: pool,
 * one at a time. */
#include "service/inbox/claim_place.h"
#include "service/inbox/intake.h"
#include "service/inbox/staging.h"

/* Checks that each file is as it settled and that no process writes it, in the directory where the
 * files are now: that of the inbox or, if `moved`, the folder that they were moved to. Returns 0
 * and their owner (-1: several owners); -EAGAIN: not ready now; otherwise *err, which names the
 * file. */
int pb_claim_set_check(struct pb_intake *intake, const struct pb_inbox *inbox,
                       const struct pb_assembled *set, const char *directory, bool moved,
                       int64_t *out_uid, struct pb_err *err);
/* Moves the files from their place to the folder `to`, whose parent exists: all of them or no
 * file. -EAGAIN: a file is gone; otherwise *err. */
int pb_claim_set_move(const struct pb_intake *intake, const struct pb_assembled *set,
                      const struct pb_claim_place *place, const struct pb_job *job, const char *to,
                      struct pb_staging *out_staging, struct pb_err *err);
#endif
