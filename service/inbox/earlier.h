/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EARLIER_H
#define PB_EARLIER_H
/* What the service did of a set of loose files before, which further files may join
 * (input.complete.reopen, service/jobs/set_parts.h). Thread: pool. */
#include "service/gather/sets.h"
#include "service/inbox/intake.h"

/* Of a set of that inbox, whose reopen_ms is not 0. *out is the caller's to fini. -ENOMEM, or *err:
 * the store cannot be asked. */
int pb_earlier_of_set(struct pb_intake *intake, const struct pb_inbox *inbox,
                      const struct pb_set *set, struct pb_err *err, struct pb_set_earlier *out);
/* Sets the set of a new job of loose files, whose id, scene, folder and pipeline are known: that of
 * the job that it replaces, else its own. */
int pb_earlier_join(struct pb_intake *intake, struct pb_job *job, struct pb_err *err);
/* Forgets the sets that no file may join any more: retention may remove their files then. Sets of
 * a pipeline that was removed from the configuration keep its last `reopen`. 0 or *err. Thread:
 * pool, one at a time. */
int pb_earlier_trim(struct pb_intake *intake, struct pb_err *err);
#endif
