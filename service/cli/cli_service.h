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
    int64_t since_ms; /* jobs that changed in this time; 0 = all */
    long priority;
    long expect; /* jobs that must have been seen before idle counts */
    char **words;
    int n_words;
};

/* Reads the options that `command` has; CLI_DONE or the usage error. */
int cli_service_parse(const char *command, int argc, char **argv,
                      struct cli_service_options *options);
/* Connects, or says why not and returns the exit code. */
int cli_service_open(const struct cli_service_options *options, struct pb_client **out_client);
/* Prints the error and returns the exit code that belongs to it. */
int cli_service_exit(const struct pb_err *err);
/* The same for an error about that job, which a list names. */
int cli_service_exit_of(const char *job, const struct pb_err *err);

/* Prints the value as a line of JSON; ends the program where there is no memory for it. */
void cli_put_json(const struct pb_json_value *value);
/* Members of a job on the wire; "" and 0 when they are not there. */
const char *cli_job_text(const struct pb_json_value *job, const char *key);
int64_t cli_job_number(const struct pb_json_value *job, const char *key);
const char *cli_job_base(const struct pb_json_value *job); /* the input's name without folders */
bool cli_job_finished(const char *status);
enum cli_color cli_job_color(const char *status);
/* Calls job.get; id may be the end of one. Release *out_reply. */
int cli_job_get(struct pb_client *client, const char *id, struct pb_err *err,
                struct pb_json_value **out_reply, const struct pb_json_value **out_job);

/* Prints the job of that id, or end of an id, in full, or watches it. The exit code. */
int cli_job_show(struct pb_client *client, const struct cli_service_options *options,
                 const char *id);
/* The jobs of a list, the newest first, without their reports; to be released. */
struct cli_jobs {
    const struct pb_json_value **job; /* n; parts of the replies */
    size_t n;
    struct pb_json_value **reply; /* n_replies */
    size_t n_replies;
};
#define CLI_JOBS_ALL INT64_MAX
/* Calls job.list with the options' filters, as often as it takes for `limit` jobs. status: NULL =
 * any, or failed ones by the options. 0 or negative. */
int cli_jobs_read(struct pb_client *client, const struct cli_service_options *options,
                  const char *status, int64_t limit, struct pb_err *err, struct cli_jobs *out);
void cli_jobs_release(struct cli_jobs *jobs); /* a zeroed one is fine */
/* Calls a method {id} that answers with the job, and prints its line. The exit code. */
int cli_job_change(struct pb_client *client, const struct cli_service_options *options,
                   const char *method, const char *id);
/* The same for every job of the list that is wanted (NULL = all), the oldest first. */
int cli_job_change_listed(struct pb_client *client, const struct cli_service_options *options,
                          const char *method, bool (*wanted)(const struct pb_json_value *job));
/* Lines of lists are not cut from now on (--wide). */
void cli_list_wide(void);
/* Makes the column of pipelines as wide as the names of these jobs, as far as there is room. */
void cli_list_fit(const struct cli_jobs *jobs);
/* The head of a list of such lines. */
void cli_job_head(void);
/* One line about a job, and one about its error: as wide as the terminal or $COLUMNS, 80 columns at
 * least; where it is no terminal, as wide as they are. */
void cli_job_line(const struct pb_json_value *job);
/* Shows the jobs (n == 0: whatever the service has) until they are finished, a bar each; CLI_DONE,
 * or CLI_JOB_FAILED when one of them failed. */
int cli_watch_jobs(struct pb_client *client, const struct cli_service_options *options,
                   const char (*ids)[CLI_ID_BYTES], size_t n);
#endif
