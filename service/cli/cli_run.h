/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_H
#define PB_CLI_RUN_H
/* The parts of `pushbroom run`. One thread. */
#include "config/base/err.h"
#include "config/config.h"
#include "pipeline/publish/publish.h"
#include "pipeline/profile/trace_file.h"
#include "service/cli/cli.h"

#include <stdbool.h>

struct cli_run_options {
    const char *config, *pipeline, *output, *device; /* pipeline and device: NULL = not given */
    bool json, quiet, dry_run, verbose;
    const char *as;       /* a device that is not here, to be planned for; NULL = none */
    const char *existing; /* NULL = as configured */
    const char *profile;  /* file for the trace; NULL = none is made */
    struct pb_trace_file *trace;
    char **inputs;
    int n_inputs;
    char **listed; /* inputs with folders of loose files replaced by the files; NULL without any */
    int n_listed;
    struct cli_group *groups; /* n_inputs; of those that stand for the loose files of a scene */
    struct cli_told *told;    /* what was asked for them */
};

/* Zero bytes: the input is no loose file. */
struct cli_group {
    const struct pb_pipeline_config *pipeline;
    const char **names; /* of the n files whose metadata told the scene; NULL: the names tell it */
    size_t n;
    struct pb_err err; /* why its scene is not known */
};

struct cli_input {
    const char *path; /* of a group: the folder of its files, and the scene */
    bool is_folder, is_group, is_archive;
    const struct cli_group *group;             /* of a group */
    const struct pb_pipeline_config *pipeline; /* NULL = none takes it */
    struct pb_err err;                         /* why it cannot be run; PB_OK = it can */
};

/* Checks the input of that number without opening it: whether it is a file or a folder, and which
 * pipeline takes it. */
void cli_input_check(const struct cli_run_options *o, const struct pb_config *config, int number,
                     struct cli_input *out_input);
/* Puts one input in the place of all those that are loose files of one scene (input.group): the
 * path of their folder with the scene's name. False: out of memory. */
bool cli_input_gather(struct cli_run_options *o, const struct pb_config *config);
void cli_input_forget(struct cli_run_options *o);
/* Says on stdout (--json) or stderr why the input failed. */
void cli_input_failed(const struct cli_run_options *o, const struct cli_input *input,
                      const char *device_why, const struct pb_err *err);

/* --- cli_run_describe.c: loose files whose metadata tell the scene (input.by) --- */
struct cli_told;
/* Asks for the file, and all beside it that the pipeline's input.group fits; *told is NULL at
 * first. False: out of memory. */
bool cli_told_want(struct cli_told **told, const struct pb_pipeline_config *pipeline,
                   const char *path);
/* Waits for all answers. Says on stderr which of the files that were not named are left out, as
 * their metadata do not tell it. */
bool cli_told_wait(struct cli_told *told, const struct pb_config *config,
                   const struct cli_run_options *o);
/* The scene of the file, and names of the files beside it that are of the same, borrowed from told
 * but for the array (free); or out_group->err. False: out of memory. */
bool cli_told_find(const struct cli_told *told, const struct pb_pipeline_config *pipeline,
                   const char *path, struct cli_group *out_group, char scene[256]);
void cli_told_destroy(struct cli_told *told); /* NULL is fine */

/* --- cli_progress.c: a bar on stderr --- */
struct cli_progress {
    bool wanted; /* it is a terminal, and --quiet was not given */
    bool shown;
    struct cli_bar bar;
};
struct pb_job;
void cli_progress_begin(struct cli_progress *progress, const char *input);
void cli_progress_show(struct cli_progress *progress, const struct pb_job *job);
void cli_progress_clear(struct cli_progress *progress); /* before anything else is printed */

/* --- cli_run_jobs.c: inputs through a worker --- */
struct cli_jobs;
/* Starts the worker, so that it initialises while the configuration is read. To be called before
 * this process has threads. NULL = out of memory; that a worker cannot start is reported for the
 * first input. */
struct cli_jobs *cli_jobs_create(const struct cli_run_options *o);
/* Runs all inputs; returns the exit code. */
int cli_jobs_run(struct cli_jobs *jobs, const struct pb_config *config);
/* The signal that ended them before all was done; 0 = none did. */
int cli_jobs_signal(const struct cli_jobs *jobs);
void cli_jobs_destroy(struct cli_jobs *jobs); /* ends the worker; NULL is fine */

/* --- cli_dry_run.c --- */
/* Says what would be done with each input; returns the exit code. config is changed. */
int cli_dry_run(const struct cli_run_options *o, struct pb_config *config);
#endif
