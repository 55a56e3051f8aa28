/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLAIM_COMPANION_H
#define PB_CLAIM_COMPANION_H
/* The companion of an input that is claimed. Thread: pool. */
#include "service/inbox/claim_place.h"
#include "service/inbox/companion.h"
#include "service/jobs/job.h"

/* Moves it into claim (work/<id>), behind its input of that name: a service that dies in between
 * leaves it in the inbox, where pb_intake_adopt finds it. Sets job->companion. 0 too when the rule
 * expects none; -EAGAIN: it is gone; else *err. */
int pb_claim_companion_take(const struct pb_companion_rule *rule,
                            const struct pb_claim_place *place, const char *name, const char *claim,
                            struct pb_job *job, struct pb_err *err);
/* Moves it back, before its input of that name: a service that dies in between finds both. When
 * another file has that name now, it would be taken for that one's: then it stays in work/<id>, as
 * the input does, for pb_intake_adopt. */
void pb_claim_companion_give_back(const struct pb_claim_place *place, const char *name,
                                  const struct pb_job *job);
#endif
