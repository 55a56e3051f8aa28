/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The table of commands with their help, and the messages for usage errors. */
#include "service/cli/cli.h"
#include "config/base/err_json.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/help/completion.h"
#include "service/help/man.h"

#include "kernels/nearest.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define N_OPTIONS(...) ((const struct pb_help_option[]){__VA_ARGS__, {0, NULL, NULL, NULL, NULL}})
#define SOCKET                                                                                     \
    {                                                                                              \
        0, "socket", "PATH", NULL,                                                                 \
            "where the service listens (default: $PUSHBROOM_SOCKET, then "                         \
            "/run/pushbroom/status.sock)"                                                          \
    }
#define JSON(doc)                                                                                  \
    {                                                                                              \
        0, "json", NULL, NULL, doc                                                                 \
    }

static const struct cli_command commands[] = {
    {{.name = "run",
      .arguments = "-c FILE [options] INPUT...",
      .summary = "process files here and now, no service needed",
      .options = N_OPTIONS(
          {'c', "config", "FILE", NULL,
           "the configuration: a file, or the name of a preset (pushbroom new)"},
          {'p', "pipeline", "NAME", NULL, "pipeline to use (default: the first that matches)"},
          {'o', "output", "DIR", NULL,
           "directory of the products, as DIR/<scene>/<pipeline>/ (default: here)"},
          {0, "existing", "WHAT", "refuse|replace|version",
           "when the place holds another input's products: refuse, replace or version (<scene>~2); "
           "default: output.exists"},
          {0, "device", "DEVICE", "auto|cpu|cuda",
           "auto | cpu | cuda | cuda:N, instead of the config's"},
          {0, "dry-run", NULL, NULL,
           "show the plan of a run: pipeline, files, dates, calibration, masks, grid, products, "
           "memory; reads no pixels, writes nothing"},
          {'v', "verbose", NULL, NULL,
           "why it computes on the CPU, and what limited the speed; with --dry-run tiles, threads "
           "and buffers as well"},
          {0, "as", "NAME", NULL,
           "with --dry-run: plan as on a device that is not here (pushbroom devices --as)"},
          {0, "profile", "FILE", NULL,
           "write a trace of every tile through every stage to a new FILE, for ui.perfetto.dev or "
           "chrome://tracing"},
          JSON("one JSON object per scene, a line each, with timings"),
          {0, "quiet", NULL, NULL, "only errors"}),
      .text = "Worker processes compute: on the CPU scenes of few tiles at the same time, as many "
              "as there are cores, within compute.memory. When one crashes, its input runs again "
              "in another one (service.max_attempts). When a GPU fails, the input is tried again "
              "in a fresh "
              "process, then on the CPU.",
      .example = "pushbroom run -c samples/vegetation.yaml -o out scene.tif",
      .takes_files = true},
     "Without the service",
     NULL},
    {{.name = "put",
      .arguments = "[options] SCENE...",
      .summary = "copy or move scenes into the inbox of the service",
      .options = N_OPTIONS(
          {'i', "inbox", "NAME", NULL,
           "the inbox, by its path or the last part of it; needed if there are several"},
          {0, "move", NULL, NULL, "move the scenes: the source is removed"},
          {0, "wait", NULL, NULL, "show progress until all are done; exit 1 if one failed"},
          JSON("one JSON object per scene; with --wait one per change of a job"), SOCKET,
          {'c', "config", "FILE", NULL,
           "configuration that names the inbox if the service does not run (default: "
           "/etc/pushbroom/pushbroom.yaml)"}),
      .text = "SCENE is a file, a folder or an archive. It is copied under a name that ends in "
              ".part, gets the group and the permissions that the service needs, is written to the "
              "disk, and is then renamed: the service never sees a part of it. Modification times "
              "are kept. A name that is already in the inbox is refused. A symbolic link in a "
              "folder is refused, because the service follows none. An interrupted command leaves "
              "no part in the inbox.",
      .example = "pushbroom put --wait ~/scenes/S2A_29RKH_20200219_0_L2A",
      .takes_files = true},
     "With the service (pushbroomd)",
     cli_put},
    {{.name = "submit",
      .arguments = "[options] FILE...",
      .summary = "give files to the service",
      .options = N_OPTIONS(
          {'p', "pipeline", "NAME", NULL, "pipeline to use"},
          {0, "priority", "N", NULL,
           "-100 to 100: higher ones run first; above 0 for administrators"},
          {0, "wait", NULL, NULL, "show progress until all are done; exit 1 if one failed"},
          JSON("the jobs as JSON"), SOCKET),
      .text = "The files stay where they are, so the service must be able to read them there: its "
              "unit hides /home, /root and /tmp. 'pushbroom put' has no such limit.",
      .example = "pushbroom submit --wait -p ndvi scene.tif",
      .takes_files = true},
     NULL,
     cli_submit},
    {{.name = "status",
      .arguments = "[JOB] [options]",
      .summary = "state of the service, or one job in full",
      .options =
          N_OPTIONS({0, "watch", NULL, NULL, "keep showing, a progress bar a running job"},
                    {0, "until-idle", NULL, NULL,
                     "with --watch: end when nothing is left to do (exit 1 if a job failed)"},
                    {0, "expect", "N", NULL, "with --until-idle: not before N jobs have been seen"},
                    {0, "all", NULL, NULL, "all jobs instead of the newest 20"},
                    {0, "wide", NULL, NULL,
                     "cut no line (as where the output is no terminal; $COLUMNS sets a width)"},
                    {0, "failed", NULL, NULL, "failed jobs only"},
                    {0, "since", "DURATION", NULL,
                     "jobs that changed in this time: 1d, 30m; with --expect: count those as "
                     "well that ended in it before the watch"},
                    {'p', "pipeline", "NAME", NULL, "jobs of this pipeline"},
                    {'v', "verbose", NULL, NULL,
                     "also version, device, directories and the configuration in use"},
                    JSON("a job a line as JSON, without reports (with --watch: an object a "
                         "change; of a JOB the one with its report)"),
                    SOCKET),
      .text = "JOB is a job's id or the end of one, as long as it is the only one that fits.",
      .example = "pushbroom status --failed --since 1d --wide"},
     NULL,
     cli_status},
    {{.name = "cancel",
      .arguments = "[options] JOB...",
      .summary = "stop jobs, or take them out of the queue",
      .options = N_OPTIONS(SOCKET, JSON("the job as JSON, a line each"))},
     NULL,
     cli_cancel},
    {{.name = "retry",
      .arguments = "[options] JOB... | --failed",
      .summary = "run failed or cancelled jobs again",
      .options = N_OPTIONS(
          {0, "failed", NULL, NULL, "all failed jobs, the oldest first"},
          {0, "since", "DURATION", NULL, "with --failed: that changed in this time: 1d, 30m"},
          {'p', "pipeline", "NAME", NULL, "with --failed: of this pipeline"}, SOCKET,
          JSON("the job as JSON, a line each"))},
     NULL,
     cli_retry},
    {{.name = "again",
      .arguments = "[options] JOB... | --pipeline NAME --since DURATION",
      .summary = "make the products of done jobs again, from the archive",
      .options = N_OPTIONS(
          {'p', "pipeline", "NAME", NULL, "all successful jobs of this pipeline"},
          {0, "since", "DURATION", NULL, "all successful jobs that ended in this time: 30d"},
          {0, "dry-run", NULL, NULL, "list them and their bytes; queue nothing"},
          {0, "priority", "N", NULL, "-100 to 100 (default: -50); above 0 for administrators"},
          SOCKET, JSON("the new jobs as JSON, a line each")),
      .text = "After a change of a pipeline. Each becomes a new job, which reads the input where "
              "the archive (service.archive), or the client that submitted it, has it, and "
              "replaces the products of the earlier job, regardless of output.exists. "
              "Products that a later job made are left alone. Exit 1 if an input is not there any "
              "more (service.retention.done, service.on_success: delete).",
      .example = "pushbroom again --pipeline ndvi --since 30d --dry-run"},
     NULL,
     cli_again},
    {{.name = "quarantine",
      .arguments = "list|show|retry|drop [JOB...]",
      .summary = "inputs of failed jobs",
      .options = N_OPTIONS(
          {0, "failed", NULL, NULL, "with retry and drop: all of them"},
          {0, "since", "DURATION", NULL, "with list and --failed: that changed in this time"},
          {'p', "pipeline", "NAME", NULL, "with list and --failed: of this pipeline"}, SOCKET,
          JSON("the jobs as JSON")),
      .text = "list: jobs whose input is in quarantine, and why.\n\n"
              "show JOB: one in full.\n\n"
              "retry JOB...: run them again, their inputs back from quarantine.\n\n"
              "drop JOB...: remove their inputs from quarantine for good. The jobs are then "
              "dismissed."},
     NULL,
     cli_quarantine},
    {{.name = "drain",
      .arguments = "[options]",
      .summary = "take no new job, and wait until nothing runs: before an upgrade",
      .options = N_OPTIONS({0, "now", NULL, NULL,
                            "put running jobs back at once; another node runs them, or this "
                            "service later"},
                           {0, "off", NULL, NULL, "end the drain: jobs and files are taken again"},
                           {0, "no-wait", NULL, NULL, "begin the drain and do not wait"}, SOCKET,
                           JSON("service.info as JSON, when nothing runs")),
      .text = "The service starts no job, takes no file from its inboxes and no submitted one, and "
              "ends what runs. Jobs that wait stay, as do files in the inboxes; other nodes of the "
              "job store run the jobs. An interrupted command leaves the drain on; --off or a "
              "restart of the service ends it. For root, the service's user and service.admins.",
      .example = "pushbroom drain && systemctl restart pushbroom"},
     NULL,
     cli_drain},
    {{.name = "feed",
      .arguments = "--stream NAME [options] FILE",
      .summary = "replay a file into a stream, as a sensor would write it",
      .options = N_OPTIONS(
          {'s', "stream", "NAME", NULL, "the stream: input.stream of a pipeline"},
          {0, "lines-per-second", "N", NULL, "pace (default: as fast as they are taken)"},
          {0, "group", "N", NULL, "lines that are written together (default: 16)"},
          {0, "first", "N", NULL, "number of the first line (default: 0)"},
          {0, "start", "TIME", NULL,
           "time of the first line, such as 2026-11-30T12:00:00Z, or now; without: lines have no "
           "times"},
          {0, "repeat", "N", NULL, "how often the file is replayed; line numbers continue"},
          {0, "skip", "FIRST:N", NULL, "leave out N lines, as a lossy link would"},
          {0, "token-file", "FILE", NULL, "file with the stream's token (input.lines.token)"},
          JSON("the result as JSON"), SOCKET),
      .text = "Bands, type and place are those of the file. Pixels are written as they are stored; "
              "masks are not written. Ends when the service has taken all lines. Exit 3: the "
              "service refused the writer, or ended the stream.",
      .example = "pushbroom feed --stream swir --lines-per-second 2000 --start now scene.tif",
      .takes_files = true},
     NULL,
     NULL},
    {{.name = "metrics",
      .arguments = "[options]",
      .summary = "the service's counters in Prometheus text format",
      .options = N_OPTIONS(SOCKET, JSON("the same text in a JSON object"),
                           {0, "textfile", "FILE", NULL,
                            "write it to FILE, by a rename: for the textfile collector of "
                            "Prometheus' node exporter"})},
     NULL,
     cli_metrics},
    {{.name = "store",
      .arguments = "init|check|forget NODE [CONNINFO | -c FILE] [--json]",
      .summary = "the database of services that share their jobs",
      .options = N_OPTIONS({'c', "config", "FILE", NULL,
                            "configuration that names the database (default: "
                            "/etc/pushbroom/pushbroom.yaml)"},
                           JSON("an object for each point, a line each")),
      .text = "CONNINFO is a connection string of libpq, like service.store.postgresql.\n\n"
              "init: make the tables in the database, or upgrade them; it can be repeated.\n\n"
              "check: a line for each point that the safety and speed of the jobs depend on: the "
              "server and its settings, standbys, tables, rights, old transactions, connections, "
              "round trip; with service.fetch in the configuration, the certificates of this "
              "node. 'mend' has the remedy, 'note' a limit. It changes nothing. "
              "Exit 1: something is to mend; 3: the database cannot be reached.\n\n"
              "forget NODE: end a node that is gone for ever. It must not report. Other nodes run "
              "its jobs; no file is touched. A line for each kind of files that it leaves has the "
              "remedy. Exit 1: such files remain, or nothing was changed.",
      .example = "pushbroom store check \"host=db.example.org dbname=pushbroom\""},
     NULL,
     cli_store},
    {{.name = "new",
      .arguments = "[NAME] [--json]",
      .summary = "list the presets, or print one to start a configuration from",
      .options = N_OPTIONS(JSON("the list, or the preset, as JSON")),
      .text = "A preset is a configuration that is found by its name: NAME.yaml in "
              "$PUSHBROOM_PRESETS, /etc/pushbroom/presets or share/pushbroom/presets. "
              "'pushbroom run -c NAME' runs it, and a pipeline with 'input: NAME' reads the same "
              "scenes.",
      .example = "pushbroom new sentinel2-l2a > my.yaml"},
     "To look things up",
     cli_new},
    {{.name = "check-config",
      .arguments = "FILE [--json] | --schema",
      .summary = "check a configuration and print its effective values",
      .options = N_OPTIONS(JSON("mistakes, or the configuration's text, as JSON"),
                           {0, "schema", NULL, NULL,
                            "print the JSON Schema (2020-12) of configurations, for editors"}),
      .text = "Prints every mistake as file:line:col, or the configuration with all defaults and "
              "presets filled in. FILE may be the name of a preset.",
      .takes_files = true},
     NULL,
     cli_check_config},
    {{.name = "operators",
      .arguments = "[NAME] [--json]",
      .summary = "operators for the steps of a pipeline",
      .options = N_OPTIONS(JSON("as JSON")),
      .text = "With a NAME: its formula, units, treatment of nodata, source, parameters and an "
              "example."},
     NULL,
     cli_operators},
    {{.name = "indices",
      .arguments = "[NAME] [options]",
      .summary = "the spectral indices that the operator 'index' knows",
      .options = N_OPTIONS(
          {0, "bands", "LIST", NULL, "mark what these bands can evaluate, for example B,G,R,N"},
          {0, "bands-help", NULL, NULL, "names of bands, their meaning and wavelengths"},
          {0, "domain", "WORD", "vegetation|water|burn|urban|soil|radar|snow|clouds|kernel",
           "one of vegetation, water, burn, urban, soil, radar, snow, clouds, "
           "kernel"},
          JSON("as JSON"))},
     NULL,
     cli_indices},
    {{.name = "patterns",
      .arguments = "[NAME] [--json]",
      .summary = "how tiles and results may be exchanged with a device",
      .options = N_OPTIONS(JSON("as JSON")),
      .example = "pushbroom patterns alternating",
      .text = "The communication patterns that 'exchange' of a pipeline can name: built in, and "
              "plugins of the installation. With a NAME: its arguments."},
     NULL,
     cli_patterns},
    {{.name = "devices",
      .arguments = "[options]",
      .summary = "processors and GPUs to compute on",
      .options = N_OPTIONS({0, "as", "NAME", NULL,
                            "plan for a device that is not here, by its maker's figures: "
                            "jetson-orin, l4, h200, ...; another name lists them"},
                           {0, "tune", NULL, NULL,
                            "measure which plans bring tiles to each GPU fastest, 3 s a GPU, and "
                            "keep them: later runs, and services that are started later, use them"},
                           JSON("as JSON")),
      .text = "Measures the link to each GPU; takes a moment. A plan shows how tiles of the size "
              "named would reach it. Measurements are kept by model and driver, in "
              "$PUSHBROOM_TUNING, else /var/cache/pushbroom/tuning.json (as root) or "
              "~/.cache/pushbroom/tuning.json."},
     NULL,
     NULL},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].page.name, name) == 0)
            return &commands[i];
    return NULL;
}

const struct cli_command *cli_command_at(size_t i)
{
    return i < N_COMMANDS ? &commands[i] : NULL;
}

void cli_help(const char *name, FILE *out)
{
    const struct cli_command *c = name ? cli_command_find(name) : NULL;
    if (c != NULL) {
        pb_help_print(&c->page, "pushbroom", out);
        return;
    }
    fputs("usage: pushbroom COMMAND [options]\n\n"
          "Satellite images in, finished products out: cloud-optimised GeoTIFFs,\n"
          "quicklooks, statistics and STAC items, tile by tile, on the CPU or a GPU.\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (commands[i].group != NULL)
            fprintf(out, "\n%s:\n", commands[i].group);
        fprintf(out, "  %-14s %s\n", commands[i].page.name, commands[i].page.summary);
    }
    fputs("\n'pushbroom COMMAND --help' shows more. Exit codes: 0 done, 1 a job failed,\n"
          "2 wrong usage or configuration, 3 the service cannot be reached.\n",
          out);
}

void cli_version(void)
{
#ifdef PB_HAVE_CUDA
    const char *cuda = "in this build ('pushbroom devices' lists GPUs)";
#else
    const char *cuda = "not in this build";
#endif
    printf("pushbroom %s\n%s; CUDA: %s\n", PB_VERSION, PB_LIBRARY_VERSIONS, cuda);
}

int cli_document(const char *kind, const char *what)
{
    const struct pb_help_page *pages[N_COMMANDS];
    const char *groups[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++) {
        pages[i] = &commands[i].page;
        groups[i] = commands[i].group;
    }
    const struct pb_man_commands all = {pages, groups, N_COMMANDS};
    bool man = strcmp(kind, "--man") == 0;
    if (man && strcmp(what, "pushbroom.1") == 0)
        pb_man_commands(&all, stdout);
    else if (man && strcmp(what, "pushbroom.yaml.5") == 0)
        pb_man_config(&pb_products, stdout);
    else if (man && strcmp(what, "pushbroom-errors.7") == 0)
        pb_man_errors(stdout);
    else if (man && strcmp(what, "pushbroomd.8") == 0)
        pb_man_program(&pb_help_pushbroomd, stdout);
    else if (man && strcmp(what, "pushbroom-notify.8") == 0)
        pb_man_program(&pb_help_notify, stdout);
    else if (man && strcmp(what, "pushbroom-web.8") == 0)
        pb_man_program(&pb_help_web, stdout);
    else if (man && strcmp(what, "pushbroom-ccsds.8") == 0)
        pb_man_program(&pb_help_ccsds, stdout);
    else if (man && strcmp(what, "pushbroom-fetch.8") == 0)
        pb_man_program(&pb_help_fetch, stdout);
    else if (!man && strcmp(what, "bash") == 0)
        pb_completion_bash(stdout);
    else if (!man && strcmp(what, "zsh") == 0)
        pb_completion_zsh(stdout);
    else
        return cli_usage(NULL, "%s: there is no '%s'", kind, what);
    return CLI_DONE;
}

int cli_end(int code)
{
    const int rc = cli_flush();
    if (rc == 0)
        return code;
    fprintf(stderr, "pushbroom: cannot write all of the output: %s\n", strerror(-rc));
    return code == CLI_DONE ? CLI_JOB_FAILED : code;
}

void cli_end_by(int signal_number)
{
    sigset_t one;
    (void)cli_flush();
    (void)signal(signal_number, SIG_DFL);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signal_number);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
    (void)raise(signal_number);
}

static const char *nearest_command(const char *word)
{
    const char *names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].page.name;
    return pb_nearest(word, names, N_COMMANDS);
}

static void put_error(const char *job, const char *code, const char *message, const char *hint);

int cli_usage(const char *command, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_error(NULL, pb_code_id(PB_E_USAGE), text, pb_code_hint(PB_E_USAGE));
    fprintf(stderr, "pushbroom%s%s: %s\n", command ? " " : "", command ? command : "", text);
    const char *quote = command == NULL ? strchr(text, '\'') : NULL;
    if (quote != NULL) {
        char word[64];
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(quote + 1, "'"), quote + 1);
        const char *near = nearest_command(word);
        if (near != NULL)
            fprintf(stderr, "did you mean 'pushbroom %s'?\n", near);
    }
    fprintf(stderr, "'pushbroom %s%s--help' shows how it is used\n", command ? command : "",
            command ? " " : "");
    return CLI_USAGE;
}

int cli_unknown_name(const char *command, const char *kind, const char *name, const char *nearest)
{
    if (nearest != NULL)
        return cli_usage(command, "there is no %s '%s'; did you mean '%s'?", kind, name, nearest);
    return cli_usage(command, "there is no %s '%s'", kind, name);
}

int cli_unknown_option(const char *command, const char *word, const char *const *options, size_t n)
{
    return cli_unknown_name(command, "option", word, pb_nearest(word, options, n));
}

int cli_bad_option(const char *command, char **argv, int c, const struct option *longs)
{
    enum { NAMES = 16, NAME_BYTES = 32 };
    char text[NAMES][NAME_BYTES], letter[3] = {'-', (char)optopt, '\0'};
    const char *names[NAMES], *word = argv[optind - 1];
    size_t n = 0;
    bool is_long = strncmp(word, "--", 2) == 0;
    for (const struct option *o = longs; o->name != NULL && n < NAMES; o++, n++) {
        (void)snprintf(text[n], NAME_BYTES, "--%s", o->name);
        names[n] = text[n];
    }
    if (c == ':')
        return cli_usage(command, "'%s' needs a value", is_long ? word : letter);
    if (is_long && optopt == 0)
        return cli_unknown_option(command, word, names, n);
    if (is_long)
        return cli_usage(command, "'%.*s' takes no value", (int)strcspn(word, "="), word);
    return cli_unknown_option(command, letter, NULL, 0);
}

static bool errors_as_json;

void cli_json_errors(void)
{
    errors_as_json = true;
}

void cli_json_if_wanted(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            cli_json_errors();
}

/* Does nothing unless the errors of this command are printed as JSON as well. */
static void put_error(const char *job, const char *code, const char *message, const char *hint)
{
    if (!errors_as_json)
        return;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    if (job != NULL)
        pb_json_string(json, "job", job);
    pb_json_object(json, "error");
    pb_json_string(json, "code", code);
    pb_json_string(json, "message", message);
    pb_json_string(json, "hint", hint);
    pb_json_end(json);
    pb_json_end(json);
    (void)cli_finish_json(json);
}

void cli_print_err_line(const char *job, const struct pb_err *err)
{
    fprintf(stderr, "pushbroom: %s [%s]\n", err->msg, pb_code_id(err->code));
    put_error(job, pb_code_id(err->code), err->msg, pb_code_hint(err->code));
}

void cli_print_err(const struct pb_err *err)
{
    cli_print_err_of(NULL, err);
}

static void print_err(const char *job, const struct pb_err *err, const char *hint)
{
    char text[sizeof err->file + sizeof err->msg + 40];
    pb_err_words(err, text, sizeof text);
    put_error(job, pb_code_id(err->code), text, hint);
    fprintf(stderr, "%spushbroom:%s %s [%s]\n", cli_color(stderr, CLI_RED),
            cli_color(stderr, CLI_PLAIN), text, pb_code_id(err->code));
    if (hint[0] != '\0')
        fprintf(stderr, "  to do: %s\n", hint);
}

void cli_print_err_of(const char *job, const struct pb_err *err)
{
    print_err(job, err, pb_code_hint(err->code));
}

void cli_print_err_hint(const struct pb_err *err, const char *hint)
{
    print_err(NULL, err, hint);
}

struct pb_config *cli_load_config(const char *path)
{
    return cli_load_config_as(path, &pb_products);
}

/* Detects an image in the place of the configuration: the arguments were swapped. */
static bool is_tiff(const char *path)
{
    unsigned char head[4] = {0};
    FILE *file = fopen(path, "re");
    const size_t n = file != NULL ? fread(head, 1, sizeof head, file) : 0;
    if (file != NULL)
        (void)fclose(file);
    return n == sizeof head &&
           ((head[0] == 'I' && head[1] == 'I') || (head[0] == 'M' && head[1] == 'M')) &&
           (head[2] == 0 || head[3] == 0) && head[2] + head[3] >= 42 && head[2] + head[3] <= 43;
}

struct pb_config *cli_load_config_as(const char *path, const struct pb_product_kinds *kinds)
{
    /* on the stack, therefore it can also report that memory is exhausted */
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    if (pb_config_load(path, kinds, &errors, &config) == 0)
        return config;
    if (is_tiff(path)) {
        errors = (struct pb_err_list){.n = 1};
        (void)pb_fail_at(&errors.err[0], PB_E_USAGE, path, 0, 0,
                         "this is a TIFF image; name the configuration first: -c FILE INPUT...");
    }
    for (size_t i = 0; i < errors.n; i++) {
        const struct pb_err *e = &errors.err[i];
        char text[sizeof e->file + sizeof e->msg + 40];
        (void)snprintf(text, sizeof text, "%s:%d:%d: %s", e->file[0] ? e->file : path, e->line,
                       e->col, e->msg);
        put_error(NULL, pb_code_id(e->code), text, pb_code_hint(e->code));
    }
    /* an error of the file itself, not of its content */
    if (errors.n == 1 && errors.err[0].line <= 0) {
        char text[sizeof errors.err[0].file + sizeof errors.err[0].msg + 200];
        pb_err_text(&errors.err[0], text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return NULL;
    }
    for (size_t i = 0; i < errors.n; i++) {
        const struct pb_err *e = &errors.err[i];
        if (e->line > 0)
            fprintf(stderr, "%s:%d:%d: %s\n", e->file, e->line, e->col, e->msg);
        else
            fprintf(stderr, "%s: %s\n", e->file[0] ? e->file : path, e->msg);
    }
    if (errors.n_more > 0)
        fprintf(stderr, "and %zu more\n", errors.n_more);
    fprintf(stderr, "%zu mistake%s in %s\n", errors.n + errors.n_more,
            errors.n + errors.n_more == 1 ? "" : "s", path);
    return NULL;
}
