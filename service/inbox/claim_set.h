/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLAIM_SET_H
#define PB_CLAIM_SET_H
/* A set of loose files on its way into work/: a folder there, as if it had been delivered as one.
 * Its files are looked at before they are moved, one by one, and behind that: a file that was
 * written in between shows by its times, one that is still open for writing by its writer. Thread:
 * pool, one at a time. */
#include "service/gather/sets.h"
#include "service/gather/staging.h"
#include "service/inbox/claim_place.h"
#include "service/inbox/intake.h"

/* Whether each file is as it settled and no process writes it, in the directory where they lie now:
 * that of the inbox, or, `moved`, the folder that they were moved to. 0 and their owner (-1:
 * several); -EAGAIN: not now; else *err, which names the file. */
int pb_claim_set_check(struct pb_intake *intake, const struct pb_inbox *inbox,
                       const struct pb_set *set, const char *directory, bool moved,
                       int64_t *out_uid, struct pb_err *err);
/* Moves the files from their place to the folder `to`, whose parent is there: all of them or none.
 * -EAGAIN: one is gone; else *err. */
int pb_claim_set_move(const struct pb_intake *intake, const struct pb_set *set,
                      const struct pb_claim_place *place, const struct pb_job *job, const char *to,
                      struct pb_staging *out_staging, struct pb_err *err);
#endif
