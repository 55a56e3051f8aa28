/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EARLIER_H
#define PB_EARLIER_H
/* Earlier jobs of a set of loose files, which further files may join (input.complete.reopen,
 * service/jobs/set_parts.h). Thread: pool; pb_earlier_join: also that of pb_intake_adopt. */
#include "pipeline/scene/assemble.h"
#include "service/inbox/intake.h"

/* Finds the earlier jobs of a set of the inbox whose reopen_ms is not 0. The caller must fini
 * *out. Returns 0; -ENOMEM; or *err if the store cannot be read. */
int pb_earlier_of_set(struct pb_intake *intake, const struct pb_inbox *inbox,
                      const struct pb_assembled *set, struct pb_err *err,
                      struct pb_scene_earlier *out);
/* Sets the set of a new job of loose files, whose id, scene, folder and pipeline are set: the set
 * of the job that it replaces, otherwise a new one. */
int pb_earlier_join(struct pb_intake *intake, struct pb_job *job, struct pb_err *err);
/* Forgets the sets that no file may join any more; retention may remove their files from then on.
 * Sets of a pipeline that was removed from the configuration keep its last `reopen`. Returns 0 or
 * *err. Thread: pool, one at a time. */
int pb_earlier_trim(struct pb_intake *intake, struct pb_err *err);
#endif
