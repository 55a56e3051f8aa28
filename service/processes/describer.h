/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DESCRIBER_H
#define PB_DESCRIBER_H
/* Asks a worker process what the metadata of loose files say (input.by with {meta.*}), one file
 * after the other in the order in which they came. The process is none of those that run jobs: it
 * starts with the first question, and ends when none comes for a while. A file at which it dies or
 * takes longer than service.stall is tried service.max_attempts times in all. What is the machine's
 * fault (a process that is killed or cannot run, no memory, a disk that does not answer) is no
 * answer: the file is asked again until there is one. Thread: loop. */
#include "config/config.h"
#include "service/processes/worker_launch.h"
#include "service/base/log.h"
#include "service/worker/described.h"

#include <stdint.h>
#include <uv.h>

struct pb_describer;

struct pb_describer_options {
    uv_loop_t *loop;
    struct pb_worker_program program;
    const struct pb_config *config; /* borrowed until set_config or destroy */
    /* The answer to the question of that ticket; it may ask, and set the configuration. */
    void (*on_answer)(void *user, uint64_t ticket, const struct pb_described *answer);
    void (*on_say)(void *user, enum pb_log_level level, const char *text); /* for the log */
    void *user;
    bool gives_up; /* the machine's faults count as attempts as well: somebody waits */
};

struct pb_describer *pb_describer_create(const struct pb_describer_options *options); /* or NULL */
/* Answers come from the loop, never from here. path, of the file, and pipeline are copied. -ENOMEM.
 */
int pb_describer_ask(struct pb_describer *describer, uint64_t ticket, const char *pipeline,
                     const char *path);
/* Forgets all questions: they are about another configuration. */
void pb_describer_set_config(struct pb_describer *describer, const struct pb_config *config);
/* Kills the process; memory goes when libuv has closed the handles. NULL is fine. */
void pb_describer_destroy(struct pb_describer *describer);
#endif
