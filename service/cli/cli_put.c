/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom put`: copies or moves scenes into the inbox of the service. */
#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "config/base/text_clean.h"
#include "config/config.h"
#include "kernels/nearest.h"
#include "service/cli/cli.h"
#include "service/cli/cli_service.h"
#include "service/daemon/daemon.h"
#include "service/inbox/deliver.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { POLL_MS = 500, GONE_MS = 30000, SHOW_MS = 100, NAME_BYTES = NAME_MAX + 1 };

/* Scene in the inbox, and its job as soon as the job exists. */
struct scene {
    char place[PB_FILES_PATH_BYTES];
    char since[PB_CLOCK_TEXT_BYTES]; /* wall clock before the scene was in the inbox */
    char id[CLI_ID_BYTES];           /* "" = unknown yet */
    int64_t gone_ms; /* monotonic: first time that it was missing from the inbox; 0 = never */
    bool failed, told;
};

struct put {
    struct cli_service_options service;
    const char *inbox, *config;
    bool moves;
    char inboxes[PB_INBOXES_MAX][PB_FILES_PATH_BYTES];
    size_t n_inboxes, chosen;
    struct pb_client *client; /* NULL if the service does not run */
    struct scene *scene;
    size_t n_scenes;
    int64_t first_wall_ms; /* time at which the first scene was put into the inbox */
    /* progress of the current scene */
    const char *name;
    int64_t begun_ms, shown_ms;
    bool shows;
};

static volatile sig_atomic_t stopped_by;

static void on_signal(int number)
{
    stopped_by = number;
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void)sigaction(numbers[i], &action, NULL);
}

/* --- choice of the inbox ---------------------------------------------------------------------- */

static void add_inbox(struct put *put, const char *path)
{
    if (put->n_inboxes < PB_INBOXES_MAX)
        (void)snprintf(put->inboxes[put->n_inboxes++], PB_FILES_PATH_BYTES, "%s", path);
}

static int inboxes_of_service(struct put *put)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *result = NULL;
    if (pb_client_call(put->client, "service.info", "{}", &err, &reply, &result) < 0)
        return cli_service_exit(&err);
    const struct pb_json_value *paths = pb_json_get(result, "inboxes", &(bool){false});
    for (size_t i = 0; i < pb_json_count(paths); i++) {
        const char *path = pb_json_text_of(pb_json_at(paths, i));
        add_inbox(put, path ? path : "");
    }
    pb_json_release(reply);
    return CLI_DONE;
}

/* Reads the inboxes from the configuration if the service does not run: it takes the scenes at its
 * next start. */
static int inboxes_of_config(struct put *put, const struct pb_err *unreachable)
{
    if (strcmp(put->config, PB_DAEMON_CONFIG) == 0 && access(put->config, F_OK) != 0) {
        cli_print_err_hint(unreachable, "start pushbroomd, name its socket with --socket or "
                                        "PUSHBROOM_SOCKET, or its configuration with -c");
        return CLI_UNREACHABLE;
    }
    struct pb_config *config = cli_load_config(put->config);
    if (config == NULL)
        return CLI_USAGE;
    for (size_t i = 0; i < config->service.n_inboxes; i++)
        add_inbox(put, config->service.inboxes[i].path);
    pb_config_destroy(config);
    fprintf(stderr,
            "pushbroom put: the service does not run; the inbox is that of %s, and scenes in it "
            "are taken when the service starts\n",
            put->config);
    return CLI_DONE;
}

static int choose_inbox(struct put *put)
{
    const char *names[PB_INBOXES_MAX];
    char list[400] = "";
    size_t n_fit = 0, used = 0;
    for (size_t i = 0; i < put->n_inboxes; i++) {
        names[i] = pb_base_name(put->inboxes[i]);
        if (put->inbox == NULL || strcmp(put->inbox, put->inboxes[i]) == 0 ||
            strcmp(put->inbox, names[i]) == 0) {
            put->chosen = i;
            n_fit++;
        }
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                     put->inboxes[i]);
    }
    if (n_fit == 1)
        return CLI_DONE;
    if (put->inbox == NULL)
        return cli_usage("put", "there are several inboxes; name one with --inbox: %s", list);
    if (n_fit == 0)
        return cli_unknown_name("put", "inbox", put->inbox,
                                pb_nearest(put->inbox, names, put->n_inboxes));
    return cli_usage("put", "several inboxes have the name '%s'; give the path: %s", put->inbox,
                     list);
}

static int find_inbox(struct put *put)
{
    struct pb_err err = {0};
    int rc = pb_client_open(put->service.socket, CLI_TIMEOUT_MS, &err, &put->client);
    if (rc != 0 && (err.code != PB_E_SERVICE_UNREACHABLE || put->service.wait)) {
        cli_print_err(&err);
        return CLI_UNREACHABLE;
    }
    rc = rc == 0 ? inboxes_of_service(put) : inboxes_of_config(put, &err);
    return rc ? rc : choose_inbox(put);
}

/* --- one scene -------------------------------------------------------------------------------- */

static void clear_progress(const struct put *put)
{
    if (put->shown_ms > 0)
        (void)fputs("\r\033[K", stderr);
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct put *put = user;
    int64_t now = pb_clock_mono_ms();
    if (!put->shows || now - put->begun_ms < 5 * SHOW_MS || now - put->shown_ms < SHOW_MS)
        return stopped_by != 0;
    char clean[NAME_BYTES], name[300], some[16], all[16], rate[16];
    (void)pb_text_clean(put->name, clean, sizeof clean);
    double seconds = (double)(now - put->begun_ms) / 1e3;
    put->shown_ms = now;
    (void)fprintf(stderr, "\r%s  %s of %s, %s/s\033[K",
                  cli_fit(clean, cli_columns(stderr) - 40, name, sizeof name),
                  cli_bytes((double)done, some, sizeof some),
                  cli_bytes((double)total, all, sizeof all),
                  cli_bytes((double)done / seconds, rate, sizeof rate));
    (void)fflush(stderr);
    return stopped_by != 0;
}

static void print_delivered(const struct put *put, const struct pb_delivery *delivery)
{
    char bytes[16], name[NAME_BYTES];
    if (put->service.json && put->service.wait)
        return; /* the jobs are printed instead */
    if (put->service.json) {
        struct pb_json *json = pb_json_create(false);
        pb_json_object(json, NULL);
        pb_json_string(json, "name", delivery->name);
        pb_json_string(json, "path", delivery->place);
        pb_json_int(json, "files", (int64_t)delivery->files);
        pb_json_int(json, "bytes", (int64_t)delivery->bytes);
        pb_json_bool(json, "moved", put->moves);
        pb_json_end(json);
        (void)cli_finish_json(json);
        return;
    }
    (void)pb_text_clean(delivery->name, name, sizeof name);
    printf("%s: %zu file%s, %s, %s to %s\n", name, delivery->files, delivery->files == 1 ? "" : "s",
           cli_bytes((double)delivery->bytes, bytes, sizeof bytes), put->moves ? "moved" : "copied",
           put->inboxes[put->chosen]);
}

/* Returns CLI_DONE, CLI_JOB_FAILED, or -EINTR after a signal. */
static int put_one(struct put *put, const char *source)
{
    const struct pb_deliver_options options = {.inbox = put->inboxes[put->chosen],
                                               .moves = put->moves,
                                               .on_progress = on_progress,
                                               .user = put};
    struct pb_err err = {0};
    struct pb_delivery delivery;
    struct scene *scene = &put->scene[put->n_scenes];
    put->name = pb_base_name(source);
    put->begun_ms = pb_clock_mono_ms();
    put->shown_ms = 0;
    int rc = pb_deliver_begin(&options, source, &err, &delivery);
    pb_clock_text(pb_clock_wall_ms(), scene->since);
    if (rc == 0 && stopped_by != 0)
        rc = -EINTR;
    rc = rc ? rc : pb_deliver_commit(&delivery, &err);
    clear_progress(put);
    if (rc == 0) {
        (void)snprintf(scene->place, sizeof scene->place, "%s", delivery.place);
        put->n_scenes++;
        print_delivered(put, &delivery);
        char name[NAME_BYTES];
        (void)pb_text_clean(delivery.name, name, sizeof name);
        if (!pb_deliver_remove_source(&delivery))
            fprintf(stderr,
                    "pushbroom put: %s is in the inbox, but not all of the source could be "
                    "removed\n",
                    name);
    } else if (err.code != PB_OK) {
        rc = CLI_JOB_FAILED;
        cli_print_err_hint(&err, err.code == PB_E_SERVICE_SPACE
                                     ? "free space on the disk of the inbox, and put it again"
                                     : pb_code_hint(err.code));
    }
    pb_deliver_end(&delivery);
    return rc;
}

/* --- the jobs of the scenes ------------------------------------------------------------------- */

static bool is_delivery(const struct pb_json_value *job, const struct scene *scene)
{
    const struct pb_json_value *paths = pb_json_get(job, "delivered", &(bool){false});
    bool is = false;
    if (strcmp(cli_job_text(job, "created"), scene->since) < 0 ||
        cli_job_text(job, "archive")[0] != '\0')
        return false; /* an earlier delivery with that name; a scene in an archive */
    for (size_t i = 0; i < pb_json_count(paths) && !is; i++) {
        const char *path = pb_json_text_of(pb_json_at(paths, i));
        is = path != NULL && strcmp(path, scene->place) == 0;
    }
    return is;
}

static int find_jobs(struct put *put)
{
    struct pb_err err = {0};
    struct cli_jobs jobs;
    put->service.since_ms = pb_clock_wall_ms() - put->first_wall_ms + 1000;
    if (cli_jobs_read(put->client, &put->service, NULL, CLI_JOBS_ALL, false, &err, &jobs) < 0)
        return cli_service_exit(&err);
    for (size_t i = 0; i < put->n_scenes; i++) {
        struct scene *scene = &put->scene[i];
        for (size_t k = 0; k < jobs.n && scene->id[0] == '\0'; k++)
            if (is_delivery(jobs.job[k], scene))
                (void)snprintf(scene->id, sizeof scene->id, "%s", cli_job_text(jobs.job[k], "id"));
    }
    cli_jobs_release(&jobs);
    put->service.since_ms = 0;
    return CLI_DONE;
}

/* Finds the entry with that name in a list of service.info; NULL if absent. */
static const struct pb_json_value *entry_of(const struct pb_json_value *info, const char *key,
                                            const char *member, const struct scene *scene)
{
    const struct pb_json_value *list = pb_json_get(info, key, &(bool){false});
    const char *name = pb_base_name(scene->place);
    for (size_t i = 0; i < pb_json_count(list); i++) {
        const char *other = pb_json_get_text(pb_json_at(list, i), member);
        if (other != NULL && strcmp(other, name) == 0)
            return pb_json_at(list, i);
    }
    return NULL;
}

/* Checks a scene without a job: ends the wait if no job is possible, and reports once the reason
 * of the wait. */
static void look_at(struct scene *scene, const struct pb_json_value *info)
{
    struct stat st;
    const struct pb_json_value *refused = entry_of(info, "refused", "name", scene);
    const struct pb_json_value *stays =
        refused != NULL ? refused : entry_of(info, "foreign", "name", scene);
    const struct pb_json_value *gathers = entry_of(info, "gathering", "scene", scene);
    char name[NAME_BYTES];
    (void)pb_text_clean(pb_base_name(scene->place), name, sizeof name);
    if (stays != NULL) {
        scene->failed = true;
        fprintf(stderr, "pushbroom put: %s stays in the inbox: %s [%s]\n", name,
                cli_job_text(stays, "message"), cli_job_text(stays, "code"));
        if (cli_job_text(stays, "hint")[0] != '\0')
            fprintf(stderr, "  to do: %s\n", cli_job_text(stays, "hint"));
    } else if (gathers != NULL && !scene->told) {
        scene->told = true;
        fprintf(stderr, "pushbroom put: %s waits: %s\n", name, cli_job_text(gathers, "missing"));
    }
    bool is_there = lstat(scene->place, &st) == 0 || errno != ENOENT;
    int64_t now = pb_clock_mono_ms();
    if (is_there)
        scene->gone_ms = 0;
    else if (scene->gone_ms == 0)
        scene->gone_ms = now;
    else if (now - scene->gone_ms >= GONE_MS) {
        scene->failed = true;
        fprintf(stderr, "pushbroom put: %s is no longer in the inbox, and no job has it\n", name);
    }
}

static int look_at_inbox(struct put *put, bool *out_waits)
{
    struct pb_err err = {0};
    struct pb_json_value *reply = NULL;
    const struct pb_json_value *info = NULL;
    *out_waits = false;
    if (pb_client_call(put->client, "service.info", "{}", &err, &reply, &info) < 0)
        return cli_service_exit(&err);
    for (size_t i = 0; i < put->n_scenes; i++) {
        struct scene *scene = &put->scene[i];
        if (scene->id[0] == '\0' && !scene->failed)
            look_at(scene, info);
        *out_waits = *out_waits || (scene->id[0] == '\0' && !scene->failed);
    }
    pb_json_release(reply);
    return CLI_DONE;
}

/* Lists the ids of the jobs, each once: files of one scene have one job. */
static size_t list_ids(const struct put *put, char (*ids)[CLI_ID_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < put->n_scenes; i++) {
        bool is_new = put->scene[i].id[0] != '\0';
        for (size_t k = 0; k < n && is_new; k++)
            is_new = strcmp(ids[k], put->scene[i].id) != 0;
        if (is_new)
            (void)memcpy(ids[n++], put->scene[i].id, CLI_ID_BYTES);
    }
    return n;
}

static int wait_for_jobs(struct put *put)
{
    bool waits = true;
    int rc = CLI_DONE;
    for (;;) {
        rc = find_jobs(put);
        rc = rc ? rc : look_at_inbox(put, &waits);
        if (rc != CLI_DONE || !waits || stopped_by != 0)
            break;
        (void)poll(NULL, 0, POLL_MS);
    }
    if (rc != CLI_DONE || stopped_by != 0)
        return rc;
    char(*ids)[CLI_ID_BYTES] = calloc(put->n_scenes, sizeof *ids);
    if (ids == NULL)
        return CLI_JOB_FAILED;
    size_t n = list_ids(put, ids);
    bool failed = false;
    for (size_t i = 0; i < put->n_scenes; i++)
        failed = failed || put->scene[i].failed;
    rc = n > 0 ? cli_watch_jobs(put->client, &put->service, (const char(*)[CLI_ID_BYTES])ids, n)
               : CLI_DONE;
    free(ids);
    return rc == CLI_DONE && failed ? CLI_JOB_FAILED : rc;
}

/* --- the command ------------------------------------------------------------------------------ */

static int parse(int argc, char **argv, struct put *put)
{
    static const struct option longs[] = {
        {"inbox", 1, 0, 'i'},  {"move", 0, 0, 'm'}, {"wait", 0, 0, 'w'}, {"config", 1, 0, 'c'},
        {"socket", 1, 0, 's'}, {"json", 0, 0, 'j'}, {0, 0, 0, 0}};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":i:c:", longs, NULL)) != -1;) {
        switch (c) {
        case 'i':
            put->inbox = optarg;
            break;
        case 'c':
            put->config = optarg;
            break;
        case 's':
            put->service.socket = optarg;
            break;
        case 'm':
            put->moves = true;
            break;
        case 'w':
            put->service.wait = true;
            break;
        case 'j':
            put->service.json = true;
            break;
        default:
            return cli_bad_option("put", argv, c, longs);
        }
    }
    put->service.words = argv + optind;
    put->service.n_words = argc - optind;
    if (put->service.json)
        cli_json_errors();
    return put->service.n_words > 0 ? CLI_DONE : cli_usage("put", "which SCENE?");
}

static int put_all(struct put *put)
{
    int rc = CLI_DONE;
    put->first_wall_ms = pb_clock_wall_ms();
    put->shows = !put->service.json && cli_is_terminal(stderr);
    put->scene = calloc((size_t)put->service.n_words, sizeof *put->scene);
    if (put->scene == NULL)
        return CLI_JOB_FAILED;
    catch_signals();
    for (int i = 0; i < put->service.n_words && stopped_by == 0; i++) {
        int one = put_one(put, put->service.words[i]);
        rc = one != CLI_DONE ? CLI_JOB_FAILED : rc; /* the other scenes are delivered anyway */
    }
    if (put->service.wait && put->n_scenes > 0 && stopped_by == 0) {
        int waited = wait_for_jobs(put);
        rc = rc == CLI_DONE ? waited : rc;
    }
    free(put->scene);
    return rc;
}

int cli_put(int argc, char **argv)
{
    struct put put = {.config = PB_DAEMON_CONFIG};
    int rc = parse(argc, argv, &put);
    rc = rc ? rc : find_inbox(&put);
    rc = rc ? rc : put_all(&put);
    pb_client_close(put.client);
    if (stopped_by != 0)
        cli_end_by(stopped_by);
    return rc;
}
