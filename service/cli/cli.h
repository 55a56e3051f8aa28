/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_H
#define PB_CLI_H
/* What the commands of `pushbroom` share. A command gets its own argv (argv[0] is its name) and
 * returns the exit code. One thread. */
#include "config/config.h"
#include "config/base/err.h"
#include "service/help/help.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit { CLI_DONE = 0, CLI_JOB_FAILED = 1, CLI_USAGE = 2, CLI_UNREACHABLE = 3 };

struct cli_command {
    struct pb_help_page page;
    const char *group; /* the heading before it in the list of commands; NULL = none */
    int (*run)(int argc, char **argv);
};

const struct cli_command *cli_command_find(const char *name);
const struct cli_command *cli_command_at(size_t i); /* NULL after the last */
/* Prints the words that may take the place of the last of n words of a command line, without the
 * name of the program (cli_complete.c). The exit code. */
int cli_complete(int n, char **words);
/* Calls visit with the name of each pattern of communication. */
void cli_patterns_each(void (*visit)(const void *user, const char *name), const void *user);
/* "pushbroom run: what" on stderr plus where to find help; returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The usage error for what getopt_long(argc, argv, ":...", longs) returned: c is '?' or ':'. */
int cli_bad_option(const char *command, char **argv, int c, const struct option *longs);
/* The same for an option found by hand; options are the known ones, "--json". */
int cli_unknown_option(const char *command, const char *word, const char *const *options, size_t n);
/* The same for the name of a `kind` of thing ("operator") that there is not; nearest: a name that
 * there is and that may be meant, or NULL. */
int cli_unknown_name(const char *command, const char *kind, const char *name, const char *nearest);
void cli_help(const char *command, FILE *out);
/* The version, and those of what it was built with, for reports of faults. */
void cli_version(void);
/* What an installation has of these tables, on stdout: kind --man (what: "pushbroom.1", ...) or
 * --completion ("bash", "zsh"). The exit code. */
int cli_document(const char *kind, const char *what);
/* "pushbroom: file:line:col: message" and the hint on a line of its own. */
void cli_print_err(const struct pb_err *err);
/* The same with another hint than that of the code. */
void cli_print_err_hint(const struct pb_err *err, const char *hint);
void cli_print_err_of(const char *job, const struct pb_err *err); /* about a job; NULL = none */
/* The same in one line about a job of many, without the hint. */
void cli_print_err_line(const char *job, const struct pb_err *err);
/* Prints later errors to stdout as well, each as an object {"error": {code, message, hint}}, with
 * "job" where it is about one. */
void cli_json_errors(void);
/* Writes what is buffered for stdout. 0, or the negative errno of the first such call that failed:
 * what could not be written is lost. */
int cli_flush(void);
/* Writes what is buffered and ends the process by the signal, so that a shell sees that it was
 * interrupted (128 and its number). */
void cli_end_by(int signal_number);
/* Loads a config or prints every mistake; NULL after printing. */
struct pb_config *cli_load_config(const char *path);
/* The same with other kinds of products (pb_products_strict). */
struct pb_config *cli_load_config_as(const char *path, const struct pb_product_kinds *kinds);

/* --- on a terminal (cli_screen.c) --- */
bool cli_is_terminal(FILE *out); /* and colours are wanted (NO_COLOR unset, TERM not dumb) */
enum cli_color { CLI_PLAIN, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE, CLI_DIM, CLI_BOLD };
/* Start of a colour, "" when `out` is no terminal. cli_color(out, CLI_PLAIN) ends it. */
const char *cli_color(FILE *out, enum cli_color color);
/* Columns: $COLUMNS, else those of the terminal at `out`, else 80. Lines: of the terminal, else 24.
 */
int cli_columns(FILE *out);
/* The same of lists, where `out` is no terminal and $COLUMNS is not set: 0 = no limit. */
int cli_list_columns(FILE *out);
int cli_lines(FILE *out);
/* The text in at most `columns` characters (UTF-8), unprintable bytes as '?'; of a longer one the
 * end stays, after "..": the end of a scene's name tells more than its beginning. Returns out. */
char *cli_fit(const char *text, int columns, char *out, size_t n);
/* Prints words with line breaks so that no line is wider than `columns` as long as no word is.
 * The first line starts in column `indent`, where the cursor is; the others are indented so. */
void cli_wrap(FILE *out, int indent, int columns, const char *text);
/* "1.5 MB", "412 MB/s" style, decimal units; "0:07" style. Return out. */
char *cli_bytes(double bytes, char *out, size_t n);
char *cli_time(double seconds, char *out, size_t n);

/* A line with a bar: name, bar, percent, tiles/s, MB/s, time left. Rates are of the last seconds.
 * Narrow terminals get less of it. */
struct cli_bar {
    char name[200];
    double first_s, last_s, rate_tiles, rate_bytes;
    uint64_t last_tiles, last_bytes;
    bool started;
};
void cli_bar_update(struct cli_bar *bar, double now_s, uint64_t tiles, uint64_t bytes);
void cli_bar_text(const struct cli_bar *bar, const char *state, uint64_t tiles, uint64_t total,
                  int columns, char *out, size_t n);

/* --- commands that look things up (cli_info.c) --- */
struct pb_json;
struct pb_key;
/* --json and at most one word. Returns CLI_DONE or the usage error. */
int cli_parse_word(const char *command, int argc, char **argv, bool *json, const char **word);
/* Prints the value on a line and destroys it; returns the exit code. Lists are NDJSON: one such
 * line an element. */
int cli_finish_json(struct pb_json *json);
/* A parameter with its range and default, and its meaning below. */
void cli_print_key(const struct pb_key *key);

/* --- commands --- */
int cli_run(int argc, char **argv);          /* cli_run.c */
int cli_check_config(int argc, char **argv); /* cli_info.c */
int cli_operators(int argc, char **argv);
int cli_indices(int argc, char **argv);  /* cli_indices.c */
int cli_patterns(int argc, char **argv); /* cli_patterns.c */
int cli_new(int argc, char **argv);      /* cli_new.c */
int cli_devices(int argc, char **argv);  /* cli_devices.c */
int cli_put(int argc, char **argv);      /* cli_put.c */
int cli_submit(int argc, char **argv);   /* cli_jobs.c */
int cli_status(int argc, char **argv);
int cli_cancel(int argc, char **argv);
int cli_retry(int argc, char **argv);
int cli_again(int argc, char **argv); /* cli_again.c */
int cli_quarantine(int argc, char **argv);
int cli_metrics(int argc, char **argv);
#endif
