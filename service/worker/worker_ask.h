/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_ASK_H
#define PB_WORKER_ASK_H
/* Queries of the job's thread in the child to its parent, the worker: its turn to compute, the
 * place of the products, and the checksums of the files that were read. The thread waits for the
 * answer. The other thread of the child owns the socket: `woken`, an eventfd, wakes it; it sends
 * the query and delivers the answer. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/output/output_path.h"
#include "pipeline/run/base/run_options.h"
#include "pipeline/scene/manifest.h"

#include <pthread.h>
#include <semaphore.h>

enum pb_worker_question {
    PB_WORKER_ASKS_NOTHING,
    PB_WORKER_ASKS_TURN,
    PB_WORKER_ASKS_PLACE,
    PB_WORKER_ASKS_INPUTS
};

struct pb_worker_ask {
    int woken;
    sem_t answered;
    pthread_mutex_t lock; /* protects all below */
    enum pb_worker_question question;
    bool cancelled;
    const struct pb_run_needs *needs;
    const struct pb_output_facts *facts;
    char place[PB_OUTPUT_PATH_BYTES + 260]; /* "" = no answer yet */
    struct pb_scene_manifest inputs;        /* empty = no answer yet */
};

/* The object is all-zero before. */
void pb_worker_ask_init(struct pb_worker_ask *ask, int woken);
/* Wakes the thread that waits for an eventfd. Ends the process if it fails. Thread: any. */
void pb_worker_wake(int woken);
/* Returns when the job may compute a plan with these needs. Thread: the job's. */
int pb_worker_ask_turn(struct pb_worker_ask *ask, const struct pb_run_needs *needs,
                       struct pb_err *err);
/* Queries the place. Returns NULL if the job was cancelled; otherwise borrowed from `ask`. Thread:
 * the job's. */
const char *pb_worker_ask_place(struct pb_worker_ask *ask, const struct pb_output_facts *facts);
int pb_worker_ask_inputs(struct pb_worker_ask *ask, struct pb_err *err,
                         const struct pb_scene_manifest **out);
/* Cancels the job; a waiting thread returns without an answer. Thread: that of the socket. */
void pb_worker_ask_cancel(struct pb_worker_ask *ask);
/* Name of the event of the pending query, "turn", "place" or "inputs", and the event's members.
 * NULL if no query is pending. */
const char *pb_worker_ask_word(struct pb_worker_ask *ask);
void pb_worker_ask_print(struct pb_worker_ask *ask, struct pb_json *json);
/* Returns false if the command does not answer a pending query. */
bool pb_worker_ask_answer(struct pb_worker_ask *ask, const struct pb_json_value *command);
#endif
