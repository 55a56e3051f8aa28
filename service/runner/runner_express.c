/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Short jobs overtake long ones. Jobs start in the order in which they came, service.parallel_jobs
 * side by side. When each of these has run for service.express already and others wait, one place
 * more takes jobs, the smallest input first. A job may use it for service.express; if it needs
 * longer and others wait for the place, it goes back to where it was in the queue (no attempt
 * counts), is known as long, and waits for an ordinary place. So a short job waits for long
 * ones for a bounded time, and a long one loses at most one such try: nothing is overtaken twice by
 * the same job and nothing starves, as the ordinary places go on in order. Each try that was
 * in vain doubles the pause until the next, so that a queue of nothing but long jobs costs little.
 *
 * The express place computes on the CPU when the others use a GPU: a device is for one job at
 * a time unless parallel_jobs says otherwise. Where the configuration demands a GPU there is none.
 * What is known of long jobs is forgotten by a restart; that costs each one try more. */
#include "config/base/clock.h"
#include "service/base/log.h"
#include "service/runner/runner_parts.h"

#include <string.h>
#include <sys/stat.h>

#define PAUSE_DOUBLINGS 6
#define LOOKS           1000 /* at waiting jobs, for the smallest */
#define PUT_BACK_MS     5000 /* from the cancel line to SIGKILL */

bool pb_express_is_long(const struct pb_runner *runner, int64_t seq)
{
    for (size_t i = 0; i < PB_EXPRESS_LONG_MAX; i++) {
        if (runner->express.known_long[i] == seq)
            return true;
    }
    return false;
}

int64_t pb_express_ordinary(const struct pb_runner *runner)
{
    int64_t n = 0;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++)
        n += pb_place_is_taken(&runner->places[i]) && !runner->places[i].express;
    return n;
}

/* Whether all ordinary places have been taken for long, and the express one is free. */
static bool may_open(const struct pb_runner *runner, int64_t now_ms)
{
    int64_t express_ms = runner->config->service.express_ms;
    if (express_ms == 0 || now_ms < runner->express.pause_until_ms || runner->hold.on ||
        runner->config->compute.device == PB_DEVICE_CUDA)
        return false;
    for (int i = 0; i < PB_RUNNER_PLACES_MAX; i++) {
        const struct pb_place *place = &runner->places[i];
        if (place->reserved)
            return false;
        if (pb_place_job(place) != NULL &&
            (place->express || now_ms - pb_worker_slot_began_ms(place->slot) < express_ms))
            return false;
    }
    return pb_express_ordinary(runner) >= runner->config->service.parallel_jobs;
}

/* Only of files in our own directories: a submitted path may lie on storage that hangs. */
static int64_t input_bytes(const struct pb_job *job)
{
    struct stat st;
    bool known = job->owned && job->input != NULL && lstat(job->input, &st) == 0;
    return known ? (int64_t)st.st_size : INT64_MAX - 1;
}

struct smallest {
    const struct pb_runner *runner;
    int64_t seq, bytes; /* the smallest so far; seq 0 = none */
};

static bool look(void *user, const struct pb_job *job)
{
    struct smallest *smallest = user;
    if (pb_express_is_long(smallest->runner, job->seq) ||
        !pb_runner_may_start(smallest->runner, job))
        return false;
    int64_t bytes = input_bytes(job);
    if (smallest->seq == 0 || bytes < smallest->bytes) {
        smallest->seq = job->seq;
        smallest->bytes = bytes;
    }
    return false;
}

static bool is_it(void *user, const struct pb_job *job)
{
    return job->seq == *(const int64_t *)user;
}

int pb_express_next(struct pb_runner *runner, int64_t now_ms, struct pb_err *err,
                    struct pb_job *out_job)
{
    struct smallest smallest = {.runner = runner};
    if (!may_open(runner, now_ms))
        return 0;
    int64_t after = 0;
    int rc =
        pb_job_store_next(runner->options.reader, &after, LOOKS, look, &smallest, err, out_job);
    if (rc < 0 || smallest.seq == 0)
        return rc;
    after = smallest.seq - 1;
    return pb_job_store_next(runner->options.reader, &after, 1, is_it, &smallest.seq, err, out_job);
}

bool pb_express_is_due(struct pb_runner *runner, int64_t now_ms)
{
    if (now_ms < runner->express.look_at_ms || !may_open(runner, now_ms))
        return false;
    runner->express.look_at_ms = now_ms + PB_EXPRESS_LOOK_MS;
    return true;
}

bool pb_express_on_cpu(const struct pb_runner *runner, const struct pb_place *place)
{
    return place->express && strcmp(runner->device, "cpu") != 0;
}

static bool is_short(void *user, const struct pb_job *job)
{
    const struct pb_runner *runner = user;
    return !pb_express_is_long(runner, job->seq) && pb_runner_may_start(runner, job);
}

/* Whether a job waits that the express place is for. */
static bool does_one_wait(struct pb_runner *runner)
{
    struct pb_job job;
    int64_t after = 0;
    if (pb_job_store_next(runner->options.reader, &after, LOOKS, is_short, runner, NULL, &job) <= 0)
        return false;
    pb_job_fini(&job);
    return true;
}

void pb_express_tick(struct pb_runner *runner, struct pb_place *place, int64_t now_ms)
{
    struct pb_express *express = &runner->express;
    int64_t express_ms = runner->config->service.express_ms;
    const struct pb_job *job = pb_place_job(place);
    if (job == NULL || !place->express || pb_worker_slot_ending(place->slot) != PB_ENDING_NONE ||
        now_ms < place->express_until_ms)
        return;
    if (pb_express_ordinary(runner) < runner->config->service.parallel_jobs) {
        place->express = false; /* there is room for it now as it is */
        return;
    }
    if (!does_one_wait(runner)) {
        place->express_until_ms = now_ms + PB_EXPRESS_LOOK_MS;
        return;
    }
    express->known_long[express->next_long++ % PB_EXPRESS_LONG_MAX] = job->seq;
    express->pause_until_ms = now_ms + (express_ms << express->in_vain);
    express->in_vain += express->in_vain < PAUSE_DOUBLINGS;
    pb_log(PB_LOG_NOTICE, "job %s: takes longer than service.express; it waits for its turn",
           job->id);
    pb_worker_slot_end(place->slot, PB_ENDING_PUT_BACK, PUT_BACK_MS);
}

void pb_express_done(struct pb_runner *runner)
{
    runner->express.in_vain = 0;
}
