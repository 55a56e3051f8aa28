/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The table of commands with their help, and the messages for usage errors. */
#include "service/cli/cli.h"
#include "pipeline/product/product_kinds.h"

#include "kernels/nearest.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_command commands[] = {
    {"run", "-c FILE [options] INPUT...", "process files here and now, no service needed",
     "  -c, --config FILE      the configuration\n"
     "  -p, --pipeline NAME    pipeline to use (default: the first that matches)\n"
     "  -o, --output DIR       products go to DIR/<scene>/<pipeline>/ (default: here)\n"
     "      --existing WHAT    when the place holds another input's products: refuse,\n"
     "                         replace or version (<scene>~2); else output.exists says\n"
     "      --device DEVICE    auto | cpu | cuda | cuda:N, instead of the config's\n"
     "      --dry-run          say what would be done, touch nothing\n"
     "      --json             one JSON object per input, a line each, with timings\n"
     "      --quiet            only errors\n"
     "\nA worker process computes. When it crashes, the input runs again in another one\n"
     "(service.max_attempts). When a GPU fails, the input is tried again in a fresh\n"
     "process, then on the CPU.\n"
     "\nExample:\n"
     "  pushbroom run -c samples/vegetation.yaml -o out scene.tif\n",
     cli_run},
    {"submit", "[options] FILE...", "give files to the service",
     "  -p, --pipeline NAME    pipeline to use\n"
     "      --wait             show progress until all are done; exit 1 if one failed\n"
     "      --json             the jobs as JSON\n"
     "      --socket PATH      where the service listens (default: $PUSHBROOM_SOCKET,\n"
     "                         then /run/pushbroom/status.sock)\n"
     "\nThe files stay where they are: only what is put into the inbox is moved.\n",
     cli_submit},
    {"status", "[JOB] [options]", "what the service is doing, or one job in full",
     "      --watch            keep showing, a progress bar a running job\n"
     "      --until-idle       with --watch: end when nothing is left to do\n"
     "                         (exit 1 if a job failed)\n"
     "      --expect N         with --until-idle: not before N jobs have been seen\n"
     "      --all              up to 1000 jobs instead of the newest 20\n"
     "      --failed           failed jobs only\n"
     "      --since DURATION   jobs that changed in this time: 1d, 30m\n"
     "  -p, --pipeline NAME    jobs of this pipeline\n"
     "      --json             as JSON (with --watch: one object a change)\n"
     "      --socket PATH      where the service listens\n"
     "\nJOB is a job's id or the end of one, as long as it is the only one that fits.\n",
     cli_status},
    {"cancel", "[options] JOB...", "stop jobs, or take them out of the queue",
     "      --socket PATH      where the service listens\n"
     "      --json             the job as JSON, a line each\n",
     cli_cancel},
    {"retry", "[options] JOB... | --failed", "run failed or cancelled jobs again",
     "      --failed           all failed jobs, up to 1000, the oldest first\n"
     "      --since DURATION   with --failed: that changed in this time: 1d, 30m\n"
     "  -p, --pipeline NAME    with --failed: of this pipeline\n"
     "      --socket PATH      where the service listens\n"
     "      --json             the job as JSON, a line each\n",
     cli_retry},
    {"quarantine", "list|show|retry|drop [JOB...]", "inputs of failed jobs",
     "  list                   jobs whose input lies in quarantine, and why\n"
     "  show JOB               one in full\n"
     "  retry JOB... | --failed\n"
     "                         run them again, their inputs back from quarantine\n"
     "  drop JOB... | --failed\n"
     "                         remove their inputs from quarantine for good\n"
     "      --since DURATION   with list and --failed: that changed in this time\n"
     "  -p, --pipeline NAME    with list and --failed: of this pipeline\n"
     "      --socket PATH      where the service listens\n"
     "      --json             the jobs as JSON\n",
     cli_quarantine},
    {"metrics", "[options]", "the service's counters in Prometheus text format",
     "      --socket PATH      where the service listens\n"
     "      --json             the same text in a JSON object\n"
     "      --textfile FILE    write it to FILE, by a rename: for the textfile collector\n"
     "                         of Prometheus' node exporter (FILE.prom)\n",
     cli_metrics},
    {"check-config", "FILE [--json]", "check a configuration and print what it comes to",
     "Prints every mistake as file:line:col, or the configuration with all defaults\nfilled in.\n",
     cli_check_config},
    {"operators", "[NAME] [--json]", "what a step of a pipeline can be",
     "With a NAME: its formula, units, treatment of nodata, source, parameters and\nan example.\n",
     cli_operators},
    {"indices", "[NAME] [options]", "the spectral indices that the operator 'index' knows",
     "      --bands LIST       mark what these bands can evaluate, for example B,G,R,N\n"
     "      --domain WORD      one of vegetation, water, burn, urban, soil, radar,\n"
     "                         snow, clouds, kernel\n"
     "      --json             as JSON\n",
     cli_indices},
    {"patterns", "[NAME] [--json]", "how tiles and results may be exchanged with a device",
     "The communication patterns that 'exchange' of a pipeline can name: built in, and\nplugins "
     "of the installation. With a NAME: its arguments.\n",
     cli_patterns},
    {"devices", "[options]", "what there is to compute on",
     "      --tune             measure which plans bring tiles to each GPU fastest,\n"
     "                         3 s a GPU, and keep them: later runs, and services\n"
     "                         that are started later, use them\n"
     "      --json             as JSON\n"
     "\nMeasures the link to each GPU; takes a moment. A plan says how tiles of the size\nnamed "
     "would reach it. Measurements are kept by model and driver, in\n$PUSHBROOM_TUNING, else "
     "/var/cache/pushbroom/tuning.json (as root) or\n~/.cache/pushbroom/tuning.json.\n",
     cli_devices},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

void cli_help(const char *name, FILE *out)
{
    const struct cli_command *c = name ? cli_command_find(name) : NULL;
    if (c != NULL) {
        fprintf(out, "usage: pushbroom %s %s\n\n%s.\n", c->name, c->arguments, c->summary);
        if (c->help[0])
            fprintf(out, "\n%s", c->help);
        return;
    }
    fputs("usage: pushbroom COMMAND [options]\n\n"
          "Satellite images in, finished products out: cloud-optimised GeoTIFFs,\n"
          "quicklooks, statistics and STAC items, tile by tile, on the CPU or a GPU.\n\n"
          "Without the service:\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, "submit") == 0)
            fputs("\nWith the service (pushbroomd):\n", out);
        if (strcmp(commands[i].name, "check-config") == 0)
            fputs("\nTo look things up:\n", out);
        fprintf(out, "  %-14s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\n'pushbroom COMMAND --help' tells more. Exit codes: 0 done, 1 a job failed,\n"
          "2 wrong usage or configuration, 3 the service cannot be reached.\n",
          out);
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
        names[i] = commands[i].name;
    return pb_nearest(word, names, N_COMMANDS);
}

int cli_usage(const char *command, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
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

void cli_print_err(const struct pb_err *err)
{
    char place[320] = "";
    if (err->file[0] && err->line > 0)
        (void)snprintf(place, sizeof place, "%s:%d:%d: ", err->file, err->line, err->col);
    else if (err->file[0])
        (void)snprintf(place, sizeof place, "%s: ", err->file);
    fprintf(stderr, "%spushbroom:%s %s%s [%s]\n", cli_color(stderr, CLI_RED),
            cli_color(stderr, CLI_PLAIN), place, err->msg, pb_code_id(err->code));
    if (pb_code_hint(err->code)[0])
        fprintf(stderr, "  to do: %s\n", pb_code_hint(err->code));
}

struct pb_config *cli_load_config(const char *path)
{
    struct pb_err_list errors; /* on the stack: it also tells that memory is exhausted */
    struct pb_config *config = NULL;
    if (pb_config_load(path, &pb_products, &errors, &config) == 0)
        return config;
    if (errors.n == 1 && errors.err[0].line <= 0) { /* of the file, not in it */
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
