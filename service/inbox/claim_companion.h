/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLAIM_COMPANION_H
#define PB_CLAIM_COMPANION_H
/* Claims the companion of an input. Thread: pool. */
#include "service/inbox/claim_place.h"
#include "service/inbox/companion.h"
#include "service/jobs/job.h"

/* Adds the companion to the job's manifest, before the files of the input, which may fill it.
 * Returns 0, also if the rule expects no companion; -EAGAIN: the rule does not fit; or *err. */
int pb_claim_companion_expect(const struct pb_companion_rule *rule,
                              const struct pb_claim_place *place, const char *name,
                              struct pb_job *job, struct pb_err *err);
/* Moves the companion into claim (work/<id>) after its input `name`: if the service dies in
 * between, the companion is still in the inbox, where pb_intake_adopt finds it. Sets
 * its place in the job's manifest. Returns 0, also if the rule expects no companion; -EAGAIN:
 * the companion is gone; otherwise *err. */
int pb_claim_companion_take(const struct pb_companion_rule *rule,
                            const struct pb_claim_place *place, const char *name, const char *claim,
                            struct pb_job *job, struct pb_err *err);
/* Moves the companion back, before its input `name`: if the service dies in between, the next
 * start finds both. If another file has that name now, the companion would be assigned to that
 * file; then it stays in work/<id>, with the input, for pb_intake_adopt. */
void pb_claim_companion_give_back(const struct pb_claim_place *place, const char *name,
                                  const struct pb_job *job);
#endif
