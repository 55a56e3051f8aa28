/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_POSTGRES_FIXTURE_H
#define PB_TEST_POSTGRES_FIXTURE_H
/* A PostgreSQL server of a test program: a scratch directory and a socket in it, no network. It
 * ends with the program, however that ends. It refuses to run as root, and becomes another user
 * then. */
#include "service/jobs/sql.h"
#include "service/jobs/sql_postgres.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define POSTGRES_CONNINFO_BYTES 160

static char postgres_directory[64]; /* "": no server */
static char postgres_programs[256];
static pid_t postgres_server;

/* Starts a program of the server's package as its user; its output is added to `log`. */
static inline pid_t postgres_spawn(const char *name, const char *const *arguments)
{
    char path[512], log[128];
    (void)snprintf(path, sizeof path, "%s/%s", postgres_programs, name);
    (void)snprintf(log, sizeof log, "%s/log", postgres_directory);
    const struct passwd *user = getpwnam("postgres");
    user = user != NULL ? user : getpwnam("nobody");
    const pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    const int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(postgres_directory) != 0)
        _exit(126);
    if (geteuid() == 0 && (user == NULL || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(126);
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() == parent)
        (void)execv(path, (char *const *)(const void *)arguments);
    _exit(127);
}

/* Returns true if the server has written that it is ready. */
static inline bool postgres_is_ready(void)
{
    char path[128], line[128] = "";
    (void)snprintf(path, sizeof path, "%s/data/postmaster.pid", postgres_directory);
    FILE *file = fopen(path, "re");
    for (int i = 0; file != NULL && i < 8; i++)
        if (fgets(line, sizeof line, file) == NULL)
            line[0] = '\0';
    if (file != NULL)
        (void)fclose(file);
    return strncmp(line, "ready", 5) == 0;
}

/* Runs statements in a database of the server. Returns 0, or a negative value and *err. */
static inline int postgres_try(const char *database, const char *texts, struct pb_err *err)
{
    char conninfo[POSTGRES_CONNINFO_BYTES];
    struct pb_sql *db = NULL;
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=pushbroom dbname=%s",
                   postgres_directory, database);
    const struct pb_postgres_options options = {.conninfo = conninfo, .program = "test"};
    int rc = pb_postgres_open(&options, err, &db);
    if (rc == 0 && !pb_postgres_execute(db, texts))
        rc = pb_fail(err, PB_E_SERVICE_STATE, "%.100s: %s", texts, pb_sql_message(db));
    pb_sql_close(db);
    return rc;
}

/* The same, or the test fails. A slow disk exceeds the limit of time of a statement, which is then
 * without effect and runs again. */
static inline void postgres_run(const char *database, const char *texts)
{
    struct pb_err err = {0};
    int rc = postgres_try(database, texts, &err);
    for (int i = 0; i < 30 && rc != 0 && strstr(err.msg, "[57014]") != NULL; i++)
        rc = postgres_try(database, texts, &err);
    ck_assert_msg(rc == 0, "%s", err.msg);
}

static inline int postgres_stop(int result)
{
    char command[128];
    if (postgres_server > 0) {
        (void)kill(postgres_server, SIGQUIT);
        (void)waitpid(postgres_server, NULL, 0);
    }
    (void)snprintf(command, sizeof command, "rm -rf %s", postgres_directory);
    if (postgres_directory[0] != '\0' && system(command) != 0)
        result = EXIT_FAILURE;
    postgres_directory[0] = '\0';
    return result;
}

static inline bool postgres_fail(const char *what)
{
    char command[128];
    (void)snprintf(command, sizeof command, "cat %s/log >&2", postgres_directory);
    (void)fprintf(stderr, "the PostgreSQL server of the test: %s\n", what);
    (void)system(command);
    exit(postgres_stop(EXIT_FAILURE));
}

/* Finds the newest server; false, with a message, if none is installed. */
static inline bool postgres_find(void)
{
    glob_t found;
    const bool is_there = glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0;
    if (is_there) {
        (void)snprintf(postgres_programs, sizeof postgres_programs, "%s",
                       found.gl_pathv[found.gl_pathc - 1]);
        *strrchr(postgres_programs, '/') = '\0';
    } else {
        (void)fprintf(stderr, "no PostgreSQL server is installed (package postgresql): the tests "
                              "over PostgreSQL are skipped\n");
        if (getenv("CI") != NULL)
            exit(EXIT_FAILURE);
    }
    globfree(&found);
    return is_there;
}

/* Starts the server, unless none is installed: false. */
static inline bool postgres_start(void)
{
    static const char *const init[] = {"initdb", "-D", "data", "-U",         "pushbroom", "-A",
                                       "trust",  "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    static const char *const serve[] = {
        "postgres", "-D", "data", "-k", postgres_directory, "-c", "listen_addresses=", "-c",
        "shared_buffers=16MB", "-c", "fsync=off",
        /* COMMIT waits for ever in a session that sets synchronous_commit */
        "-c", "synchronous_standby_names=none", "-c", "synchronous_commit=local", NULL};
    int status = 0;
    if (!postgres_find())
        return false;
    (void)snprintf(postgres_directory, sizeof postgres_directory, "/tmp/pb-postgres-XXXXXX");
    if (mkdtemp(postgres_directory) == NULL)
        exit(EXIT_FAILURE);
    const struct passwd *user = getpwnam("postgres");
    user = user != NULL ? user : getpwnam("nobody");
    if (geteuid() == 0 &&
        (user == NULL || chown(postgres_directory, user->pw_uid, user->pw_gid) != 0))
        return postgres_fail("there is no user that may run it");
    if (waitpid(postgres_spawn("initdb", init), &status, 0) < 0 || status != 0)
        return postgres_fail("initdb failed");
    postgres_server = postgres_spawn("postgres", serve);
    while (!postgres_is_ready()) {
        if (postgres_server < 0 || waitpid(postgres_server, &status, WNOHANG) != 0) {
            postgres_server = 0;
            return postgres_fail("it did not start");
        }
        (void)usleep(10000);
    }
    return true;
}
#endif
