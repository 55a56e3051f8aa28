/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: each input through its pipeline in this process, one after the other. */
#include "service/cli.h"
#include "service/cli_again.h"
#include "service/cli_result.h"

#include "pipeline/device.h"
#include "pipeline/run.h"
#include "pipeline/thread.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 100 }; /* between two looks at the progress */

struct options {
    const char *config, *pipeline, *output, *device;
    bool json, quiet, dry_run;
    enum pb_existing existing;
    const char *device_why; /* of the current input; "" = no device failed */
    const char *stream_why; /* the same, when it has to go by streams; else NULL */
};

static atomic_bool interrupted;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&interrupted, true);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* "auto", "cpu", "cuda", "cuda:2" into the config. */
static int set_device(struct pb_config *config, const char *word)
{
    struct pb_compute_config *c = &config->compute;
    c->device_index = -1;
    if (strcmp(word, "auto") == 0)
        c->device = PB_DEVICE_AUTO;
    else if (strcmp(word, "cpu") == 0)
        c->device = PB_DEVICE_CPU;
    else if (strcmp(word, "cuda") == 0)
        c->device = PB_DEVICE_CUDA;
    else if (strncmp(word, "cuda:", 5) == 0 && word[5] >= '0' && word[5] <= '9' &&
             strlen(word) <= 7) {
        c->device = PB_DEVICE_CUDA;
        c->device_index = atoi(word + 5);
    } else
        return cli_usage("run", "--device is auto, cpu, cuda or cuda:N, not '%s'", word);
    return CLI_DONE;
}

static void show_progress(struct pb_run *run, struct cli_bar *bar)
{
    struct pb_run_progress p;
    char line[256], state[40], size[16];
    pb_run_progress(run, &p);
    cli_bar_update(bar, now_s(), p.tiles_done, p.tiles_total, p.bytes_read);
    (void)snprintf(state, sizeof state, "%s", pb_stage_name(p.stage));
    if (p.stage == PB_STAGE_PUBLISH)
        (void)snprintf(state, sizeof state, "publish %s",
                       cli_bytes((double)p.bytes_written, size, sizeof size));
    cli_bar_text(bar, state, p.tiles_done, p.tiles_total, cli_columns(stderr) - 1, line,
                 sizeof line);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

static int wait_for(struct pb_run *run, struct cli_bar *bar, struct pb_err *err)
{
    int rc;
    while ((rc = pb_run_wait(run, STEP_MS, err)) == -ETIMEDOUT) {
        if (interrupted)
            pb_run_abort(run);
        if (bar != NULL)
            show_progress(run, bar);
    }
    return rc;
}

/* Publishing takes as long as the disk does: it has a thread of its own, so that this one can show
 * it and end it. */
struct publishing {
    struct pb_run *run;
    struct pb_err *err;
    struct pb_run_result *result;
    int rc;
    pthread_mutex_t lock; /* over */
    pthread_cond_t ended;
    bool over;
};

static void *publish_body(void *arg)
{
    struct publishing *p = arg;
    p->rc = pb_run_publish(p->run, p->err, p->result);
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Waits a step; true: it is over. */
static bool publish_step(struct publishing *p)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until); /* a clock that is set costs one step */
    until.tv_nsec += STEP_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&p->lock);
    if (!p->over)
        (void)pthread_cond_timedwait(&p->ended, &p->lock, &until);
    bool over = p->over;
    pthread_mutex_unlock(&p->lock);
    return over;
}

static int publish(struct pb_run *run, struct cli_bar *bar, struct pb_err *err,
                   struct pb_run_result *result)
{
    struct publishing p = {.run = run,
                           .err = err,
                           .result = result,
                           .lock = PTHREAD_MUTEX_INITIALIZER,
                           .ended = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    int rc = pb_thread_start(&thread, publish_body, &p);
    if (rc < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot start a thread: %s", strerror(-rc));
    do {
        if (interrupted)
            pb_run_abort(run);
        if (bar != NULL)
            show_progress(run, bar);
    } while (!publish_step(&p));
    (void)pthread_join(thread, NULL);
    pthread_cond_destroy(&p.ended);
    pthread_mutex_destroy(&p.lock);
    return p.rc;
}

static int compute_and_publish(struct pb_run *run, const char *input, bool bar_wanted,
                               struct pb_err *err, struct pb_run_result *result)
{
    struct cli_bar bar = {0}, *shown = bar_wanted ? &bar : NULL;
    const char *base = strrchr(input, '/');
    (void)snprintf(bar.name, sizeof bar.name, "%s", base ? base + 1 : input);
    int rc = wait_for(run, shown, err);
    if (rc == 0)
        rc = publish(run, shown, err, result);
    if (bar_wanted)
        fputs("\r\033[K", stderr);
    return rc;
}

static int dry_run(const struct options *o, const char *input, const char *pipeline,
                   struct pb_run *run)
{
    char text[2048];
    (void)pb_run_explain(run, text, sizeof text);
    if (o->json)
        cli_result_plan(input, pipeline, text);
    else
        fputs(text, stdout);
    return 0;
}

static int process(const struct options *o, const struct pb_config *config,
                   const struct pb_pipeline_config *pipeline, const char *input, struct pb_err *err)
{
    struct pb_run_options options = {.config = config,
                                     .pipeline = pipeline,
                                     .input = input,
                                     .products = o->dry_run ? NULL : o->output,
                                     .stream_why = o->stream_why,
                                     .existing = o->existing};
    struct pb_run *run = NULL;
    struct pb_run_result result = {0};
    bool bar_wanted = !o->json && !o->quiet && cli_is_terminal(stderr);
    int rc = pb_run_create(&options, err, &run);
    if (rc == 0 && o->dry_run) {
        rc = dry_run(o, input, pipeline->name, run);
        goto out;
    }
    if (rc == 0)
        rc = pb_run_start(run, err);
    if (rc == 0)
        rc = compute_and_publish(run, input, bar_wanted, err, &result);
    if (rc == 0 && o->json)
        cli_result_json(input, pipeline->name, o->device_why, NULL, &result);
    else if (rc == 0 && !o->quiet)
        cli_result_text(input, &result);
out:
    pb_run_destroy(run);
    return rc;
}

/* The device failed, so this process is no good any more. Returns only when a fresh one cannot be
 * had. */
static void go_on_in_fresh_process(const struct options *o, const struct pb_config *config,
                                   char **inputs, enum pb_device_try next, bool failed,
                                   const struct pb_err *err)
{
    struct cli_again again = {.device_try = next, .failed = failed};
    const char *options[] = {"-c", o->config, "-o", o->output, NULL, NULL,
                             NULL, NULL,      NULL, NULL,      NULL, NULL};
    size_t n = 4;
    struct stat st;
    if (stat(config->path, &st) != 0 || !S_ISREG(st.st_mode)) {
        fprintf(stderr, "pushbroom: %s is no file that a fresh process could read again\n",
                config->path);
        return;
    }
    if (o->pipeline != NULL) {
        options[n++] = "-p";
        options[n++] = o->pipeline;
    }
    if (o->device != NULL) {
        options[n++] = "--device";
        options[n++] = o->device;
    }
    if (o->json)
        options[n++] = "--json";
    if (o->quiet)
        options[n++] = "--quiet";
    if (o->existing == PB_EXISTING_VERSION)
        options[n++] = "--existing=version";
    pb_device_try_why(next, config->compute.device == PB_DEVICE_CUDA, pb_code_id(err->code),
                      err->msg, again.why, sizeof again.why);
    fprintf(stderr, "pushbroom: %s: runs %s\n", inputs[0], again.why);
    int rc = cli_again_exec(options, inputs, &again);
    fprintf(stderr, "pushbroom: cannot start a fresh process: %s\n", strerror(-rc));
}

/* Fills *err on failure, and *out_pipeline when there is one. */
static int try_one(const struct options *o, const struct pb_config *config, const char *input,
                   struct pb_err *err, const struct pb_pipeline_config **out_pipeline)
{
    struct stat st;
    const struct pb_pipeline_config *pipeline =
        o->pipeline ? pb_config_pipeline(config, o->pipeline) : pb_config_match(config, input);
    *out_pipeline = pipeline;
    if (stat(input, &st) != 0)
        return pb_fail(err, PB_E_INPUT_MISSING, "cannot open the file: %s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return pb_fail(err, PB_E_INPUT_NOT_TIFF, "this is a directory; name the files in it");
    if (pipeline == NULL)
        return pb_fail(err, PB_E_INPUT_NO_PIPELINE, "no pipeline of %s takes this file's name",
                       o->config);
    int rc = process(o, config, pipeline, input, err);
    if (rc != 0 && err->code == PB_OK)
        (void)pb_fail(err, PB_E_SYSTEM, "%s", strerror(-rc));
    return rc;
}

/* The first of `inputs`; the others are for a process that may have to take over. */
static int process_one(struct options *o, struct pb_config *config, char **inputs,
                       const struct cli_again *again)
{
    struct pb_err err = {0};
    const struct pb_pipeline_config *pipeline = NULL;
    const char *input = inputs[0];
    enum pb_device_kind configured = config->compute.device;
    o->device_why = again->why;
    o->stream_why = again->device_try == PB_DEVICE_TRY_STREAM ? again->why : NULL;
    if (again->device_try == PB_DEVICE_TRY_CPU)
        config->compute.device = PB_DEVICE_CPU;
    int rc = try_one(o, config, input, &err, &pipeline);
    config->compute.device = configured;
    if (rc == 0)
        return CLI_DONE;
    pb_device_left_err(&err);
    enum pb_device_try next = pb_device_try_next(again->device_try, pb_code_id(err.code));
    if (next != PB_DEVICE_TRY_OVER && !interrupted)
        go_on_in_fresh_process(o, config, inputs, next, again->failed, &err);
    if (!err.file[0])
        (void)snprintf(err.file, sizeof err.file, "%s", input);
    if (o->json)
        cli_result_json(input, pipeline ? pipeline->name : NULL, again->why, &err, NULL);
    else
        cli_print_err(&err);
    return CLI_JOB_FAILED;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"config", 1, 0, 'c'}, {"pipeline", 1, 0, 'p'}, {"output", 1, 0, 'o'},
        {"device", 1, 0, 'd'}, {"dry-run", 0, 0, 'n'},  {"json", 0, 0, 'j'},
        {"quiet", 0, 0, 'q'},  {"existing", 1, 0, 'e'}, {0, 0, 0, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":c:p:o:", longs, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->config = optarg;
            break;
        case 'p':
            o->pipeline = optarg;
            break;
        case 'o':
            o->output = optarg;
            break;
        case 'd':
            o->device = optarg;
            break;
        case 'n':
            o->dry_run = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 'q':
            o->quiet = true;
            break;
        case 'e':
            if (strcmp(optarg, "refuse") != 0 && strcmp(optarg, "version") != 0)
                return cli_usage("run", "--existing is refuse or version, not '%s'", optarg);
            o->existing = optarg[0] == 'v' ? PB_EXISTING_VERSION : PB_EXISTING_REFUSE;
            break;
        default:
            return cli_bad_option("run", argv, c, longs);
        }
    }
    if (o->config == NULL)
        return cli_usage("run", "-c FILE is missing");
    if (o->output[0] == '\0')
        return cli_usage("run", "-o wants a directory");
    if (optind == argc)
        return cli_usage("run", "no INPUT given");
    return CLI_DONE;
}

static void say_device(const struct pb_config *config)
{
    char device[64], why[200];
    struct pb_err err = {0};
    if (pb_run_device(&config->compute, device, why, &err) == 0 && why[0])
        fprintf(stderr, "pushbroom: computing on the CPU: %s\n", why);
}

int cli_run(int argc, char **argv)
{
    struct options o = {.output = ".", .device_why = ""};
    struct cli_again again;
    cli_again_take(&again);
    int rc = parse(argc, argv, &o);
    if (rc != CLI_DONE)
        return rc;
    struct pb_config *config = cli_load_config(o.config);
    if (config == NULL)
        return CLI_USAGE;
    if (o.device != NULL)
        rc = set_device(config, o.device);
    if (rc == CLI_DONE && o.pipeline != NULL && pb_config_pipeline(config, o.pipeline) == NULL)
        rc = cli_usage("run", "%s has no pipeline '%s'", o.config, o.pipeline);
    if (rc == CLI_DONE) {
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        if (!o.quiet && config->compute.device == PB_DEVICE_AUTO &&
            again.device_try == PB_DEVICE_TRY_FIRST)
            say_device(config);
    }
    int i = optind;
    bool usable = rc == CLI_DONE;
    for (; i < argc && usable && !interrupted && !pb_device_left_behind(); i++) {
        if (process_one(&o, config, argv + i, &again) != CLI_DONE)
            again.failed = true;
        again = (struct cli_again){.failed = again.failed};
    }
    if (usable && again.failed)
        rc = CLI_JOB_FAILED;
    if (interrupted && (rc == CLI_JOB_FAILED || i < argc)) {
        fputs("pushbroom: interrupted; what was not finished left nothing behind\n", stderr);
        rc = CLI_JOB_FAILED;
    }
    if (pb_device_left_behind()) { /* and no fresh process was to be had */
        fprintf(stderr, "pushbroom: the GPU does not let go; %d inputs were not tried\n", argc - i);
        (void)fflush(NULL);
        _exit(CLI_JOB_FAILED);
    }
    pb_config_destroy(config);
    return rc;
}
