/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_H
#define PB_CLI_H
/* Shared declarations of the commands of `pushbroom`. A command gets its own argv (argv[0] is its
 * name) and returns the exit code. One thread. */
#include "config/base/err.h"
#include "service/help/help.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pb_config;
struct pb_fetch_config;
struct pb_product_kinds;
struct pb_store_point;

enum cli_exit { CLI_DONE = 0, CLI_JOB_FAILED = 1, CLI_USAGE = 2, CLI_UNREACHABLE = 3 };

struct cli_command {
    struct pb_help_page page;
    const char *group; /* heading before it in the list of commands; NULL if absent */
    int (*run)(int argc, char **argv); /* NULL: a command of pushbroom-compute */
};

const struct cli_command *cli_command_find(const char *name);
const struct cli_command *cli_command_at(size_t i); /* NULL after the last */
/* Runs a command in pushbroom-compute, in the place of this process: argv[0] is its name. Returns
 * the exit code only if the program cannot be run, after printing. */
int cli_compute(char **argv);
/* Ends a program whose command returned the code: writes the buffered output. Returns the exit
 * code; CLI_JOB_FAILED if output could not be written, for example because of a full disk. */
int cli_end(int code);
/* Prints the words that may replace the last of n words of a command line, without the name of the
 * program (cli_complete.c). Returns the exit code. */
int cli_complete(int n, char **words);
/* Calls visit with the name of each pattern of communication. */
void cli_patterns_each(void (*visit)(const void *user, const char *name), const void *user);
/* Prints "pushbroom run: message" to stderr, and where to find help; returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the usage error for the result of getopt_long(argc, argv, ":...", longs): c is '?' or
 * ':'. */
int cli_bad_option(const char *command, char **argv, int c, const struct option *longs);
/* Prints the usage error for an option that getopt did not parse; options are the known ones,
 * "--json". */
int cli_unknown_option(const char *command, const char *word, const char *const *options, size_t n);
/* Prints the usage error for an unknown name of a `kind` of objects ("operator"); nearest: the
 * known name that may be meant, or NULL. */
int cli_unknown_name(const char *command, const char *kind, const char *name, const char *nearest);
void cli_help(const char *command, FILE *out);
/* Prints the version and the versions of the libraries of the build, for bug reports. */
void cli_version(void);
/* Prints a document made from these tables for an installation to stdout: kind --man (what:
 * "pushbroom.1", ...) or --completion ("bash", "zsh"). Returns the exit code. */
int cli_document(const char *kind, const char *what);
/* Prints "pushbroom: file:line:col: message" and, on a separate line, the hint. */
void cli_print_err(const struct pb_err *err);
/* Does the same with another hint than that of the code. */
void cli_print_err_hint(const struct pb_err *err, const char *hint);
void cli_print_err_of(const char *job, const struct pb_err *err); /* job NULL = not about a job */
/* Prints the error in one line about a job of many, without the hint. */
void cli_print_err_line(const char *job, const struct pb_err *err);
/* Prints later errors to stdout as well, each as an object {"error": {code, message, hint}}, with
 * "job" if it is about a job. */
void cli_json_errors(void);
/* The same if the options of the command, from argv[2] on, have --json. */
void cli_json_if_wanted(int argc, char **argv);
/* Writes the buffered output to stdout. Returns 0, or the negative errno of the first such call
 * that failed: output that could not be written is lost. */
int cli_flush(void);
/* Writes the buffered output and ends the process by the signal, so that a shell detects the
 * interruption (128 and its number). */
void cli_end_by(int signal_number);
/* Loads a config or prints every mistake; NULL after printing. */
struct pb_config *cli_load_config(const char *path);
/* Does the same with other kinds of products, for instance with a check of coordinate systems. */
struct pb_config *cli_load_config_as(const char *path, const struct pb_product_kinds *kinds);

/* --- on a terminal (cli_screen.c) --- */
bool cli_is_terminal(FILE *out); /* and colours are allowed (NO_COLOR unset, TERM not dumb) */
enum cli_color { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE, CLI_DIM, CLI_BOLD };
/* Start of a colour, "" if `out` is not a terminal. cli_color(out, CLI_PLAIN) ends it. */
const char *cli_color(FILE *out, enum cli_color color);
/* Columns: $COLUMNS, otherwise those of the terminal at `out`, otherwise 80. Lines: those of the
 * terminal, otherwise 24. */
int cli_columns(FILE *out);
/* Columns for lists: the same, but 0 = no limit if `out` is not a terminal and $COLUMNS is not
 * set. */
int cli_list_columns(FILE *out);
int cli_lines(FILE *out);
/* Shortens the text to at most `columns` characters (UTF-8), with unprintable bytes as '?'. A
 * longer text keeps its end, after "..", because the end of a scene's name contains more
 * information than its beginning. Returns out. */
char *cli_fit(const char *text, int columns, char *out, size_t n);
/* Prints words with line breaks so that no line is wider than `columns` unless a word is. The
 * first line starts in column `indent`, where the cursor is; the other lines are indented to that
 * column. */
void cli_wrap(FILE *out, int indent, int columns, const char *text);
/* Formats like "1.5 MB", "412 MB/s" with decimal units, and like "0:07". They return out. */
char *cli_bytes(double bytes, char *out, size_t n);
char *cli_time(double seconds, char *out, size_t n);

/* Progress line: name, bar, percent, tiles/s, MB/s, time left. Rates are those of the last
 * seconds. Narrow terminals show fewer parts. */
struct cli_bar {
    char name[200];
    double first_s, last_s, rate_tiles, rate_bytes;
    uint64_t last_tiles, last_bytes;
    bool started;
};
void cli_bar_update(struct cli_bar *bar, double now_s, uint64_t tiles, uint64_t bytes);
void cli_bar_text(const struct cli_bar *bar, const char *state, uint64_t tiles, uint64_t total,
                  int columns, char *out, size_t n);

/* --- commands for information (cli_info.c) --- */
struct pb_json;
struct pb_key;
/* --json and at most one word. Returns CLI_DONE or the usage error. */
int cli_parse_word(const char *command, int argc, char **argv, bool *json, const char **word);
/* Prints the value on a line and destroys it; returns the exit code. Lists are NDJSON: one such
 * line for each element. */
int cli_finish_json(struct pb_json *json);
/* Prints a parameter with its range and default, and its meaning below. */
void cli_print_key(const struct pb_key *key);

/* --- commands of pushbroom-compute --- */
int cli_run(int argc, char **argv);     /* cli_run.c */
int cli_devices(int argc, char **argv); /* cli_devices.c */
/* check-config with these kinds of products (cli_info.c). */
int cli_check_config_as(int argc, char **argv, const struct pb_product_kinds *kinds);

/* --- commands of pushbroom --- */
/* A configuration that names coordinate systems is checked by pushbroom-compute, which has PROJ. */
int cli_check_config(int argc, char **argv); /* cli_info.c */
int cli_operators(int argc, char **argv);
int cli_indices(int argc, char **argv);  /* cli_indices.c */
int cli_patterns(int argc, char **argv); /* cli_patterns.c */
int cli_new(int argc, char **argv);      /* cli_new.c */
int cli_put(int argc, char **argv);      /* cli_put.c */
int cli_submit(int argc, char **argv);   /* cli_jobs.c */
int cli_status(int argc, char **argv);
int cli_cancel(int argc, char **argv);
int cli_retry(int argc, char **argv);
int cli_again(int argc, char **argv); /* cli_again.c */
int cli_quarantine(int argc, char **argv);
int cli_drain(int argc, char **argv);
int cli_feed(int argc, char **argv);
int cli_metrics(int argc, char **argv);
int cli_store(int argc, char **argv); /* cli_store.c */
/* Checks the certificates of a node (pb_tls_check). NULL: the program is not linked with TLS. */
typedef int cli_certificates(const struct pb_fetch_config *config, const char *node,
                             void (*visit)(void *user, const struct pb_store_point *point),
                             void *user);
int cli_store_as(int argc, char **argv, cli_certificates *certificates);
#endif
