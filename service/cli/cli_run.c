/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom run`: runs each input through its pipeline, in workers like those of the service. */
#include "service/cli/cli_run.h"
#include "config/config.h"
#include "config/match.h"
#include "config/pipeline_config.h"
#include "kernels/nearest.h"

#include "config/base/archive_name.h"
#include "config/base/text_clean.h"
#include "config/device_word.h"
#include "service/cli/cli.h"
#include "service/cli/cli_result.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIPELINES_NAMED = 64 }; /* maximum of names in the message about an unknown pipeline */

/* Number of entries of the folder that pipelines take: folders, or else files. */
static int count_fitting(const struct cli_run_options *o, const struct pb_config *config,
                         const char *folder, const char **out_what)
{
    int n[2] = {0, 0};
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        struct stat st;
        (void)snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 300, folder, entry->d_name);
        if (entry->d_name[0] == '.' || stat(path, &st) != 0)
            continue;
        const bool is_folder = S_ISDIR(st.st_mode);
        const struct pb_pipeline_config *pipeline =
            is_folder ? pb_config_match_folder(config, path) : pb_config_match(config, path);
        n[is_folder] +=
            pipeline != NULL && (o->pipeline == NULL || strcmp(pipeline->name, o->pipeline) == 0);
    }
    if (dir != NULL)
        (void)closedir(dir);
    *out_what = n[1] > 0 ? "folder" : "file";
    return n[1] > 0 ? n[1] : n[0];
}

static void nobody_takes(const struct cli_run_options *o, const struct pb_config *config,
                         bool is_folder, struct cli_input *input)
{
    const char *path = input->path;
    char known[240];
    bool is_archive = !is_folder && pb_archive_name_stem(path) > 0;
    const char *what = NULL;
    const int n = is_folder ? count_fitting(o, config, path, &what) : 0;
    if (n > 0) {
        input->is_outer = true;
        (void)pb_fail(&input->err, PB_E_INPUT_NO_PIPELINE,
                      "this is a directory, which holds %d %s%s that fit%s: give %s/*", n, what,
                      n > 1 ? "s" : "", n > 1 ? "" : "s", path);
        return;
    }
    pb_config_takes(config, is_folder || is_archive, known, sizeof known);
    (void)pb_fail(&input->err, PB_E_INPUT_NO_PIPELINE,
                  is_folder ? "this is a directory, and no pipeline of %s takes a folder of its "
                              "name (input.scene): %s"
                  : is_archive
                      ? "no pipeline of %s takes an archive of this name: name the pipeline "
                        "with -p, let input.archives fit it, or give it the name of the folder in "
                        "it (input.scene): %s"
                      : "no pipeline of %s takes this file's name: %s",
                  o->config, known);
}

void cli_input_check(const struct cli_run_options *o, const struct pb_config *config, int number,
                     struct cli_input *out_input)
{
    struct stat st;
    const char *path = o->inputs[number];
    struct cli_input *input = out_input;
    *input = (struct cli_input){.path = path};
    input->group =
        o->groups != NULL && o->groups[number].pipeline != NULL ? &o->groups[number] : NULL;
    input->is_group = input->group != NULL;
    if (input->is_group) {
        input->pipeline = input->group->pipeline;
        input->err = input->group->err;
        return;
    }
    int missing = stat(path, &st) != 0 ? errno : 0;
    bool is_folder = missing == 0 && S_ISDIR(st.st_mode);
    if (o->pipeline != NULL)
        input->pipeline = pb_config_pipeline(config, o->pipeline);
    else
        input->pipeline =
            is_folder ? pb_config_match_folder(config, path) : pb_config_match(config, path);
    input->is_folder = is_folder;
    input->is_archive = !is_folder && input->pipeline != NULL &&
                        input->pipeline->input.n_files > 0 && pb_archive_name_stem(path) > 0;
    if (missing != 0)
        (void)pb_fail(&input->err, PB_E_INPUT_MISSING, "cannot open the file: %s",
                      strerror(missing));
    else if (input->pipeline == NULL)
        nobody_takes(o, config, is_folder, input);
    else if (is_folder && input->pipeline->input.n_files == 0)
        (void)pb_fail(&input->err, PB_E_INPUT_NO_PIPELINE,
                      "this is a folder, and pipeline %s takes files; name the files in it",
                      input->pipeline->name);
    else if (!is_folder && input->pipeline->input.n_files > 0 && !input->is_archive)
        (void)pb_fail(&input->err, PB_E_INPUT_NO_PIPELINE,
                      "this is a file, and pipeline %s takes %s", input->pipeline->name,
                      input->pipeline->input.group
                          ? "files whose names its input.group fits"
                          : "folders (input.scene) and archives of them (" PB_ARCHIVE_NAME_SUFFIXES
                            ")");
}

bool cli_input_is_rivalled(const struct cli_run_options *o, const struct cli_input *input)
{
    const struct pb_output_config *output = &input->pipeline->output;
    const int existing = o->existing != NULL ? pb_existing_find(o->existing) : (int)output->exists;
    return input->rival != NULL && existing == PB_EXISTING_REPLACE &&
           !pb_output_path_needs_metadata(output->path);
}

/* Hint of an error for a command that runs the job without a service. */
static const char *hint_of(const struct cli_input *input, enum pb_code code)
{
    if (input->is_outer) /* the message names what to give */
        return "";
    return code == PB_E_JOB_DISMISSED                           ? "run it again"
           : code == PB_E_OUTPUT_EXISTS && input->rival != NULL ? CLI_RIVAL_HINT
           : code == PB_E_INPUT_INCOMPLETE
               ? "put the files named next to the others, or correct the patterns of input.files"
           : code == PB_E_OUTPUT_FULL   ? "free space below the directory named, or name another "
                                          "with -o, and run it again"
           : code == PB_E_OUTPUT_DENIED ? "check the permissions of the directory that -o names"
           : code == PB_E_OUTPUT_WRITE  ? "check that -o names a directory, and its disk"
                                        : pb_code_hint(code);
}

/* --- products of the command ----------------------------------------------------------------- */

static int by_scene(const void *a, const void *b)
{
    const struct cli_made *one = a, *other = b;
    if (one->pipeline != other->pipeline)
        return one->pipeline < other->pipeline ? -1 : 1;
    return strcmp(one->scene, other->scene);
}

const struct cli_made *cli_made_find(void *const *made, const struct pb_pipeline_config *pipeline,
                                     const char *scene)
{
    const struct cli_made key = {.pipeline = pipeline, .scene = (char *)scene};
    const void *const *found = tfind(&key, made, by_scene);
    return found != NULL ? *found : NULL;
}

bool cli_made_is_of(const struct cli_made *made, const struct cli_input *input)
{
    char *real = realpath(input->path, NULL);
    const bool is = strcmp(made->file, real != NULL ? real : input->path) == 0;
    free(real);
    return is;
}

static void free_made(void *item)
{
    struct cli_made *made = item;
    if (made == NULL)
        return;
    free(made->scene);
    free(made->input);
    free(made->directory);
    free(made->file);
    free(made);
}

bool cli_made_add(void **made, const struct cli_input *input, const char *scene,
                  const char *directory)
{
    char name[CLI_INPUT_NAME_BYTES];
    if (cli_made_find(made, input->pipeline, scene) != NULL)
        return true;
    struct cli_made *one = calloc(1, sizeof *one);
    if (one == NULL)
        return false;
    cli_input_name(input, name);
    char *real = realpath(input->path, NULL);
    *one = (struct cli_made){input->pipeline, strdup(scene), strdup(name), strdup(directory),
                             real != NULL ? real : strdup(input->path)};
    if (one->scene != NULL && one->input != NULL && one->directory != NULL && one->file != NULL &&
        tsearch(one, made, by_scene) != NULL)
        return true;
    free_made(one);
    return false;
}

void cli_made_free(void **made)
{
    tdestroy(*made, free_made);
    *made = NULL;
}

/* --- inputs ----------------------------------------------------------------------------------- */

void cli_input_name(const struct cli_input *input, char out[CLI_INPUT_NAME_BYTES])
{
    char part[280] = "";
    const size_t n = pb_text_clean(input->path, out, PATH_MAX);
    if (input->part == NULL)
        return;
    (void)pb_text_clean(input->part, part, sizeof part);
    (void)snprintf(out + n, CLI_INPUT_NAME_BYTES - n, " (%s)", part);
}

/* Names the place of an error: the file in it, else the input. A long name is cut at its begin. */
static void name_place(const struct cli_input *input, const char *file, char *out, size_t bytes)
{
    char name[CLI_INPUT_NAME_BYTES], text[CLI_INPUT_NAME_BYTES + 300];
    cli_input_name(input, name);
    const bool names_input = file[0] == '\0' || strcmp(file, input->path) == 0;
    (void)snprintf(text, sizeof text, "%s%s%s", names_input || input->part != NULL ? name : "",
                   input->part != NULL && !names_input ? ": " : "", names_input ? "" : file);
    const size_t n = strlen(text), dots = n < bytes ? 0 : 3;
    const char *from = dots == 0 ? text : text + n - (bytes - 1 - dots);
    while (dots > 0 && ((unsigned char)*from & 0xc0) == 0x80) /* inside a UTF-8 character */
        from++;
    (void)memcpy(out, "...", dots);
    (void)memcpy(out + dots, from, (size_t)(text + n + 1 - from));
}

void cli_input_failed(const struct cli_run_options *o, const struct cli_input *input,
                      const char *device_why, const struct pb_err *err)
{
    struct pb_err said = *err;
    name_place(input, err->file, said.file, sizeof said.file);
    if (said.code == PB_E_OUTPUT_EXISTS && input->rival != NULL) {
        const size_t n = strlen(said.msg);
        (void)snprintf(said.msg + n, sizeof said.msg - n, "; %s of this command made them",
                       input->rival->input);
    }
    if (o->json)
        cli_result_failed(input->path, input->part, input->pipeline ? input->pipeline->name : NULL,
                          device_why, &said);
    else
        cli_print_err_hint(&said, hint_of(input, said.code));
}

static int take_existing(struct cli_run_options *o, const char *word)
{
    if (pb_existing_find(word) < 0)
        return cli_usage("run", "--existing is refuse, replace or version, not '%s'", word);
    o->existing = word;
    return CLI_DONE;
}

static int check(const struct cli_run_options *o)
{
    struct pb_compute_config compute;
    if (o->config == NULL)
        return cli_usage("run", "-c FILE is missing");
    if (o->output[0] == '\0')
        return cli_usage("run", "-o wants a directory");
    if (o->n_inputs == 0)
        return cli_usage("run", "no INPUT given");
    if (o->profile != NULL && o->dry_run)
        return cli_usage("run",
                         "--profile records a run, and --dry-run computes nothing: leave one out");
    if (o->as != NULL && (!o->dry_run || o->device != NULL))
        return cli_usage("run", o->dry_run ? "--as names the device: leave --device out"
                                           : "--as plans for another device: it needs --dry-run");
    if (o->device != NULL && pb_device_word(o->device, &compute) != 0)
        return cli_usage("run", "--device is auto, cpu, cuda or cuda:N, not '%s'", o->device);
    return CLI_DONE;
}

/* Removes slashes at the end: "scene/" is the folder "scene". */
static void cut_slashes(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
}

static int parse(int argc, char **argv, struct cli_run_options *o)
{
    static const struct option longs[] = {
        {"config", 1, 0, 'c'},  {"pipeline", 1, 0, 'p'}, {"output", 1, 0, 'o'},
        {"device", 1, 0, 'd'},  {"dry-run", 0, 0, 'n'},  {"json", 0, 0, 'j'},
        {"quiet", 0, 0, 'q'},   {"existing", 1, 0, 'e'}, {"verbose", 0, 0, 'v'},
        {"profile", 1, 0, 'f'}, {"as", 1, 0, 'a'},       {0, 0, 0, 0}};
    int rc = CLI_DONE;
    opterr = 0;
    for (int c; rc == CLI_DONE && (c = getopt_long(argc, argv, ":c:p:o:v", longs, NULL)) != -1;) {
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
        case 'v':
            o->verbose = true;
            break;
        case 'f':
            o->profile = optarg;
            break;
        case 'a':
            o->as = optarg;
            break;
        case 'e':
            rc = take_existing(o, optarg);
            break;
        default:
            rc = cli_bad_option("run", argv, c, longs);
        }
    }
    o->inputs = argv + optind;
    o->n_inputs = argc - optind;
    for (int i = 0; i < o->n_inputs; i++)
        cut_slashes(o->inputs[i]);
    return rc != CLI_DONE ? rc : check(o);
}

/* Called before another process exists. */
static int open_trace(struct cli_run_options *o)
{
    struct pb_err err = {0};
    if (o->profile == NULL || pb_trace_file_open(o->profile, &err, &o->trace) == 0)
        return CLI_DONE;
    cli_print_err(&err);
    return err.code == PB_E_USAGE ? CLI_USAGE : CLI_JOB_FAILED;
}

static int close_trace(const struct cli_run_options *o)
{
    struct pb_err err = {0};
    uint64_t left_out = 0;
    if (pb_trace_file_close(o->trace, &err, &left_out) != 0) {
        cli_print_err(&err);
        return CLI_JOB_FAILED;
    }
    if (left_out > 0 && !o->quiet)
        (void)fprintf(stderr,
                      "pushbroom: %s lacks the last %llu events: the memory of a trace was full\n",
                      o->profile, (unsigned long long)left_out);
    return CLI_DONE;
}

static int unknown_pipeline(const struct cli_run_options *o, const struct pb_config *config)
{
    const char *names[PIPELINES_NAMED];
    char list[300] = "";
    size_t n = 0, used = 0;
    for (; n < config->n_pipelines && n < PIPELINES_NAMED; n++) {
        names[n] = config->pipelines[n].name;
        if (used < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%s", n ? ", " : "", names[n]);
    }
    const char *near = pb_nearest(o->pipeline, names, n);
    if (near != NULL)
        return cli_usage("run", "%s has no pipeline '%s'; did you mean '%s'?", o->config,
                         o->pipeline, near);
    return cli_usage("run", "%s has no pipeline '%s'; it has %s", o->config, o->pipeline, list);
}

int cli_run(int argc, char **argv)
{
    struct cli_run_options o = {.output = "."};
    int rc = parse(argc, argv, &o);
    rc = rc != CLI_DONE ? rc : open_trace(&o);
    if (rc != CLI_DONE)
        return rc;
    struct cli_jobs *jobs = o.dry_run ? NULL : cli_jobs_create(&o);
    struct pb_config *config = cli_load_config(o.config);
    if (config == NULL)
        rc = CLI_USAGE;
    else if (o.pipeline != NULL && pb_config_pipeline(config, o.pipeline) == NULL)
        rc = unknown_pipeline(&o, config);
    else if (!cli_input_gather(&o, config))
        rc = CLI_JOB_FAILED;
    else if (o.dry_run)
        rc = cli_dry_run(&o, config);
    else
        rc = cli_jobs_run(jobs, config);
    int ended_by = cli_jobs_signal(jobs);
    cli_jobs_destroy(jobs);
    int traced = close_trace(&o);
    rc = rc != CLI_DONE ? rc : traced;
    cli_input_forget(&o);
    pb_config_destroy(config);
    if (ended_by != 0)
        cli_end_by(ended_by);
    return rc;
}
