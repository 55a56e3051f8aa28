/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: each input through its pipeline, one after the other. */
#include "service/cli/cli.h"
#include "service/cli/cli_reexec.h"
#include "service/cli/cli_compute.h"
#include "service/cli/cli_result.h"
#include "service/cli/cli_watchdog.h"

#include "pipeline/device/device.h"
#include "pipeline/run/run.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
    const char *config, *pipeline, *output, *device;
    bool json, quiet, dry_run;
    enum pb_existing existing;
    const char *device_why; /* of the current input; "" = no device failed */
    const char *stream_why; /* the same, when it has to go by streams; else NULL */
};

static void on_signal(int number)
{
    (void)number;
    cli_compute_interrupt();
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

static int process(const struct options *o, struct pb_config *config,
                   const struct pb_pipeline_config *pipeline, const char *input, struct pb_err *err)
{
    struct cli_compute compute = {.options = {.config = config,
                                              .pipeline = pipeline,
                                              .input = input,
                                              .products = o->dry_run ? NULL : o->output,
                                              .stream_why = o->stream_why,
                                              .existing = o->existing},
                                  .config = config,
                                  .json = o->json,
                                  .quiet = o->quiet,
                                  .device_why = o->device_why};
    struct pb_run *run = NULL;
    if (!o->dry_run && cli_compute_is_apart(config))
        return cli_compute_apart(&compute, err);
    if (!o->dry_run)
        return cli_compute_here(&compute, err);
    int rc = pb_run_create(&compute.options, err, &run);
    if (rc == 0)
        rc = dry_run(o, input, pipeline->name, run);
    pb_run_destroy(run);
    return rc;
}

/* The device failed, so this process is no good any more. Returns only when a fresh one cannot be
 * had. */
static void go_on_in_fresh_process(const struct options *o, const struct pb_config *config,
                                   char **inputs, enum pb_device_try next, bool failed,
                                   const struct pb_err *err)
{
    struct cli_reexec again = {.device_try = next, .failed = failed};
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
    int rc = cli_reexec(options, inputs, &again);
    fprintf(stderr, "pushbroom: cannot start a fresh process: %s\n", strerror(-rc));
}

/* Fills *err on failure, and *out_pipeline when there is one. */
static int try_one(const struct options *o, struct pb_config *config, const char *input,
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
                       const struct cli_reexec *again)
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
    if (next != PB_DEVICE_TRY_OVER && !cli_compute_is_interrupted())
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

static void say_no_device(void *user)
{
    const struct pb_config *config = user;
    struct pb_err err = {0};
    (void)pb_fail(&err, PB_E_JOB_STALLED,
                  "the GPU did not answer within %lld s (service.stall); --device cpu does without",
                  (long long)(config->service.stall_ms / 1000));
    cli_print_err(&err);
}

static void say_device(struct pb_config *config)
{
    char device[64], why[200];
    struct pb_err err = {0};
    cli_watchdog_start(config->service.stall_ms, say_no_device, config);
    int rc = pb_run_device(&config->compute, device, why, &err);
    cli_watchdog_stop();
    if (rc == 0 && why[0])
        fprintf(stderr, "pushbroom: computing on the CPU: %s\n", why);
}

int cli_run(int argc, char **argv)
{
    struct options o = {.output = ".", .device_why = ""};
    struct cli_reexec again;
    cli_reexec_take(&again);
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
    if (usable && argc - i > 1 && !o.dry_run && cli_compute_is_apart(config))
        cli_compute_warm();
    for (; i < argc && usable && !cli_compute_is_interrupted() && !pb_device_left_behind(); i++) {
        if (process_one(&o, config, argv + i, &again) != CLI_DONE)
            again.failed = true;
        again = (struct cli_reexec){.failed = again.failed};
    }
    if (usable && again.failed)
        rc = CLI_JOB_FAILED;
    if (cli_compute_is_interrupted() && (rc == CLI_JOB_FAILED || i < argc)) {
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
