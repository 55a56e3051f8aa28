/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * This process opens the input, makes the directory and publishes; the child computes, as a
 * worker's does (worker.c). What it says is checked the same way. */
#include "service/cli/cli_compute.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/device/device_nodes.h"
#include "pipeline/io/file_name.h"
#include "pipeline/raster/raster.h"
#include "service/cli/cli.h"
#include "service/cli/cli_result.h"
#include "config/base/clock.h"
#include "service/worker/worker_fork.h"
#include "service/worker/worker_publish.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define STEP_MS   100   /* between two looks at the clock and the signals */
#define CANCEL_MS 5000  /* from a cancel line to SIGKILL */
#define JOB       "run" /* what the child calls it; the manifest names no job */

struct apart {
    const struct cli_compute *compute;
    struct pb_json_value *command;
    struct pb_worker_job job;
    struct cli_bar bar;
    bool bar_wanted;
    int64_t moved_ms, kill_at_ms; /* of the last progress; 0 = no end is near */
    bool over;
    char *done; /* what was published, as JSON */
};

static atomic_bool interrupted;
static struct pb_worker_fork child; /* one at a time, and what they inherit */

void cli_compute_interrupt(void)
{
    atomic_store(&interrupted, true);
}

bool cli_compute_is_interrupted(void)
{
    return atomic_load(&interrupted);
}

bool cli_compute_is_apart(const struct pb_config *config)
{
    return config->compute.device == PB_DEVICE_CPU || !pb_device_nodes_exist();
}

void cli_compute_warm(void)
{
    pb_worker_fork_warm(&child);
}

/* The command as a worker gets it from the service. */
static int make_command(struct apart *apart, struct pb_err *err)
{
    const struct pb_run_options *options = &apart->compute->options;
    struct pb_json *json = pb_json_create(false);
    char scene[PB_FILE_NAME_BYTES_MAX + 32];
    size_t n = 0;
    pb_file_name_scene(options->input, scene, sizeof scene);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "run");
    pb_json_string(json, "job", JOB);
    pb_json_string(json, "unnamed", "yes");
    pb_json_string(json, "existing",
                   options->existing == PB_EXISTING_REFUSE ? "refuse" : "version");
    pb_json_string(json, "config", options->config->text);
    pb_json_string(json, "config_name", options->config->path);
    pb_json_string(json, "pipeline", options->pipeline->name);
    pb_json_string(json, "input", options->input);
    pb_json_string(json, "products", options->products);
    pb_json_string(json, "scene", scene);
    pb_json_end(json);
    const char *text = pb_json_text(json, &n);
    int rc = text != NULL ? pb_json_parse(text, n, PB_LINE_READER_MAX, &apart->command) : -ENOMEM;
    pb_json_destroy(json);
    return rc == 0 ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory for the run");
}

/* While the input's checksum is waited for nobody has to be told anything. */
static void still_there(void *user, uint64_t bytes)
{
    (void)user;
    (void)bytes;
}

static int start(struct apart *apart, struct pb_err *err)
{
    struct pb_config *config = apart->compute->config;
    char device[64], why[200];
    struct pb_worker_wait wait = {still_there, apart};
    size_t n = 0;
    int rc = pb_run_device(&config->compute, device, why, err);
    rc = rc ? rc : make_command(apart, err);
    rc = rc ? rc : pb_worker_job_open(&apart->job, apart->command, 0, &wait, err);
    if (rc != 0)
        return rc;
    pb_worker_user_find(config->service.worker_user, &child.user);
    rc = pb_worker_job_lend(&apart->job, &child.user, err);
    rc = rc ? rc : pb_worker_fork_start(&child, false, config, &apart->job, err);
    if (rc != 0)
        return rc;
    struct pb_json *json = pb_worker_job_command(&apart->job);
    const char *line = pb_json_text(json, &n);
    if (line == NULL || !pb_line_send(child.lines.fd, line, n, -1))
        rc = pb_fail(err, PB_E_SYSTEM, "the process that computes does not listen");
    pb_json_destroy(json);
    return rc ? rc : pb_publish_identify(apart->job.publish, err);
}

static void show(struct apart *apart, const struct pb_worker_line *line)
{
    const struct pb_worker_numbers *now = &line->numbers;
    char text[256], state[40], size[16];
    if (!apart->bar_wanted)
        return;
    cli_bar_update(&apart->bar, (double)pb_clock_mono_ms() / 1e3, (uint64_t)now->tiles_done,
                   (uint64_t)now->bytes_read);
    (void)snprintf(state, sizeof state, "%s", line->stage);
    if (strcmp(line->stage, "publish") == 0)
        (void)snprintf(state, sizeof state, "publish %s",
                       cli_bytes((double)now->bytes_written, size, sizeof size));
    cli_bar_text(&apart->bar, state, (uint64_t)now->tiles_done, (uint64_t)now->tiles_total,
                 cli_columns(stderr) - 1, text, sizeof text);
    (void)fprintf(stderr, "\r%s\033[K", text);
    (void)fflush(stderr);
}

/* The child is gone before anybody looks at its files. */
static int publish(struct apart *apart, const struct pb_worker_line *line, struct pb_err *err)
{
    int rc;
    pb_worker_fork_end(&child);
    if (cli_compute_is_interrupted())
        return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled before publishing");
    rc = pb_worker_job_publish(&apart->job, line, err, &apart->done);
    if (rc == PB_PUBLISH_MOVED)
        rc = pb_fail(err, PB_E_OUTPUT_EXISTS,
                     "another input took the place of these products meanwhile; run it again");
    return rc;
}

static int take_line(struct apart *apart, const char *text, size_t bytes, struct pb_err *err)
{
    struct pb_worker_line line;
    struct pb_worker_numbers before = apart->job.lines.said;
    char why[PB_WORKER_WHY_BYTES] = "too many lines at once";
    bool admitted = pb_worker_lines_admit(&apart->job.lines, bytes, pb_clock_mono_ms());
    int rc = admitted ? pb_worker_lines_take(&apart->job.lines, text, bytes, why, &line) : -EPROTO;
    if (rc == 1)
        return 0;
    if (rc < 0)
        return pb_fail(err, PB_E_JOB_CRASHED,
                       "the process that computes says what it never says (%s)", why);
    if (line.event == PB_WORKER_SAYS_PROGRESS) {
        if (memcmp(&before, &line.numbers, offsetof(struct pb_worker_numbers, elapsed_ms)) != 0)
            apart->moved_ms = pb_clock_mono_ms();
        show(apart, &line);
    } else if (line.event == PB_WORKER_SAYS_DONE) {
        rc = publish(apart, &line, err);
        apart->over = true;
    } else if (line.event == PB_WORKER_SAYS_FAILED) {
        rc = pb_fail(err, pb_code_find(line.error.code), "%s", line.error.message);
    }
    pb_worker_line_fini(&line);
    return rc;
}

static int ended(struct pb_err *err)
{
    int status = pb_worker_fork_wait(&child);
    if (WIFSIGNALED(status))
        return pb_fail(err, PB_E_JOB_CRASHED, "the process that computes ended with signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    return pb_fail(err, PB_E_JOB_CRASHED, "the process that computes ended with exit status %d",
                   WEXITSTATUS(status));
}

/* Signals, and a run that does not move. */
static int look_at_clock(struct apart *apart, struct pb_err *err)
{
    static const char cancel[] = "{\"cmd\":\"cancel\"}";
    int64_t now = pb_clock_mono_ms(), stall_ms = apart->compute->options.config->service.stall_ms;
    if (cli_compute_is_interrupted() && apart->kill_at_ms == 0) {
        apart->kill_at_ms = now + CANCEL_MS;
        (void)pb_line_send(child.lines.fd, cancel, sizeof cancel - 1, -1);
    }
    if (apart->kill_at_ms > 0 && now >= apart->kill_at_ms)
        return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled while computing");
    if (stall_ms > 0 && now - apart->moved_ms >= stall_ms)
        return pb_fail(err, PB_E_JOB_STALLED, "no progress for %lld s (service.stall)",
                       (long long)(stall_ms / 1000));
    return 0;
}

static int listen_to_child(struct apart *apart, struct pb_err *err)
{
    int rc = 0;
    apart->moved_ms = pb_clock_mono_ms();
    while (rc == 0 && !apart->over) {
        struct pollfd watched = {.fd = child.lines.fd, .events = POLLIN};
        size_t bytes;
        char *text;
        int n = poll(&watched, 1, STEP_MS);
        rc = look_at_clock(apart, err);
        if (rc != 0 || n <= 0)
            continue;
        bool more = pb_line_reader_fill(&child.lines);
        while (rc == 0 && !apart->over && child.pid > 0 &&
               (text = pb_line_reader_next(&child.lines, &bytes)) != NULL)
            rc = take_line(apart, text, bytes, err);
        if (rc == 0 && !apart->over && !more)
            rc = ended(err);
    }
    return rc;
}

int cli_compute_apart(const struct cli_compute *compute, struct pb_err *err)
{
    const struct pb_run_options *options = &compute->options;
    const char *base = strrchr(options->input, '/');
    struct apart apart = {.compute = compute,
                          .bar_wanted =
                              !compute->json && !compute->quiet && cli_is_terminal(stderr)};
    enum pb_device_kind configured = compute->config->compute.device;
    (void)snprintf(apart.bar.name, sizeof apart.bar.name, "%s", base ? base + 1 : options->input);
    child.lines.fd = child.pid > 0 ? child.lines.fd : -1;
    int rc = start(&apart, err);
    rc = rc ? rc : listen_to_child(&apart, err);
    pb_worker_fork_end(&child);
    if (apart.bar_wanted)
        (void)fputs("\r\033[K", stderr);
    if (rc == 0 && compute->json)
        cli_result_done_json(options->input, options->pipeline->name, compute->device_why,
                             apart.done, pb_publish_warning(apart.job.publish));
    else if (rc == 0 && !compute->quiet)
        cli_result_done_text(options->input, apart.done);
    pb_worker_job_close(&apart.job);
    pb_json_release(apart.command);
    free(apart.done);
    compute->config->compute.device = configured;
    return rc;
}
