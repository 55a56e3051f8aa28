/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/describer.h"
#include "config/base/json_path.h"
#include "config/config.h"

#include "config/base/json_writer.h"
#include "service/processes/worker_proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MS 5000 /* time until a process without queries ends */
#define AGAIN_MS                                                                                   \
    1000 /* until another one is started in the place of one that died, or did not                 \
            start */

#define SET_BACK_MS 5000  /* delay before the next query for a file after a fault of the machine */
#define GRACE_MS    10000 /* time for a process to end after the request */

struct question {
    struct question *next;
    uint64_t ticket;
    int attempts;
    char *pipeline, *path;
};

struct pb_describer {
    struct pb_describer_options options;
    struct question *first, **last;
    size_t n;
    struct pb_worker_proc *proc;
    bool sent;        /* the first query was sent, and its answer has not arrived */
    bool is_late;     /* it took service.stall, and its process was killed */
    bool is_set_back; /* the timer is that of SET_BACK_MS */
    bool is_dropped;  /* the answer to the query that was sent is no longer needed */
    uv_timer_t timer;
};

static void go_on(struct pb_describer *describer);

static void say(void *user, enum pb_log_level level, const char *text)
{
    const struct pb_describer *describer = user;
    describer->options.on_say(describer->options.user, level, text);
}

static void free_first(struct pb_describer *describer)
{
    struct question *question = describer->first;
    describer->first = question->next;
    if (describer->first == NULL)
        describer->last = &describer->first;
    describer->n--;
    free(question->pipeline);
    free(question->path);
    free(question);
}

static void answer(struct pb_describer *describer, const struct pb_described *described)
{
    const uint64_t ticket = describer->first->ticket;
    describer->sent = false;
    free_first(describer);
    describer->options.on_answer(describer->options.user, ticket, described);
}

/* --- the process ------------------------------------------------------------------------------*/

/* Ends an attempt; after too many of them the first query is answered with the error. */
static void end_attempt(struct pb_describer *describer, enum pb_code code, const char *why)
{
    struct pb_described described;
    describer->sent = false;
    if (++describer->first->attempts < describer->options.config->service.max_attempts)
        return;
    pb_described_fail(&described, code, why);
    answer(describer, &described);
}

static void on_timer(uv_timer_t *timer);

static void start_timer(struct pb_describer *describer, int64_t ms)
{
    (void)uv_timer_start(&describer->timer, on_timer, (uint64_t)ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct pb_describer *describer = timer->data;
    if (describer->proc == NULL || describer->is_set_back) {
        describer->is_set_back = false;
        go_on(describer);
    } else if (describer->sent || pb_worker_proc_is_closing(describer->proc)) {
        describer->is_late = describer->sent;
        pb_worker_proc_kill(describer->proc);
    } else {
        pb_worker_proc_close_stdin(describer->proc);
        start_timer(describer, GRACE_MS);
    }
}

/* Handles a fault of the machine at the first query, which is sent again later. False: it must be
 * answered now. */
static bool set_back(struct pb_describer *describer, const char *why)
{
    char said[PATH_MAX + 400];
    if (describer->options.gives_up &&
        ++describer->first->attempts >= describer->options.config->service.max_attempts)
        return false;
    (void)snprintf(said, sizeof said, "%s: %s; the query is sent again", describer->first->path,
                   why);
    say(describer, PB_LOG_WARNING, said);
    describer->sent = false;
    describer->is_set_back = true;
    start_timer(describer, SET_BACK_MS);
    return true;
}

static bool is_machine_s(enum pb_code code)
{
    return code != PB_OK && pb_code_class(code) != PB_CLASS_INPUT;
}

static void on_line(void *user, const char *line, size_t bytes)
{
    struct pb_describer *describer = user;
    struct pb_described described;
    if (!describer->sent || describer->is_late)
        return;
    if (pb_described_parse(line, bytes, &described) != 0) {
        say(describer, PB_LOG_WARNING, "it broke the protocol while it read metadata");
        pb_worker_proc_kill(describer->proc);
        return;
    }
    if (describer->is_dropped)
        describer->sent = describer->is_dropped = false;
    else if (!is_machine_s(described.code) || !set_back(describer, described.message))
        answer(describer, &described);
    go_on(describer);
}

static void on_end(void *user, const char *how)
{
    struct pb_describer *describer = user;
    const bool counts = describer->sent && !describer->is_dropped;
    const bool was_late = describer->is_late;
    const bool machine_s =
        !was_late && (!pb_worker_proc_spoke(describer->proc) || pb_worker_proc_is_killed(how));
    char why[300], said[PATH_MAX + 400];
    pb_worker_proc_destroy(describer->proc);
    describer->proc = NULL;
    describer->sent = describer->is_late = describer->is_dropped = false;
    (void)uv_timer_stop(&describer->timer);
    if (counts && was_late)
        (void)snprintf(why, sizeof why, "reading its metadata took longer than service.stall");
    else
        (void)snprintf(why, sizeof why, "the process that reads metadata ended with %s at it", how);
    if (!counts) {
        go_on(describer);
        return;
    }
    if (machine_s && set_back(describer, why))
        return;
    (void)snprintf(said, sizeof said, "%s: %s", describer->first->path, why);
    say(describer, PB_LOG_WARNING, said);
    start_timer(describer, AGAIN_MS); /* before the answer, whose handler may add queries */
    end_attempt(describer, was_late ? PB_E_JOB_STALLED : PB_E_JOB_CRASHED, why);
}

static int start_process(struct pb_describer *describer)
{
    const struct pb_worker_proc_handlers handlers = {on_line, on_end, say, describer};
    struct pb_err err = {0};
    if (describer->proc != NULL)
        return 0;
    int rc = pb_worker_proc_start(describer->options.loop, &describer->options.program, &handlers,
                                  &err, &describer->proc);
    if (rc == 0)
        return 0;
    describer->proc = NULL;
    say(describer, PB_LOG_ERROR, err.msg);
    start_timer(describer, AGAIN_MS);
    return rc;
}

static void send_first(struct pb_describer *describer)
{
    const struct question *question = describer->first;
    const struct pb_config *config = describer->options.config;
    size_t bytes = 0;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "describe");
    pb_json_string(json, "config", config->text);
    pb_json_string(json, "config_name", config->path);
    pb_json_string(json, "pipeline", question->pipeline);
    pb_json_path(json, "input", question->path);
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    describer->sent = true;
    if (text == NULL || pb_worker_proc_send(describer->proc, text, bytes) != 0)
        pb_worker_proc_kill(describer->proc);
    start_timer(describer, config->service.stall_ms);
    pb_json_destroy(json);
}

/* Sends the next query, if there is one and no answer is pending. A process whose stdin was closed
 * must end first. */
static void go_on(struct pb_describer *describer)
{
    if (describer->sent || describer->is_set_back || pb_worker_proc_is_closing(describer->proc))
        return;
    if (describer->first == NULL && describer->proc != NULL)
        start_timer(describer, IDLE_MS);
    else if (describer->first != NULL && start_process(describer) == 0)
        send_first(describer);
}

/* --- for its owner ----------------------------------------------------------------------------*/

struct pb_describer *pb_describer_create(const struct pb_describer_options *options)
{
    struct pb_describer *describer = calloc(1, sizeof *describer);
    if (describer == NULL)
        return NULL;
    describer->options = *options;
    describer->last = &describer->first;
    (void)uv_timer_init(options->loop, &describer->timer);
    describer->timer.data = describer;
    return describer;
}

int pb_describer_ask(struct pb_describer *describer, uint64_t ticket, const char *pipeline,
                     const char *path)
{
    struct question *question = calloc(1, sizeof *question);
    if (question == NULL)
        return -ENOMEM;
    *question =
        (struct question){.ticket = ticket, .pipeline = strdup(pipeline), .path = strdup(path)};
    if (question->pipeline == NULL || question->path == NULL) {
        free(question->pipeline);
        free(question->path);
        free(question);
        return -ENOMEM;
    }
    *describer->last = question;
    describer->last = &question->next;
    const bool waits = describer->proc == NULL && uv_is_active((uv_handle_t *)&describer->timer);
    if (++describer->n == 1 && !waits)
        go_on(describer);
    return 0;
}

void pb_describer_set_config(struct pb_describer *describer, const struct pb_config *config)
{
    while (describer->first != NULL)
        free_first(describer);
    describer->is_dropped = describer->sent;
    /* a timer of set_back continues, because it waits for the machine */
    describer->options.config = config;
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void pb_describer_destroy(struct pb_describer *describer)
{
    if (describer == NULL)
        return;
    while (describer->first != NULL)
        free_first(describer);
    pb_worker_proc_destroy(describer->proc);
    uv_close((uv_handle_t *)&describer->timer, on_close);
}
