/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_SERVICE_H
#define PB_CLI_SERVICE_H
/* What the commands that talk to the service share. One thread. */
#include "service/client.h"
#include "service/json.h"

#include "config/json_writer.h"

#include <stdbool.h>
#include <stddef.h>

enum { CLI_TIMEOUT_MS = 10000, CLI_ID_BYTES = 32 };

struct cli_service_options {
    const char *socket, *pipeline;
    bool json, wait, watch, all, until_idle;
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

/* One line about a job, at most 80 columns. */
void cli_job_line(const struct pb_json_value *job);
/* Shows the jobs (n == 0: whatever the service has) until they are finished, a bar each; CLI_DONE,
 * or CLI_JOB_FAILED when one of them failed. */
int cli_watch_jobs(struct pb_client *client, const struct cli_service_options *options,
                   const char (*ids)[CLI_ID_BYTES], size_t n);
#endif
