/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom --complete WORDS...`, which the completion scripts of shells call with the words
 * after "pushbroom" up to the word at the cursor. Prints the words that may replace that word, one
 * in each line, with a tab and an explanation if there is one; the line ":files" means that files
 * may replace it. Errors are silent, because a shell would show them in the middle of a command
 * line. */
#include "service/cli/cli.h"
#include "config/config.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "kernels/op.h"
#include "service/cli/cli_service.h"

#include "config/presets.h"
#include "kernels/index/index_table.h"
#include "pipeline/device/known_devices.h"
#include "pipeline/product/product_kinds.h"

#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 1000, JOBS = 200 };

struct complete {
    const struct pb_help_page *page;
    const char *command, *word;  /* word: word at the cursor */
    const char *socket, *config; /* options of the command line; NULL if not given */
    int n_names;                 /* number of names before the word */
    const char *name;            /* first of these names */
};

static void offer_with(const struct complete *c, const char *word, const char *text)
{
    if (strncmp(word, c->word, strlen(c->word)) == 0)
        printf("%s%s%s\n", word, text != NULL ? "\t" : "", text != NULL ? text : "");
}

static void offer(const struct complete *c, const char *word)
{
    offer_with(c, word, NULL);
}

static void offer_files(void)
{
    puts(":files");
}

/* --- names known to the program and to the service -------------------------------------------- */

static int call(const struct complete *c, const char *method, const char *params,
                struct pb_client **out_client, struct pb_json_value **out_reply,
                const struct pb_json_value **out_result)
{
    struct pb_err err = {0};
    int rc = pb_client_open(c->socket, TIMEOUT_MS, &err, out_client);
    return rc ? rc : pb_client_call(*out_client, method, params, &err, out_reply, out_result);
}

/* Offers the id of a job; the end of an id matches as well. */
static void offer_job(const struct complete *c, const struct pb_json_value *job)
{
    const char *id = cli_job_text(job, "id");
    const size_t n = strlen(id), m = strlen(c->word);
    const bool fits = strncmp(id, c->word, m) == 0 || (m < n && strcmp(id + n - m, c->word) == 0);
    if (fits)
        printf("%s\t%s %s\n", id, cli_job_text(job, "status"), cli_job_text(job, "name"));
}

static void offer_jobs(const struct complete *c, const char *status)
{
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    char params[200];
    (void)snprintf(params, sizeof params, "{\"limit\":%d,\"fields\":\"brief\"%s%s}", JOBS,
                   status[0] != '\0' ? ",\"status\":" : "", status);
    if (call(c, "job.list", params, &client, &reply, &result) == 0) {
        const struct pb_json_value *jobs = pb_json_get(result, "jobs", NULL);
        for (size_t i = 0; i < pb_json_count(jobs); i++)
            offer_job(c, pb_json_at(jobs, i));
    }
    pb_json_release(reply);
    pb_client_close(client);
}

static void offer_pipelines_of_service(const struct complete *c)
{
    struct pb_client *client = NULL;
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    if (call(c, "service.info", NULL, &client, &reply, &result) == 0) {
        const struct pb_json_value *names = pb_json_get(result, "pipelines", NULL);
        for (size_t i = 0; i < pb_json_count(names); i++)
            offer(c, pb_json_text_of(pb_json_at(names, i)));
    }
    pb_json_release(reply);
    pb_client_close(client);
}

static void offer_pipelines(const struct complete *c)
{
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    if (strcmp(c->command, "run") != 0) {
        offer_pipelines_of_service(c);
        return;
    }
    if (c->config == NULL || pb_config_load(c->config, &pb_products, &errors, &config) != 0)
        return;
    for (size_t i = 0; i < config->n_pipelines; i++)
        offer(c, config->pipelines[i].name);
    pb_config_destroy(config);
}

static void offer_presets(const struct complete *c)
{
    struct pb_preset *presets = NULL;
    const size_t n = pb_preset_list(&presets);
    for (size_t i = 0; i < n; i++)
        offer_with(c, presets[i].name, presets[i].about);
    pb_preset_list_free(presets, n);
}

static void offer_devices(const struct complete *c)
{
    const struct pb_known_device *device;
    for (size_t i = 0; (device = pb_known_device_at(i)) != NULL; i++)
        offer_with(c, device->name, device->model);
}

static void offer_commands(const struct complete *c)
{
    const struct cli_command *command;
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++)
        offer_with(c, command->page.name, command->page.summary);
}

/* --- the word at the cursor ------------------------------------------------------------------ */

static void offer_choices(const struct complete *c, const char *choices)
{
    char word[64];
    for (const char *at = choices; *at != '\0';) {
        const size_t n = strcspn(at, "|");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
        offer(c, word);
        at += n + (at[n] == '|');
    }
}

static void offer_value(const struct complete *c, const struct pb_help_option *option)
{
    const bool is_path = strcmp(option->value, "FILE") == 0 || strcmp(option->value, "DIR") == 0 ||
                         strcmp(option->value, "PATH") == 0;
    if (option->choices != NULL)
        offer_choices(c, option->choices);
    else if (strcmp(option->name, "pipeline") == 0)
        offer_pipelines(c);
    else if (strcmp(option->name, "as") == 0)
        offer_devices(c);
    if (strcmp(option->name, "config") == 0)
        offer_presets(c);
    if (option->choices == NULL && is_path)
        offer_files();
}

static void offer_options(const struct complete *c)
{
    char word[64];
    for (const struct pb_help_option *o = c->page->options; o->name != NULL; o++) {
        (void)snprintf(word, sizeof word, "--%s", o->name);
        offer_with(c, word, o->doc);
    }
    offer_with(c, "--help", "help of the command");
}

static void offer_quarantine(const struct complete *c)
{
    static const char *const words[] = {"list", "show", "retry", "drop"};
    for (size_t i = 0; c->n_names == 0 && i < sizeof words / sizeof words[0]; i++)
        offer(c, words[i]);
    if (c->n_names > 0 && strcmp(c->name, "list") != 0)
        offer_jobs(c, "[\"failed\",\"dismissed\"]");
}

static void offer_pattern(const void *user, const char *name)
{
    offer(user, name);
}

static void offer_names(const struct complete *c)
{
    const char *command = c->command;
    const bool first = c->n_names == 0;
    if (strcmp(command, "status") == 0 && first)
        offer_jobs(c, "");
    else if (strcmp(command, "cancel") == 0)
        offer_jobs(c, "[\"accepted\",\"running\"]");
    else if (strcmp(command, "retry") == 0)
        offer_jobs(c, "[\"failed\",\"dismissed\"]");
    else if (strcmp(command, "again") == 0)
        offer_jobs(c, "\"successful\"");
    else if (strcmp(command, "quarantine") == 0)
        offer_quarantine(c);
    else if (strcmp(command, "store") == 0 && first)
        offer_choices(c, "init|check|forget");
    else if (strcmp(command, "new") == 0 || strcmp(command, "check-config") == 0)
        offer_presets(c);
    for (size_t i = 0; strcmp(command, "operators") == 0 && first && i < pb_op_count(); i++)
        offer_with(c, pb_op_at(i)->name, pb_op_at(i)->doc.summary);
    for (size_t i = 0; strcmp(command, "indices") == 0 && first && i < pb_index_count(); i++)
        offer_with(c, pb_index_at(i)->name, pb_index_at(i)->long_name);
    if (strcmp(command, "patterns") == 0 && first)
        cli_patterns_each(offer_pattern, c);
    if (c->page->takes_files)
        offer_files();
}

/* Finds the option with a value that the word names. */
static const struct pb_help_option *find_option(const struct pb_help_page *page, const char *word)
{
    for (const struct pb_help_option *o = page->options; o->name != NULL; o++)
        if (o->value != NULL &&
            ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, o->name) == 0) ||
             (word[0] == '-' && o->letter != 0 && word[1] == o->letter && word[2] == '\0')))
            return o;
    return NULL;
}

int cli_complete(int n, char **words)
{
    const struct pb_help_option *option = NULL;
    struct complete c = {.word = n > 0 ? words[n - 1] : ""};
    if (n <= 1 || strcmp(words[0], "help") == 0) {
        offer_commands(&c);
        if (n <= 1)
            offer_choices(&c, "help|--help|--version");
        return CLI_DONE;
    }
    const struct cli_command *command = cli_command_find(words[0]);
    if (command == NULL)
        return CLI_DONE;
    c.command = words[0];
    c.page = &command->page;
    for (int i = 1; i < n - 1; i++) {
        if (option != NULL && strcmp(option->name, "socket") == 0)
            c.socket = words[i];
        if (option != NULL && strcmp(option->name, "config") == 0)
            c.config = words[i];
        const bool is_value = option != NULL;
        option = is_value ? NULL : find_option(c.page, words[i]);
        if (!is_value && words[i][0] != '-' && c.n_names++ == 0)
            c.name = words[i];
    }
    if (option != NULL)
        offer_value(&c, option);
    else if (c.word[0] == '-')
        offer_options(&c);
    else
        offer_names(&c);
    return CLI_DONE;
}
