/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The worker decodes no files itself: it opens input and directory, forks a confined child that
 * computes, checks the child's lines and files, and publishes. Each job has a child of its own,
 * therefore no data of one scene is visible to the next; GDAL, PROJ and the CRSs of earlier scenes
 * are loaded before, once. Neither process touches a GPU: the process that owns it
 * (service/device/owner.h) computes for the child.
 *
 * When a child dies, the worker ends in the same way, so that its owner sees the cause. */
#include "service/worker/worker.h"
#include "config/base/clock.h"
#include "config/config.h"
#include "config/yaml/report.h"

#include "config/device_word.h"
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/profile/trace.h"
#include "pipeline/run/run.h"
#include "service/confine/confine.h"
#include "service/base/line_reader.h"
#include "service/device/owner_client.h"
#include "config/base/err_json.h"
#include "service/worker/worker_describe.h"
#include "service/worker/worker_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define WORKER_NICENESS 10 /* higher than the service's niceness */
#define COPIES_MS       500

void pb_worker_end(struct worker *worker, int code)
{
    pb_worker_fork_end(&worker->child);
    pb_worker_job_close(&worker->job);
    pb_publish_drop_temp();
    _exit(code);
}

void pb_worker_say(struct worker *worker, const char *text, size_t bytes)
{
    if (text == NULL || !pb_line_send(worker->out, text, bytes, NULL, 0))
        pb_worker_end(worker, 1); /* the owner has closed the pipe */
}

void pb_worker_say_json(struct worker *worker, struct pb_json *json)
{
    size_t bytes = 0;
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    pb_worker_say(worker, text, bytes);
    pb_json_destroy(json);
}

void pb_worker_say_end(struct worker *worker, const char *text, size_t bytes)
{
    if (worker->host.fd >= 0 && text != NULL)
        (void)pb_line_send(worker->host.fd, text, bytes, NULL, 0);
    pb_worker_host_close(&worker->host);
    pb_worker_say(worker, text, bytes);
}

struct pb_json *pb_worker_event(const struct pb_json_value *command, const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", name);
    if (command != NULL && pb_json_get_text(command, "job") != NULL)
        pb_json_string(json, "job", pb_json_get_text(command, "job"));
    return json;
}

static struct pb_json *progress_line(const struct worker *worker, const char *stage,
                                     const char *device, const struct pb_worker_numbers *numbers,
                                     int64_t checked, int64_t io_ms)
{
    struct pb_json *json = pb_worker_event(worker->command, "progress");
    pb_json_string(json, "stage", stage);
    pb_json_int(json, "tiles_done", numbers->tiles_done);
    pb_json_int(json, "tiles_total", numbers->tiles_total);
    pb_json_int(json, "bytes_read", numbers->bytes_read);
    pb_json_int(json, "bytes_written", numbers->bytes_written);
    pb_json_int(json, "elapsed_ms", numbers->elapsed_ms);
    pb_json_int(json, "bytes_checked", checked);
    pb_json_int(json, "io_ms", io_ms);
    if (device[0] != '\0')
        pb_json_string(json, "device", device);
    return json;
}

void pb_worker_say_progress(struct worker *worker, const char *stage, const char *device,
                            const struct pb_worker_numbers *numbers, int64_t checked, int64_t io_ms)
{
    struct pb_json *json = progress_line(worker, stage, device, numbers, checked, io_ms);
    size_t bytes = 0;
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    if (worker->host.fd >= 0 && text != NULL)
        (void)pb_line_send(worker->host.fd, text, bytes, NULL, 0);
    pb_worker_say(worker, text, bytes);
    pb_json_destroy(json);
}

static const char *stage_of(const struct worker *worker)
{
    const struct pb_worker_numbers *said = &worker->job.lines.said;
    if (said->tiles_total == 0 && !worker->away.delivers)
        return "plan";
    return said->tiles_done < said->tiles_total ? "compute" : "publish";
}

/* Sends a progress line while only the input's checksum is computed, or files are copied between
 * nodes: then about twice a second. */
static void say_checking(void *user, uint64_t bytes)
{
    struct worker *worker = user;
    struct pb_worker_host *host = &worker->host;
    const struct pb_worker_numbers *said = &worker->job.lines.said;
    const bool copies = worker->away.on || host->fd >= 0;
    const int64_t now = pb_clock_mono_ms();
    host->checked = bytes > host->checked ? bytes : host->checked;
    if (copies && now - worker->said_ms < COPIES_MS)
        return;
    worker->said_ms = now;
    pb_worker_say_progress(worker, stage_of(worker), "", said,
                           said->bytes_checked + (int64_t)pb_worker_away_bytes(&worker->away) +
                               (int64_t)(host->fd >= 0 ? host->checked + host->moved : bytes),
                           pb_io_stuck_ms());
}

/* Reports to the service that the connection to the other node moves, because the service ends a
 * run without progress. The other node gets no line: it may be reading the bytes of a file. */
static void say_moved(void *user, uint64_t bytes)
{
    struct worker *worker = user;
    struct pb_worker_host *host = &worker->host;
    const struct pb_worker_numbers *said = &worker->job.lines.said;
    const int64_t now = pb_clock_mono_ms();
    host->moved += bytes > host->file ? bytes - host->file : 1;
    host->file = bytes;
    if (now - worker->said_ms < COPIES_MS)
        return;
    worker->said_ms = now;
    pb_worker_say_json(worker,
                       progress_line(worker, stage_of(worker), "", said,
                                     said->bytes_checked + (int64_t)(host->checked + host->moved),
                                     pb_io_stuck_ms()));
}

static void read_commands(struct worker *worker);

static void request_permit(void *user)
{
    struct worker *worker = user;
    int64_t epoch = 0;
    (void)pb_json_get_int(worker->command, "epoch", &epoch);
    struct pb_json *json = pb_worker_event(worker->command, "permit");
    pb_json_int(json, "epoch", epoch);
    worker->permit = PERMIT_REQUESTED;
    pb_worker_say_json(worker, json);
}

/* Waits for the permit. A run that arrives meanwhile is the next one. */
static int await_permit(void *user, struct pb_err *err)
{
    struct worker *worker = user;
    while (worker->permit == PERMIT_REQUESTED)
        read_commands(worker);
    if (worker->permit == PERMIT_CANCELLED)
        return pb_fail(err, PB_E_JOB_DISMISSED, "cancelled before its products were published");
    return worker->permit == PERMIT_GRANTED
               ? 0
               : pb_fail(err, PB_E_OUTPUT_WRITE,
                         "cannot publish '%s': the job store has another run of the job, or its "
                         "end",
                         pb_json_get_text(worker->command, "scene"));
}

struct pb_worker_wait pb_worker_waits(struct worker *worker)
{
    return (struct pb_worker_wait){say_checking, request_permit, await_permit, worker};
}

void pb_worker_forget(struct worker *worker)
{
    pb_worker_job_close(&worker->job);
    pb_worker_away_close(&worker->away);
    pb_json_release(worker->command);
    worker->command = NULL;
    worker->permit = PERMIT_NONE; /* a late answer is ignored */
}

/* Reports the failure of the job. The job contains the name of its input already. */
void pb_worker_fail(struct worker *worker, const struct pb_err *err)
{
    struct pb_json *json = pb_worker_event(worker->command, "failed");
    const char *path = worker->job.scene.path;
    const char *input = path ? path : worker->job.manifest.input;
    struct pb_err said = *err;
    if (input != NULL && said.line == 0 && strcmp(said.file, input) == 0)
        said.file[0] = '\0';
    pb_err_json(json, "error", &said);
    size_t bytes = 0;
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    pb_worker_forget(worker);
    pb_worker_say_end(worker, text, bytes);
    pb_json_destroy(json);
}

/* --- commands -------------------------------------------------------------------------------*/

/* Reads the config. The config of the last command is reused, because the next job usually has the
 * same one. */
static int use_config(struct worker *worker, const struct pb_json_value *command,
                      struct pb_err *err)
{
    const char *text = pb_json_get_text(command, "config");
    const char *name = pb_json_get_text(command, "config_name");
    const char *device = pb_json_get_text(command, "device");
    if (text == NULL)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "a command without a config");
    if (worker->config == NULL || strcmp(worker->config->text, text) != 0) {
        struct pb_err_list *errors = calloc(1, sizeof *errors);
        pb_config_destroy(worker->config);
        worker->config = NULL;
        if (errors == NULL)
            return pb_fail(err, PB_E_MEMORY, "out of memory");
        int rc = pb_config_parse(text, strlen(text), name ? name : "config", &pb_products, errors,
                                 &worker->config);
        if (rc != 0)
            *err = errors->err[0];
        free(errors);
        if (rc != 0)
            return rc;
        worker->configured = worker->config->compute;
        pb_worker_user_find(worker->config->service.worker_user, &worker->child.user);
    }
    worker->config->compute = worker->configured;
    worker->device_given = device != NULL;
    if (device != NULL && pb_device_word(device, &worker->config->compute) != 0)
        return pb_fail(err, PB_E_SERVICE_PROTOCOL, "a command with the device '%.40s'", device);
    return 0;
}

static bool is_run_complete(const struct pb_json_value *command)
{
    static const char *const needed[] = {"job", "config", "pipeline", "products", "scene"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (pb_json_get_text(command, needed[i]) == NULL)
            return false;
    }
    return true;
}

static bool hand_over(struct worker *worker)
{
    size_t n = 0;
    struct pb_json *json = pb_worker_job_command(&worker->job, worker->away.place);
    const char *line = pb_json_text(json, &n);
    bool sent = line != NULL && pb_line_send(worker->child.lines.fd, line, n, NULL, 0);
    pb_json_destroy(json);
    return sent;
}

static bool is_foreground(const struct worker *worker)
{
    return pb_json_get_text(worker->command, "foreground") != NULL;
}

static void say_device(struct worker *worker, const char *device, const char *why)
{
    struct pb_json *json = pb_worker_event(NULL, "device");
    pb_json_string(json, "device", device);
    pb_json_string(json, "why", why);
    pb_worker_say_json(worker, json);
}

/* Socket of the process that computes the job; NULL: a child of this process computes it. */
static const char *owner_of(const struct worker *worker)
{
    bool cpu = worker->config->compute.device == PB_DEVICE_CPU && worker->device_given;
    return cpu ? NULL : pb_json_get_text(worker->command, "owner");
}

static int connect_owner(struct worker *worker, const char *owner, struct pb_err *err)
{
    const struct pb_json_value *command = worker->command;
    const struct pb_owner_hello hello = {.job = pb_json_get_text(command, "job"),
                                         .config = pb_json_get_text(command, "config"),
                                         .config_name = pb_json_get_text(command, "config_name"),
                                         .pipeline = pb_json_get_text(command, "pipeline")};
    pb_worker_fork_drop_owner(&worker->child);
    int fd = pb_owner_connect(owner, &hello, err);
    if (fd < 0)
        return fd;
    worker->child.owner_fd = fd;
    return 0;
}

/* Finds the device. Without an owner there is no GPU: a job that requires one fails, with the
 * reason that the starter of the owner sent. */
static int find_device(struct worker *worker, const struct pb_json_value *command, char device[64],
                       char why[200], struct pb_err *err)
{
    const char *reason = pb_json_get_text(command, "owner_why");
    if (reason == NULL)
        return pb_run_device(&worker->config->compute, device, why, err);
    (void)snprintf(device, 64, "cpu");
    (void)snprintf(why, 200, "%s", worker->config->compute.device == PB_DEVICE_CPU ? "" : reason);
    if (worker->config->compute.device != PB_DEVICE_CUDA)
        return 0;
    return pb_fail(err, PB_E_DEVICE_MISSING, "compute.device requires a CUDA device, but %s",
                   reason);
}

static int use_cpu(struct worker *worker, struct pb_err *err)
{
    char device[64], why[200];
    int rc = find_device(worker, worker->command, device, why, err);
    if (rc == 0 && is_foreground(worker) && !worker->device_said)
        say_device(worker, device, why);
    worker->device_said = true;
    return rc;
}

static int start_child(struct worker *worker, struct pb_err *err)
{
    const char *owner = owner_of(worker);
    int rc = owner != NULL ? connect_owner(worker, owner, err) : use_cpu(worker, err);
    rc = rc ? rc : pb_worker_job_lend(&worker->job, &worker->child.user, err);
    return rc ? rc : pb_worker_fork_start(&worker->child, worker->config, &worker->job, err);
}

static int open_run(struct worker *worker, struct pb_err *err)
{
    const unsigned mode = is_foreground(worker) ? 0 : pb_products_mode(&worker->config->service);
    const struct pb_worker_wait wait = pb_worker_waits(worker);
    return pb_worker_job_open(&worker->job, worker->command, worker->config, mode, &wait, err);
}

/* Copies the input from its node, and starts a child as usual. */
static int start_away(struct worker *worker, struct pb_err *err)
{
    const struct pb_worker_wait wait = pb_worker_waits(worker);
    char input[PB_WORKER_PATH_BYTES], products[PB_WORKER_PATH_BYTES], *line = NULL;
    int rc =
        pb_worker_away_open(&worker->away, worker->command,
                            worker->config->service.retention.min_free_bytes, &wait, err, &line);
    if (rc == PB_AWAY_FINAL) {
        pb_worker_forget(worker);
        pb_worker_say(worker, line, strlen(line));
        free(line);
        return 0;
    }
    pb_worker_away_input(&worker->away, input);
    pb_worker_away_products(&worker->away, products);
    rc = rc ? rc
            : pb_worker_job_open_away(&worker->job, worker->command, worker->config, input,
                                      products, err);
    rc = rc ? rc : start_child(worker, err);
    if (rc == 0 && !hand_over(worker))
        rc = pb_fail(err, PB_E_SYSTEM, "the process that computes does not listen");
    return rc;
}

/* Opens the run for another node, which is in the place of the child. */
static int start_host(struct worker *worker, int64_t socket, struct pb_err *err)
{
    worker->host = (struct pb_worker_host){.fd = (int)socket, .wait = {say_moved, worker}};
    int rc = open_run(worker, err);
    if (rc != 0)
        return rc;
    (void)snprintf(worker->job.lines.directory, sizeof worker->job.lines.directory, ".");
    pb_worker_fork_remote(&worker->child, worker->host.fd);
    rc = pb_worker_host_send(&worker->host, &worker->job, &worker->child.lines, err);
    rc = rc ? rc : pb_worker_job_identify(&worker->job, err);
    if (rc != 0)
        pb_worker_fork_end(&worker->child);
    return rc;
}

static int start_here(struct worker *worker, struct pb_err *err)
{
    int rc = open_run(worker, err);
    rc = rc ? rc : start_child(worker, err);
    if (rc == 0 && !hand_over(worker))
        rc = pb_fail(err, PB_E_SYSTEM, "the process that computes does not listen");
    return rc ? rc : pb_worker_job_identify(&worker->job, err);
}

static void start_run(struct worker *worker, struct pb_json_value *command)
{
    struct pb_err err = {0};
    int64_t socket = -1;
    worker->command = command;
    int rc = is_run_complete(command)
                 ? use_config(worker, command, &err)
                 : pb_fail(&err, PB_E_SERVICE_PROTOCOL, "a run command with members missing");
    if (rc == 0 && pb_json_get(command, "home", NULL) != NULL)
        rc = start_away(worker, &err);
    else if (rc == 0 && pb_json_get_int(command, "guest", &socket) == 0)
        rc = start_host(worker, socket, &err);
    else if (rc == 0)
        rc = start_here(worker, &err);
    if (rc != 0)
        pb_worker_fail(worker, &err);
}

static void probe(struct worker *worker, const struct pb_json_value *command)
{
    struct pb_err err = {0};
    char device[64] = "", why[200] = "";
    if (worker->command != NULL)
        return;
    int rc = use_config(worker, command, &err);
    rc = rc ? rc : find_device(worker, command, device, why, &err);
    say_device(worker, rc == 0 ? device : "", rc == 0 ? why : err.msg);
}

static void describe(struct worker *worker, const struct pb_json_value *command)
{
    struct pb_err err = {0};
    if (worker->command != NULL)
        (void)pb_fail(&err, PB_E_SERVICE_PROTOCOL, "a description while a job runs");
    else if (use_config(worker, command, &err) == 0)
        pb_worker_describe(worker, command);
    if (err.code != PB_OK)
        pb_worker_describe_fail(worker, &err);
}

static void take_next(struct worker *worker, struct pb_json_value *command)
{
    pb_json_release(worker->next);
    worker->next = command;
}

static bool is_of_run(const struct worker *worker, const struct pb_json_value *command)
{
    const char *job = pb_json_get_text(command, "job");
    return worker->command != NULL && job != NULL &&
           strcmp(job, pb_json_get_text(worker->command, "job")) == 0;
}

static void cancel(struct worker *worker, const char *text, size_t bytes)
{
    take_next(worker, NULL);
    if (worker->permit != PERMIT_NONE)
        worker->permit = PERMIT_CANCELLED;
    else if (worker->command != NULL)
        (void)pb_line_send(worker->child.lines.fd, text, bytes, NULL, 0);
}

static void take_permit(struct worker *worker, const struct pb_json_value *command)
{
    bool granted = false;
    if (worker->permit != PERMIT_REQUESTED || !is_of_run(worker, command))
        return;
    (void)pb_json_get_bool(command, "granted", &granted);
    worker->permit = granted ? PERMIT_GRANTED : PERMIT_REFUSED;
}

static void handle_command(struct worker *worker, const char *text, size_t bytes)
{
    struct pb_json_value *command = NULL;
    const char *name = NULL;
    int rc = pb_json_parse(text, bytes, PB_LINE_READER_MAX, &command);
    /* a lost command would never be answered; after an exit the job is tried again */
    if (rc == -ENOMEM) {
        (void)fputs("out of memory for a command\n", stderr);
        _exit(EXIT_FAILURE);
    }
    if (rc == 0)
        name = pb_json_get_text(command, "cmd");
    if (name != NULL && strcmp(name, "run") == 0 && worker->command == NULL && !worker->spent) {
        start_run(worker, command);
        return;
    }
    if (name != NULL && strcmp(name, "run") == 0 && worker->next == NULL) {
        take_next(worker, command);
        return;
    }
    if (name != NULL && strcmp(name, "cancel") == 0) {
        cancel(worker, text, bytes);
    } else if (name != NULL && strcmp(name, "permit") == 0) {
        take_permit(worker, command);
    } else if (name != NULL && strcmp(name, "turn") == 0) {
        if (is_of_run(worker, command))
            (void)pb_line_send(worker->child.lines.fd, text, bytes, NULL, 0);
    } else if (name != NULL && strcmp(name, "probe") == 0) {
        probe(worker, command);
    } else if (name != NULL && strcmp(name, "describe") == 0) {
        describe(worker, command);
    } else {
        (void)fprintf(stderr, "an unknown command: %.100s\n", text);
    }
    pb_json_release(command);
}

/* --- the process ----------------------------------------------------------------------------*/

/* Lowers the priority: jobs use all cores for minutes; the service needs little time and has
 * priority. */
static void give_way(void)
{
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WORKER_NICENESS);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = write(fd, "500", 3);
    (void)n;
    (void)close(fd);
}

static void become_worker(struct worker *worker)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "pushbroom-work");
    pb_trace_become(PB_TRACE_WORKER);
    (void)signal(SIGPIPE, SIG_IGN);
    /* writing beyond a limit of file sizes fails with a message instead */
    (void)signal(SIGXFSZ, SIG_IGN);
    /* Signals of a terminal and of `kill -- -GROUP` reach all processes; here the service decides
     * whether the worker ends. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    worker->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    worker->in = (struct pb_line_reader){.fd = STDIN_FILENO};
    worker->child.lines = (struct pb_line_reader){.fd = -1};
    worker->child.owner_fd = -1;
    worker->job.room = -1;
    worker->host.fd = worker->away.lines.fd = -1;
    pb_confine_hide();
    if (worker->warms)
        pb_worker_fork_warm(&worker->child, PB_WORKER_FORK_EPSG);
}

static void read_commands(struct worker *worker)
{
    size_t bytes;
    char *text;
    if (!pb_line_reader_fill(&worker->in))
        pb_worker_end(worker, 0); /* the owner has ended or closed the pipe */
    while ((text = pb_line_reader_next(&worker->in, &bytes)) != NULL)
        handle_command(worker, text, bytes);
}

static void start_next(struct worker *worker)
{
    while (worker->command == NULL && worker->next != NULL && !worker->spent) {
        struct pb_json_value *command = worker->next;
        worker->next = NULL;
        start_run(worker, command);
    }
    if (worker->command == NULL)
        pb_publish_drop_temp();
}

static int serve(struct worker *worker)
{
    become_worker(worker);
    if (worker->out < 0 || write(worker->out, "\n", 1) != 1)
        return 1;
    for (;;) {
        struct pollfd watched[2] = {{.fd = worker->in.fd, .events = POLLIN},
                                    {.fd = worker->child.lines.fd, .events = POLLIN}};
        int rc = poll(watched, 2, pb_worker_away_pause_ms(&worker->away));
        if (rc < 0 && errno != EINTR)
            return 1;
        if (rc > 0 && watched[1].revents != 0)
            pb_worker_relay(worker);
        if (rc > 0 && watched[0].revents != 0)
            read_commands(worker);
        pb_worker_away_show_life(&worker->away);
        start_next(worker);
    }
}

static struct worker the_worker;

int pb_worker_main(void)
{
    /* before the process becomes undumpable, because the file would belong to root then */
    give_way();
    the_worker.warms = true;
    return serve(&the_worker);
}

int pb_worker_main_foreground(void)
{
    the_worker.warms = true;
    return serve(&the_worker);
}

int pb_worker_main_single(void)
{
    return serve(&the_worker);
}
