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

/* Zero bytes: nothing waits. */
struct pb_config_waits {
    struct pb_config_wait *at; /* ascending by job */
    size_t n, room;
    char **proved; /* names of pipelines with a success */
    size_t n_proved;
};

/* A run of the job ended with the code. 1: it waits; 0: the file is the cause, it fails;
 * -ENOMEM. */
int pb_config_waits_fault(struct pb_config_waits *waits, int64_t job, const char *pipeline,
                          enum pb_code code);
/* A job of the pipeline was successful. True: others need not wait any longer. */
bool pb_config_waits_success(struct pb_config_waits *waits, const char *pipeline);
/* The job is over. */
void pb_config_waits_over(struct pb_config_waits *waits, int64_t job);
bool pb_config_waits_has(const struct pb_config_waits *waits, int64_t job);
/* The configuration is another one: nothing waits, nothing is proved. Frees what is held. */
void pb_config_waits_clear(struct pb_config_waits *waits);
#endif
