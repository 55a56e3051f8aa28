/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_ask.h"

#include "service/worker/worker_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* an eventfd takes 2^64 - 2 wakes, therefore a write fails only by accident */
#define WAKE_TRIES 10

void pb_worker_ask_init(struct pb_worker_ask *ask, int woken)
{
    ask->woken = woken;
    (void)pthread_mutex_init(&ask->lock, NULL);
    (void)sem_init(&ask->answered, 0, 0);
}

void pb_worker_wake(int woken)
{
    const uint64_t one = 1;

    for (int tries = 0; write(woken, &one, sizeof one) != (ssize_t)sizeof one; tries++)
        if (tries == WAKE_TRIES) { /* a lost query would wait for ever: exits, for another try */
            (void)fputs("cannot wake the thread that talks to the service\n", stderr);
            _exit(EXIT_FAILURE);
        }
}

/* Returns when the answer has arrived or the job is cancelled. */
static void wait_for(struct pb_worker_ask *ask, enum pb_worker_question question)
{
    (void)pthread_mutex_lock(&ask->lock);
    bool asks = !ask->cancelled;
    if (asks)
        ask->question = question;
    (void)pthread_mutex_unlock(&ask->lock);
    if (asks)
        pb_worker_wake(ask->woken);
    while (asks && sem_wait(&ask->answered) != 0) {
    }
}

static int fail_cancelled(struct pb_err *err)
{
    return pb_fail(err, PB_E_JOB_DISMISSED, "the run was cancelled");
}

int pb_worker_ask_turn(struct pb_worker_ask *ask, const struct pb_run_needs *needs,
                       struct pb_err *err)
{
    ask->needs = needs;
    wait_for(ask, PB_WORKER_ASKS_TURN);
    (void)pthread_mutex_lock(&ask->lock);
    bool cancelled = ask->cancelled;
    (void)pthread_mutex_unlock(&ask->lock);
    return cancelled ? fail_cancelled(err) : 0;
}

const char *pb_worker_ask_place(struct pb_worker_ask *ask, const struct pb_output_facts *facts)
{
    ask->facts = facts;
    wait_for(ask, PB_WORKER_ASKS_PLACE);
    return ask->place[0] != '\0' ? ask->place : NULL;
}

int pb_worker_ask_inputs(struct pb_worker_ask *ask, struct pb_err *err,
                         const struct pb_scene_manifest **out)
{
    if (ask->inputs.n_entries == 0)
        wait_for(ask, PB_WORKER_ASKS_INPUTS);
    *out = &ask->inputs;
    return ask->inputs.n_entries > 0 ? 0 : fail_cancelled(err);
}

/* Called with the lock held. */
static void end_question(struct pb_worker_ask *ask)
{
    if (ask->question == PB_WORKER_ASKS_NOTHING)
        return;
    ask->question = PB_WORKER_ASKS_NOTHING;
    (void)sem_post(&ask->answered);
}

void pb_worker_ask_cancel(struct pb_worker_ask *ask)
{
    (void)pthread_mutex_lock(&ask->lock);
    ask->cancelled = true;
    end_question(ask);
    (void)pthread_mutex_unlock(&ask->lock);
}

static enum pb_worker_question question_of(struct pb_worker_ask *ask)
{
    (void)pthread_mutex_lock(&ask->lock);
    enum pb_worker_question question = ask->question;
    (void)pthread_mutex_unlock(&ask->lock);
    return question;
}

const char *pb_worker_ask_word(struct pb_worker_ask *ask)
{
    static const char *const words[] = {NULL, "turn", "place", "inputs"};
    return words[question_of(ask)];
}

void pb_worker_ask_print(struct pb_worker_ask *ask, struct pb_json *json)
{
    const enum pb_worker_question question = question_of(ask);
    const bool place = question == PB_WORKER_ASKS_PLACE;
    if (question == PB_WORKER_ASKS_TURN) {
        pb_json_int(json, "tiles", (int64_t)ask->needs->tiles);
        pb_json_int(json, "memory_bytes", (int64_t)ask->needs->memory_bytes);
    }
    if (place && ask->facts->sensor != NULL)
        pb_json_string(json, "sensor", ask->facts->sensor);
    if (place && ask->facts->has_time)
        pb_json_int(json, "time_s", ask->facts->time_s);
}

bool pb_worker_ask_answer(struct pb_worker_ask *ask, const struct pb_json_value *command)
{
    const char *name = pb_json_get_text(command, "cmd");
    const char *place = pb_json_get_text(command, "place");
    bool taken = false;
    (void)pthread_mutex_lock(&ask->lock);
    if (name != NULL && ask->question == PB_WORKER_ASKS_PLACE && place != NULL) {
        (void)snprintf(ask->place, sizeof ask->place, "%s", place);
        taken = strcmp(name, "place") == 0;
    } else if (name != NULL && ask->question == PB_WORKER_ASKS_TURN) {
        taken = strcmp(name, "turn") == 0;
    } else if (name != NULL && ask->question == PB_WORKER_ASKS_INPUTS) {
        taken = strcmp(name, "inputs") == 0 && pb_worker_inputs_read(command, &ask->inputs);
    }
    if (taken)
        end_question(ask);
    (void)pthread_mutex_unlock(&ask->lock);
    return taken;
}
