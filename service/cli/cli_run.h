/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RUN_H
#define PB_CLI_RUN_H
/* Shared declarations of `pushbroom run`. One thread. */
#include "config/base/err.h"
#include "pipeline/profile/trace_file.h"
#include "pipeline/publish/publish.h"
#include "pipeline/scene/manifest.h"
#include "service/cli/cli.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLI_INPUT_NAME_BYTES = PATH_MAX + 300 };

struct cli_scenes;
struct pb_config;
struct pb_described;
struct pb_pipeline_config;
struct pb_scene_manifest;

struct cli_run_options {
    const char *config, *pipeline, *output, *device; /* pipeline and device: NULL if not given */
    bool json, quiet, dry_run, verbose;
    const char *as;       /* name of an absent device to plan for; NULL if not given */
    const char *existing; /* NULL = as configured */
    const char *profile;  /* file for the trace; NULL = no trace */
    struct pb_trace_file *trace;
    char **inputs;
    int n_inputs;
    char **made; /* inputs after cli_input_gather */
    int n_made;
    char **real; /* real paths of the inputs that ended in "." or ".." */
    int n_real;
    struct cli_group *groups; /* input i has groups[i] */
    struct cli_scenes *scenes;
};

/* Loose files of one scene. All-zero: the input is one file or folder. */
struct cli_group {
    const struct pb_pipeline_config *pipeline;
    struct pb_scene_manifest files; /* its files without sidecars, which the worker finds */
    struct pb_err err; /* error of a file whose scene is unknown or absent, or of too many files */
};

struct cli_input {
    const char *path; /* for a group: the folder of its files, and the scene */
    bool is_folder, is_group, is_archive;
    const struct cli_group *group; /* set for a group */
    const char *part; /* scene of an archive of several; NULL: the input is one scene */
    /* earlier input of the command with products of the same pipeline and scene name; NULL: absent
     */
    const struct cli_made *rival;
    const struct pb_pipeline_config *pipeline; /* NULL if no pipeline takes it */
    bool is_outer; /* a directory that is no scene itself, and holds inputs */
    /* error that prevents its run; PB_OK if there is no error */
    struct pb_err err;
};

/* Checks the input with that number without opening it: finds whether it is a file or a folder,
 * and the pipeline that takes it. */
void cli_input_check(const struct cli_run_options *o, const struct pb_config *config, int number,
                     struct cli_input *out_input);
/* Replaces the inputs by scenes (cli_run_scenes.c), in the order of their first files. Loose files
 * of one scene (input.group) become one input, the path of their folder with the scene's name;
 * sidecars and metadata are part of the input that they belong to. Returns false if out of memory.
 */
bool cli_input_gather(struct cli_run_options *o, const struct pb_config *config);
void cli_input_forget(struct cli_run_options *o);
/* Makes the manifest of the input, with the files of a group; the caller must fini *out. Returns 0,
 * or memory and *out empty. */
int cli_input_files(const struct cli_input *input, struct pb_scene_manifest *out,
                    struct pb_err *err);
/* Names the input in lines for people, without control characters: its path, and for a scene of an
 * archive of several "x.zip (SCENE)". */
void cli_input_name(const struct cli_input *input, char out[CLI_INPUT_NAME_BYTES]);
/* Returns true if the products of the input would replace those of its rival. */
bool cli_input_is_rivalled(const struct cli_run_options *o, const struct cli_input *input);
/* Reports on stdout (--json) or stderr why the input failed. */
void cli_input_failed(const struct cli_run_options *o, const struct cli_input *input,
                      const char *device_why, const struct pb_err *err);

/* Remedy for two inputs whose products have one place. */
#define CLI_RIVAL_HINT                                                                             \
    "rename one of the two inputs, name another output for it with -o, or keep the products of "   \
    "both with --existing version"

/* Products that inputs of the command have made. */
struct cli_made {
    const struct pb_pipeline_config *pipeline;
    char *scene, *input, *directory; /* name of the scene, of the input, path of the products */
    char *file;                      /* real path of the input */
};
/* Finds the products of a scene name by a pipeline; NULL: absent. made: root, NULL at first. */
const struct cli_made *cli_made_find(void *const *made, const struct pb_pipeline_config *pipeline,
                                     const char *scene);
/* Returns true if the input is the one that made the products, which was named twice. */
bool cli_made_is_of(const struct cli_made *made, const struct cli_input *input);
/* Adds products unless the name has some already. Returns false if out of memory. */
bool cli_made_add(void **made, const struct cli_input *input, const char *scene,
                  const char *directory);
void cli_made_free(void **made);

/* --- cli_run_describe.c: loose files whose metadata determine the scene (input.by) --- */
struct cli_told;
/* Adds a query of the metadata of a file, which may be added twice; `*told` is NULL at first.
 * Returns false if out of memory. */
bool cli_told_add(struct cli_told **told, const char *pipeline, const char *path);
/* Sends all queries and waits for the answers. Returns false if out of memory. */
bool cli_told_wait(struct cli_told *told, const struct pb_config *config);
/* Finds the answer about a file after the wait, as pb_entry_facts; user: struct cli_told, or NULL.
 * NULL: the file was not queried. */
const struct pb_described *cli_told_find(void *user, const char *path, uint64_t digest);
void cli_told_destroy(struct cli_told *told); /* NULL is allowed */

/* --- cli_progress.c: a bar on stderr --- */
struct cli_progress {
    bool wanted; /* true if stderr is a terminal and --quiet was not given */
    bool shown;
    struct cli_bar bar;
};
struct pb_job;
void cli_progress_begin(struct cli_progress *progress, const char *input);
void cli_progress_show(struct cli_progress *progress, const struct pb_job *job);
void cli_progress_clear(struct cli_progress *progress); /* call before any other output */

/* --- cli_run_jobs.c: runs inputs in a worker --- */
struct cli_jobs;
/* Starts the worker, so that it initialises while the configuration is read. Must be called before
 * this process has threads. NULL = out of memory; a worker that cannot start is reported for the
 * first input. */
struct cli_jobs *cli_jobs_create(const struct cli_run_options *o);
/* Runs all inputs; returns the exit code. */
int cli_jobs_run(struct cli_jobs *jobs, const struct pb_config *config);
/* Signal that ended the jobs before all were done; 0 if no signal did. */
int cli_jobs_signal(const struct cli_jobs *jobs);
void cli_jobs_destroy(struct cli_jobs *jobs); /* ends the worker; NULL is allowed */

/* --- cli_dry_run.c --- */
/* Prints the plan for each input; returns the exit code. config is changed. */
int cli_dry_run(const struct cli_run_options *o, struct pb_config *config);
#endif
