/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom quarantine`: lists and handles the jobs whose input the service has moved to
 * quarantine. */
#include "service/cli/cli.h"
#include "service/cli/cli_service.h"

#include <string.h>

enum { LIST_MAX = 1000 };

static char quarantine[4096]; /* the service's directory */

static bool is_quarantined(const struct pb_json_value *job)
{
    const char *input = cli_job_text(job, "input"), *status = cli_job_text(job, "status");
    size_t n = strlen(quarantine);
    return !cli_job_is_scene(job) &&
           (strcmp(status, "failed") == 0 || strcmp(status, "dismissed") == 0) && n > 0 &&
           strncmp(input, quarantine, n) == 0 && input[n] == '/';
}

static int find_directory(struct pb_client *client)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    if (pb_client_call(client, "service.info", "{}", &err, &reply, &result) < 0)
        return cli_service_exit(&err);
    (void)snprintf(quarantine, sizeof quarantine, "%s", cli_job_text(result, "quarantine"));
    pb_json_release(reply);
    return CLI_DONE;
}

static int list(struct pb_client *client, const struct cli_service_options *o)
{
    struct pb_err err = {0};
    struct cli_jobs jobs;
    size_t n = 0;
    if (cli_jobs_read(client, o, NULL, CLI_JOBS_ALL, false, &err, &jobs) < 0)
        return cli_service_exit(&err);
    cli_list_fit(&jobs);
    for (size_t i = 0; i < jobs.n; i++) {
        if (!is_quarantined(jobs.job[i]))
            continue;
        if (n++ == 0 && !o->json)
            cli_job_head();
        if (o->json)
            cli_put_json(jobs.job[i]);
        else
            cli_job_line(jobs.job[i]);
    }
    if (n == 0 && !o->json)
        puts("nothing of the known jobs is in quarantine");
    cli_jobs_release(&jobs);
    return CLI_DONE;
}

static int each(struct pb_client *client, const struct cli_service_options *o, const char *method)
{
    int rc = CLI_DONE;
    if (o->failed)
        return cli_job_change_listed(client, o, method, is_quarantined);
    for (int i = 1; rc != CLI_UNREACHABLE && i < o->n_words; i++) {
        int one = cli_job_change(client, o, method, o->words[i]);
        rc = one != CLI_DONE ? one : rc;
    }
    return rc;
}

static int check_words(const struct cli_service_options *o, const char *word)
{
    static const char *const words[] = {"list", "show", "retry", "drop"};
    size_t i = 0;
    while (i < 4 && strcmp(words[i], word) != 0)
        i++;
    if (i == 4)
        return cli_usage("quarantine", "list, show, retry or drop, not '%s'", word);
    if (i == 0 && o->n_words > 1)
        return cli_usage("quarantine", "list takes no JOB, '%s' is too much", o->words[1]);
    if (i == 1 && o->n_words != 2)
        return cli_usage("quarantine", "show takes one JOB");
    if (i > 1 && o->failed == (o->n_words > 1))
        return cli_usage("quarantine", "%s wants JOBs, or --failed", word);
    return CLI_DONE;
}

int cli_quarantine(int argc, char **argv)
{
    struct cli_service_options o = {0};
    struct pb_client *client = NULL;
    int rc = cli_service_parse("quarantine", argc, argv, &o);
    const char *word = o.n_words > 0 ? o.words[0] : "list";
    rc = rc ? rc : check_words(&o, word);
    rc = rc ? rc : cli_service_open(&o, &client);
    rc = rc ? rc : find_directory(client);
    if (rc == CLI_DONE && strcmp(word, "list") == 0)
        rc = list(client, &o);
    else if (rc == CLI_DONE && strcmp(word, "show") == 0)
        rc = cli_job_show(client, &o, o.words[1]);
    else if (rc == CLI_DONE)
        rc = each(client, &o, strcmp(word, "drop") == 0 ? "job.drop" : "job.retry");
    pb_client_close(client);
    return rc;
}
