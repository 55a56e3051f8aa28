/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom store`: makes the tables of nodes in a database, checks the database, and removes a
 * node. */
#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "service/cli/cli.h"
#include "service/daemon/daemon.h"
#include "service/jobs/store_check.h"
#include "service/jobs/store_forget.h"

#include <string.h>
#include <sys/utsname.h>

#define PROGRESS_MS 2000

struct store {
    const char *action, *node, *conninfo, *path;
    struct pb_config *config; /* owns conninfo that is not of the command line */
    cli_certificates *certificates;
    bool as_json;
    int64_t shown_ms; /* monotonic time of the last progress line */
    int rc;
};

static const struct option longs[] = {
    {"json", no_argument, NULL, 'j'}, {"config", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};

static int parse(struct store *store, int argc, char **argv)
{
    int c;
    optind = 0;
    while ((c = getopt_long(argc, argv, ":c:", longs, NULL)) != -1) {
        if (c == '?' || c == ':')
            return cli_bad_option("store", argv, c, longs);
        if (c == 'j')
            store->as_json = true;
        else
            store->path = optarg;
    }
    const int n = argc - optind;
    store->action = n > 0 ? argv[optind] : "";
    const int first = strcmp(store->action, "forget") == 0 ? 2 : 1; /* index of CONNINFO */
    store->node = first == 2 && n > 1 ? argv[optind + 1] : NULL;
    store->conninfo = n > first ? argv[optind + first] : NULL;
    if (strcmp(store->action, "init") != 0 && strcmp(store->action, "check") != 0 && first == 1)
        return n == 0 ? cli_usage("store", "init, check or forget is missing")
                      : cli_usage("store", "there is no action '%s'", store->action);
    if (first == 2 && store->node == NULL)
        return cli_usage("store", "which NODE?");
    if (n > first + 1)
        return cli_usage("store", "one CONNINFO in quotes, '%s' is too many",
                         argv[optind + first + 1]);
    if (store->conninfo != NULL && store->path != NULL)
        return cli_usage("store", "a CONNINFO or -c FILE, not both");
    if (store->conninfo != NULL && pb_store_has_password(store->conninfo))
        return cli_usage("store", "no password belongs on a command line, which other users can "
                                  "read; use passfile=FILE");
    return CLI_DONE;
}

/* Takes the database from the configuration, unless the command line names it. */
static int find_database(struct store *store)
{
    if (store->conninfo != NULL)
        return CLI_DONE;
    store->path = store->path != NULL ? store->path : PB_DAEMON_CONFIG;
    store->config = cli_load_config(store->path);
    if (store->config == NULL)
        return CLI_USAGE;
    if (!store->config->service.has_store)
        return cli_usage("store",
                         "%s has no service.store: its jobs are in a file. Name the database: "
                         "\"host=... dbname=...\"",
                         store->path);
    store->conninfo = store->config->service.store.postgresql;
    return CLI_DONE;
}

static void print_json(struct store *store, const struct pb_store_point *point, const char *grade)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", point->name);
    pb_json_string(json, "grade", grade);
    pb_json_string(json, "text", point->text);
    pb_json_end(json);
    const int rc = cli_finish_json(json);
    store->rc = store->rc == CLI_DONE ? rc : store->rc;
}

static void print_point(void *user, const struct pb_store_point *point)
{
    static const char *const grades[PB_STORE_GRADES] = {"fine", "note", "mend"};
    static const enum cli_color colors[PB_STORE_GRADES] = {CLI_GREEN, CLI_YELLOW, CLI_RED};
    struct store *store = user;
    const char *grade = grades[point->grade];
    if (store->as_json) {
        print_json(store, point, grade);
        return;
    }
    const int columns = cli_list_columns(stdout);
    printf("%s%s%s  %-18s  ", cli_color(stdout, colors[point->grade]), grade,
           cli_color(stdout, CLI_PLAIN), point->name);
    if (columns > 0)
        cli_wrap(stdout, 26, columns, point->text);
    else
        puts(point->text);
}

/* Checks the certificates of the configuration. Returns the number of points to mend. */
static int check_certificates(struct store *store)
{
    const struct pb_service_config *service = &store->config->service;
    struct utsname machine = {.nodename = ""};
    (void)uname(&machine);
    return store->certificates(&service->fetch,
                               service->node != NULL ? service->node : machine.nodename,
                               print_point, store);
}

static int check(struct store *store)
{
    struct pb_err err = {0};
    int n_files = 0;
    if (store->config != NULL && store->config->service.has_fetch)
        n_files = check_certificates(store);
    const int n = pb_store_check(store->conninfo, print_point, store, &err);
    if (n < 0) {
        cli_print_err_hint(&err, "start the server, or correct the connection string");
        return CLI_UNREACHABLE;
    }
    return n + n_files > 0 ? CLI_JOB_FAILED : store->rc;
}

static int init(struct store *store)
{
    struct pb_err err = {0};
    char place[256], text[400];
    int version = 0;
    if (pb_store_init(store->conninfo, place, &version, &err) < 0) {
        cli_print_err_hint(&err, "start the server, or correct the connection string");
        return CLI_UNREACHABLE;
    }
    if (version < 0) {
        cli_print_err_hint(&err, "'pushbroom store check' shows what is missing");
        return CLI_JOB_FAILED;
    }
    (void)snprintf(text, sizeof text, "version %d in %s", version, place);
    print_point(store, &(struct pb_store_point){"tables", PB_STORE_FINE, text});
    return store->rc;
}

/* Prints progress of a command with many jobs. */
static void print_seen(void *user, int64_t n_seen)
{
    struct store *store = user;
    const int64_t now_ms = pb_clock_mono_ms();
    if (now_ms - store->shown_ms < PROGRESS_MS)
        return;
    store->shown_ms = now_ms;
    (void)fprintf(stderr, "pushbroom: store forget: %lld jobs were checked\n", (long long)n_seen);
}

static int forget(struct store *store)
{
    struct pb_err err = {0};
    const struct pb_store_forgetting options = {print_point, print_seen, store};
    store->shown_ms = pb_clock_mono_ms();
    const int n = pb_store_forget(store->conninfo, store->node, &options, &err);
    if (n < 0 && err.code == PB_E_JOB_STATE) {
        cli_print_err_hint(&err, "the node was not removed");
        return CLI_JOB_FAILED;
    }
    if (n < 0) {
        cli_print_err_hint(&err, "start the server, or correct the connection string; then repeat "
                                 "the command");
        return CLI_UNREACHABLE;
    }
    return n > 0 ? CLI_JOB_FAILED : store->rc;
}

/* Returns true if the program that is linked with TLS must run the command. */
static bool needs_tls(const struct store *store)
{
    return store->certificates == NULL && strcmp(store->action, "check") == 0 &&
           store->config != NULL && store->config->service.has_fetch;
}

int cli_store_as(int argc, char **argv, cli_certificates *certificates)
{
    struct store store = {.rc = CLI_DONE, .certificates = certificates};
    int rc = parse(&store, argc, argv);
    rc = rc == CLI_DONE ? find_database(&store) : rc;
    if (rc == CLI_DONE && needs_tls(&store))
        rc = cli_compute(argv);
    else if (rc == CLI_DONE)
        rc = store.node != NULL                  ? forget(&store)
             : strcmp(store.action, "init") == 0 ? init(&store)
                                                 : check(&store);
    pb_config_destroy(store.config);
    return rc;
}

int cli_store(int argc, char **argv)
{
    return cli_store_as(argc, argv, NULL);
}
