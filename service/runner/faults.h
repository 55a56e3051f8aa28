/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FAULTS_H
#define PB_FAULTS_H
/* Conditions that keep waiting jobs from starting: faults of the machine (hold.h has the rule) and
 * of the configuration (config_waits.h), with the troubles "queue" and "config" that report them.
 * It changes no job's state. Owns its memory. Members belong to faults.c, except those above the
 * line, which the owner sets before the first use. Thread: loop. */
#include "service/runner/config_waits.h"
#include "service/runner/hold.h"
#include "service/runner/runner_env.h"
#include "service/base/troubles.h"

struct pb_faults {
    struct pb_troubles *troubles; /* borrowed, like all of these */
    const struct pb_runner_env *env;
    void (*on_freed)(void *user); /* jobs that waited for another configuration may start */
    void *user;
    /* ---------------------------------------------------------------------------------------- */
    struct pb_hold hold;
    struct pb_config_waits waits;
};

/* Call after a fault of the machine in job->error ended a run that began at began_ms.
 * PB_HOLD_ASIDE: the job must fail, with the text in job->error.message. Otherwise it waits again.
 */
enum pb_hold_verdict pb_faults_machine(struct pb_faults *faults, struct pb_job *job,
                                       int64_t began_ms);
/* Call after a run could not get its input from another node, or bring its products there: raises
 * the trouble "fetch", which lasts until such a run succeeds (job: NULL). */
void pb_faults_fetch(struct pb_faults *faults, const struct pb_job *job);
/* Call after the error of the configuration in job->error ended a run. Returns 1: the job waits
 * for another configuration; 0: it fails; -ENOMEM. */
int pb_faults_config(struct pb_faults *faults, const struct pb_job *job);
/* Call if no job could be started at all. */
void pb_faults_cannot_start(struct pb_faults *faults, const struct pb_err *err);
/* Call when the job has its new state and did not end by a fault. over: it does not run again. */
void pb_faults_end(struct pb_faults *faults, const struct pb_job *job, bool over);
/* Call after a change of the configuration: the next job may start now. */
void pb_faults_config_changed(struct pb_faults *faults);
/* Call when no job waits any more: ends the hold. */
void pb_faults_clear(struct pb_faults *faults);
void pb_faults_fini(struct pb_faults *faults);
#endif
