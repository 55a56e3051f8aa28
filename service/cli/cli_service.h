/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_SERVICE_H
#define PB_CLI_SERVICE_H
/* Shared by the commands that use the service. One thread. */
#include "service/cli/cli.h"
#include "service/status/client.h"
#include "config/base/json_reader.h"

#include "config/base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>

enum { CLI_TIMEOUT_MS = 10000, CLI_ID_BYTES = 32 };

struct cli_service_options {
    const char *socket, *pipeline, *textfile;
    bool json, wait, watch, all, until_idle, failed, dry_run, has_priority, verbose;
    bool now, off, no_wait; /* drain */
    int64_t since_ms;       /* age: only jobs that changed within this time; 0 = all */
    long priority;
    long expect; /* number of jobs that must have been seen before idle counts */
    char **words;
    int n_words;
};

/* Reads the options that `command` has; returns CLI_DONE or the usage error. */
int cli_service_parse(const char *command, int argc, char **argv,
                      struct cli_service_options *options);
/* Connects; on failure prints the reason and returns the exit code. */
int cli_service_open(const struct cli_service_options *options, struct pb_client **out_client);
/* Prints the error and returns its exit code. */
int cli_service_exit(const struct pb_err *err);
/* Does the same for an error about a job, which is named in a list. */
int cli_service_exit_of(const char *job, const struct pb_err *err);
/* Calls a method (pb_client_call). While the service replies service.busy, the request is sent
 * again for 10 seconds. */
int cli_service_call(struct pb_client *client, const char *method, const char *params,
                     struct pb_err *err, struct pb_json_value **out_reply,
                     const struct pb_json_value **out_result);

/* Prints the value as a line of JSON; ends the program if out of memory. */
void cli_put_json(const struct pb_json_value *value);
/* Members of a job on the wire; "" and 0 if absent. */
const char *cli_job_text(const struct pb_json_value *job, const char *key);
int64_t cli_job_number(const struct pb_json_value *job, const char *key);
const char *cli_job_base(const struct pb_json_value *job); /* name of the job; else of its input */
bool cli_job_finished(const char *status);
enum cli_color cli_job_color(const char *status);
/* Calls job.get; id may be the end of an id. Release *out_reply. */
int cli_job_get(struct pb_client *client, const char *id, struct pb_err *err,
                struct pb_json_value **out_reply, const struct pb_json_value **out_job);

/* Prints all about the job with that id, or end of an id, or watches it. Returns the exit code. */
int cli_job_show(struct pb_client *client, const struct cli_service_options *options,
                 const char *id);
/* Jobs of a list, newest first, without their reports; must be released. */
struct cli_jobs {
    const struct pb_json_value **job; /* n entries; parts of the replies */
    size_t n;
    struct pb_json_value **reply; /* n_replies entries */
    size_t n_replies;
    const struct pb_json_value
        *old; /* a page that is not of the present (cli_print_age), or NULL */
};
#define CLI_JOBS_ALL INT64_MAX
/* Calls job.list with the options' filters, as often as necessary for `limit` jobs. status: NULL =
 * any, or failed ones by the options. may_be_old: while the job store does not answer, the jobs as
 * they were before; otherwise service.state. Returns 0 or a negative value. */
int cli_jobs_read(struct pb_client *client, const struct cli_service_options *options,
                  const char *status, int64_t limit, bool may_be_old, struct pb_err *err,
                  struct cli_jobs *out);
void cli_jobs_release(struct cli_jobs *jobs); /* all-zero is allowed */
/* Prints "as of 14 s ago: the job store does not answer" if the result is not of the present. */
void cli_print_age(FILE *out, const struct pb_json_value *result);
/* Calls a method {id} that replies with the job, and prints its line. Returns the exit code. */
int cli_job_change(struct pb_client *client, const struct cli_service_options *options,
                   const char *method, const char *id);
/* Returns true for the job of a scene whose file belongs to the job of an archive. */
bool cli_job_is_scene(const struct pb_json_value *job);
/* Does the same for every job of the list for which `wanted` returns true (NULL = all), oldest
 * first, without those of scenes. */
int cli_job_change_listed(struct pb_client *client, const struct cli_service_options *options,
                          const char *method, bool (*wanted)(const struct pb_json_value *job));
/* Lines of lists are not shortened from now on (--wide). */
void cli_list_wide(void);
/* Makes the column of pipelines as wide as the names of these jobs, as far as there is room. */
void cli_list_fit(const struct cli_jobs *jobs);
/* Prints the head of a list of such lines. */
void cli_job_head(void);
/* Prints one line about a job, and one about its error: as wide as the terminal or $COLUMNS, at
 * least 80 columns; not shortened if stdout is not a terminal. */
void cli_job_line(const struct pb_json_value *job);
/* Shows the jobs (n == 0: all jobs of the service) until they are finished, with a bar for each;
 * returns CLI_DONE, or CLI_JOB_FAILED if a job failed. */
int cli_watch_jobs(struct pb_client *client, const struct cli_service_options *options,
                   const char (*ids)[CLI_ID_BYTES], size_t n);
#endif
