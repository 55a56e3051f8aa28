/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks the child's lines and passes them on; "done" follows after the files are published. */
#include "service/worker/worker_parts.h"

#include "config/base/clock.h"
#include "config/pipeline_config.h"
#include "service/worker/worker_child.h"
#include "service/worker/worker_inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Compares the announced products with those that another node has sent. */
static int check_arrived(struct worker *worker, const struct pb_worker_line *line,
                         struct pb_err *err)
{
    struct pb_json_value *products = NULL;
    if (worker->host.fd < 0)
        return 0;
    if (pb_json_parse(line->products, strlen(line->products), PB_WORKER_LINE_MAX, &products) != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the list of products");
    const int rc = pb_worker_host_check(&worker->host, products, err);
    pb_json_release(products);
    return rc;
}

/* Sends the products to the node that has the input, which publishes them. The progress
 * line passes the decision about a cancel to that node (runner/job_end.c). */
static void deliver(struct worker *worker, const char *text, const struct pb_worker_line *line)
{
    struct pb_err err = {0};
    struct pb_json_value *products = NULL;
    struct pb_worker_numbers *said = &worker->job.lines.said;
    worker->away.delivers = true;
    said->tiles_done = said->tiles_total;
    pb_worker_say_progress(worker, "publish", "", said,
                           said->bytes_checked + (int64_t)pb_worker_away_bytes(&worker->away), 0);
    char *copy = strdup(text), *end = NULL; /* the child owns the text */
    pb_worker_fork_end(&worker->child);
    int rc = copy != NULL ? pb_worker_job_collect(&worker->job, line, &err, &products)
                          : pb_fail(&err, PB_E_MEMORY, "out of memory");
    rc = rc ? rc : pb_worker_away_deliver(&worker->away, copy, products, &err, &end);
    pb_json_release(products);
    free(copy);
    if (rc != PB_AWAY_FINAL) {
        pb_worker_fail(worker, &err);
        return;
    }
    pb_worker_forget(worker);
    pb_worker_say(worker, end, strlen(end));
    free(end);
}

/* Sends the question to the node that has the input, and passes its answer to the child. */
static void ask_home(struct worker *worker, const char *text, bool is_place)
{
    struct pb_err err = {0};
    char *answer = NULL;
    const int rc = pb_worker_away_ask(&worker->away, text, is_place, &err, &answer);
    if (rc == 0) {
        (void)pb_line_send(worker->child.lines.fd, answer, strlen(answer), NULL, 0);
    } else {
        pb_worker_fork_end(&worker->child);
        if (rc != PB_AWAY_FINAL) {
            pb_worker_fail(worker, &err);
            return;
        }
        pb_worker_forget(worker);
        pb_worker_say(worker, answer, strlen(answer));
    }
    free(answer);
}

/* Publishes. The child ends meanwhile, and has ended before its files are checked. */
static void publish(struct worker *worker, const struct pb_worker_line *line)
{
    struct pb_err err = {0};
    char *done = NULL;
    if (worker->next != NULL && !worker->spent)
        pb_publish_leave_temp(worker->job.publish);
    int rc = check_arrived(worker, line, &err);
    rc = rc ? rc : pb_worker_job_prepare(&worker->job, &err);
    pb_worker_fork_end(&worker->child);
    rc = rc ? rc : pb_worker_job_publish(&worker->job, line, &err, &done);
    if (rc == PB_PUBLISH_MOVED) {
        (void)fprintf(stderr, "another input took the place of these products meanwhile; the job "
                              "has to run again\n");
        pb_worker_end(worker, 1);
    }
    if (rc != 0) {
        pb_worker_fail(worker, &err);
        return;
    }
    pb_worker_forget(worker);
    pb_worker_say_end(worker, done, strlen(done));
    free(done);
    if (worker->warms && line->epsg > 0)
        pb_worker_fork_warm(&worker->child, line->epsg);
}

static void send_to_child(struct worker *worker, struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    if (text != NULL) /* the end of a child that is gone is detected elsewhere */
        (void)pb_line_send(worker->child.lines.fd, text, bytes, NULL, 0);
    pb_json_destroy(json);
}

static void end_with(struct worker *worker, const struct pb_err *err)
{
    pb_worker_fork_end(&worker->child);
    pb_worker_fail(worker, err);
}

/* Sends the place to the child, which knows the metadata now and waits. */
static void locate(struct worker *worker, const struct pb_worker_line *line)
{
    struct pb_err err = {0};
    struct pb_publish *publish = worker->job.publish;
    if (pb_publish_locate(publish, line->sensor[0] != '\0' ? line->sensor : NULL, line->has_time,
                          line->time_s, &err) != 0) {
        end_with(worker, &err);
        return;
    }
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "place");
    pb_json_string(json, "place", pb_publish_place(publish));
    pb_json_end(json);
    send_to_child(worker, json);
}

/* Sends the checksums to the child, which has read all pixels and writes them into its item. */
static void tell_inputs(struct worker *worker)
{
    struct pb_err err = {0};
    const struct pb_scene_manifest *inputs;
    if (pb_publish_inputs(worker->job.publish, &err, &inputs) != 0)
        end_with(worker, &err);
    else
        send_to_child(worker, pb_worker_inputs_command(inputs));
}

/* Announces the expected bytes of a product: the largest of several gets at least an equal share.
 */
static void expect(struct worker *worker, const struct pb_worker_numbers *now)
{
    const struct pb_worker_job *job = &worker->job;
    if (job->publish == NULL || job->pipeline == NULL || now->tiles_done <= 0)
        return;
    double whole = (double)now->bytes_written / (double)now->tiles_done * (double)now->tiles_total;
    double n = job->pipeline->n_products > 0 ? (double)job->pipeline->n_products : 1;
    pb_publish_expect(job->publish, whole / n < 1e15 ? (uint64_t)(whole / n) : 0);
}

/* Reports the scenes of an archive, with its checksum for the jobs of these scenes if it is known.
 */
static void fail_scenes(struct worker *worker, const struct pb_worker_line *line)
{
    struct pb_json_value *scenes = NULL;
    struct pb_scene_manifest archive;
    pb_worker_fork_end(&worker->child);
    const bool is_known = pb_worker_job_archive(&worker->job, &archive) == 0;
    struct pb_json *json = pb_worker_event(worker->command, "failed");
    pb_job_print_error(json, "error", &line->error);
    if (pb_json_parse(line->report, strlen(line->report), PB_WORKER_LINE_MAX, &scenes) == 0)
        pb_json_raw(json, "scenes", pb_json_source(pb_json_get(scenes, "scenes", NULL)));
    if (is_known)
        pb_scene_manifest_print(&archive, json, "manifest");
    pb_json_release(scenes);
    pb_scene_manifest_fini(&archive);
    pb_worker_forget(worker);
    pb_worker_say_json(worker, json);
}

/* Receives a product of another node. Returns false if the line describes none. */
static bool take_product(struct worker *worker, const char *text, size_t bytes)
{
    struct pb_err err = {0};
    const int rc = pb_worker_host_receive(&worker->host, &worker->job, text, bytes,
                                          &worker->child.lines, &err);
    if (rc < 0)
        end_with(worker, &err);
    return rc <= 0;
}

/* Passes on the progress of a child, with the bytes that were copied before. */
static void pass_progress(struct worker *worker, const struct pb_worker_line *line)
{
    pb_worker_say_progress(worker, line->stage, line->device, &line->numbers,
                           line->numbers.bytes_checked +
                               (int64_t)pb_worker_away_bytes(&worker->away),
                           line->numbers.io_ms);
}

static void handle_line(struct worker *worker, const char *text, size_t bytes)
{
    struct pb_worker_line line = {.event = PB_WORKER_SAYS_DEVICE};
    char why[PB_WORKER_WHY_BYTES];
    if (worker->host.fd >= 0 && take_product(worker, text, bytes))
        return;
    bool admitted = pb_worker_lines_admit(&worker->job.lines, bytes, pb_clock_mono_ms());
    if (admitted && worker->host.fd >= 0 && pb_worker_host_is_alive(&worker->host, text, bytes))
        return;
    int rc = admitted ? pb_worker_lines_take(&worker->job.lines, text, bytes, why, &line) : -EPROTO;
    if (rc == 1)
        return;
    if (rc < 0) {
        (void)fprintf(stderr, "the process that computes breaks the protocol (%s)\n",
                      admitted ? why : "too many lines at once");
        pb_worker_end(worker, 1);
    }
    const bool away = worker->away.on;
    if (away && (line.event == PB_WORKER_SAYS_PLACE || line.event == PB_WORKER_SAYS_INPUTS)) {
        char *copy = strdup(text);
        ask_home(worker, copy != NULL ? copy : "{}", line.event == PB_WORKER_SAYS_PLACE);
        free(copy);
    } else if (away && line.event == PB_WORKER_SAYS_DONE) {
        deliver(worker, text, &line);
    } else if (away && line.event == PB_WORKER_SAYS_PROGRESS) {
        pass_progress(worker, &line);
    } else if (line.event == PB_WORKER_SAYS_PLACE) {
        locate(worker, &line);
    } else if (line.event == PB_WORKER_SAYS_INPUTS) {
        tell_inputs(worker);
    } else if (line.event == PB_WORKER_SAYS_DONE) {
        publish(worker, &line);
    } else if (line.event == PB_WORKER_SAYS_FAILED && line.report != NULL) {
        fail_scenes(worker, &line);
    } else if (line.event == PB_WORKER_SAYS_FAILED) {
        char *copy = strdup(text); /* the child owns the text */
        worker->spent = pb_worker_is_spent(line.error.code);
        pb_worker_fork_end(&worker->child);
        pb_worker_forget(worker);
        pb_worker_say(worker, copy, bytes);
        free(copy);
    } else {
        if (line.event == PB_WORKER_SAYS_PROGRESS)
            expect(worker, &line.numbers);
        pb_worker_say(worker, text, bytes);
    }
    pb_worker_line_fini(&line);
}

void pb_worker_relay(struct worker *worker)
{
    size_t bytes;
    char *text;
    bool more = pb_line_reader_fill(&worker->child.lines);
    while (pb_worker_fork_is_on(&worker->child) &&
           (text = pb_line_reader_next(&worker->child.lines, &bytes)) != NULL)
        handle_line(worker, text, bytes);
    if (more || !pb_worker_fork_is_on(&worker->child))
        return;
    if (worker->child.is_remote) {
        struct pb_err err = {0};
        (void)pb_fail(&err, PB_E_INPUT_FETCH, "the other node closed the connection");
        end_with(worker, &err);
        return;
    }
    int status = pb_worker_fork_wait(&worker->child);
    pb_worker_job_close(&worker->job);
    pb_worker_fork_die_like(status);
}
