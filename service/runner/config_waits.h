/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFIG_WAITS_H
#define PB_CONFIG_WAITS_H
/* Jobs of the inbox that the configuration keeps from running (PB_CLASS_CONFIG: a pipeline that
 * names bands which the file does not have, too little compute.memory). The rule:
 *
 *  1. Such a job waits until the configuration is loaded again. Other jobs continue; no file is
 *     moved.
 *  2. When a job of the same pipeline is successful with this configuration, the pipeline is
 *     correct: jobs that wait for it run again, and a job that then ends by such a fault fails,
 *     because its file is the cause. This does not apply to plan.memory, because another file may
 *     need more memory.
 *
 * The list lasts until the service ends; after a start all jobs are tried again. Owns its memory.
 * Thread: loop. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_config_wait;

/* All-zero: no job waits. */
struct pb_config_waits {
    struct pb_config_wait *at; /* ascending by job */
    size_t n, room;
    char **proved; /* names of pipelines with a success */
    size_t n_proved;
};

/* Call after a run of the job ended with the code. Returns 1 if it waits; 0 if the file is the
 * cause and the job fails; -ENOMEM. */
int pb_config_waits_fault(struct pb_config_waits *waits, int64_t job, const char *pipeline,
                          enum pb_code code);
/* Call after a job of the pipeline was successful. Returns true if other jobs need not wait any
 * longer. */
bool pb_config_waits_success(struct pb_config_waits *waits, const char *pipeline);
/* Call when the job is over. */
void pb_config_waits_over(struct pb_config_waits *waits, int64_t job);
/* Returns the numbers of the jobs that wait, ascending, as a malloc'd array of waits->n; NULL if
 * no job waits, or out of memory. */
int64_t *pb_config_waits_copy(const struct pb_config_waits *waits);
/* Call after a change of the configuration: no job waits and no pipeline has a success. Frees the
 * memory. */
void pb_config_waits_clear(struct pb_config_waits *waits);
#endif
