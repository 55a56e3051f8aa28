/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Rows and extents that publications put into shared files: by machines whose locks do not reach
 * each other, by processes that are killed, and by publications that fail. The name of the machine,
 * its locks and the renames are this program's own. */
#include "config/base/clock.h"
#include "pipeline/publish/collection.h"
#include "pipeline/publish/holder.h"
#include "pipeline/publish/publish_lock.h"
#include "pipeline/publish/series.h"
#include "publish_fixture.h"
#include "run_suite.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static const char *machine = "one";
static bool locks_are_local;       /* each process sees only its own locks */
static int64_t clock_step_ms;      /* the monotonic clock gains this with each call */
static const char *kill_at;        /* SIGKILL when this name is renamed ... */
static bool kill_after;            /* ... or after it was */
static int stop_fd = -1, go_fd;    /* a publication reports it and waits before `kill_at` */
static const char *fail_rename_of; /* with EIO */

int uname(struct utsname *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->nodename, sizeof out->nodename, "%s", machine);
    return 0;
}

int flock(int fd, int operation)
{
    return locks_are_local ? 0 : (int)syscall(SYS_flock, fd, operation);
}

int fcntl(int fd, int command, ...);
int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    return locks_are_local && command == F_OFD_SETLK ? 0
                                                     : (int)syscall(SYS_fcntl, fd, command, arg);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    static int64_t gained_ms;
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_MONOTONIC) {
        gained_ms += clock_step_ms;
        out->tv_sec += gained_ms / 1000;
    }
    return rc;
}

static void meet(const char *from, bool after)
{
    char byte = 'x';
    if (kill_at == NULL || strcmp(from, kill_at) != 0 || after != kill_after)
        return;
    if (stop_fd < 0)
        (void)raise(SIGKILL);
    ck_assert_int_eq(write(stop_fd, &byte, 1), 1);
    ck_assert_int_eq(read(go_fd, &byte, 1), 1);
    kill_at = NULL;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (fail_rename_of != NULL && strcmp(from, fail_rename_of) == 0) {
        errno = EIO;
        return -1;
    }
    meet(from, false);
    int rc = (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
    meet(from, true);
    return rc;
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return renameat2(from_fd, from, to_fd, to, 0);
}

static void reset(void)
{
    setup();
    machine = "one";
    locks_are_local = kill_after = false;
    kill_at = fail_rename_of = NULL;
    clock_step_ms = 0;
    stop_fd = -1;
}

#define HEADER "scene,value\n"

/* All of a file below root, malloc'd; "" = it is not there. */
static char *all_of(const char *name, size_t *bytes)
{
    char *text = calloc(1, 1 << 20);
    FILE *f = fopen(at(name), "rb");
    *bytes = f != NULL ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    return text;
}

static void assert_file(const char *name, const char *expected)
{
    size_t bytes;
    char *text = all_of(name, &bytes);
    ck_assert_str_eq(text, expected);
    free(text);
}

/* Publishes a table with that row, whose rows are added to all.csv, and an item of the collection
 * c. */
static struct pb_publish *begin_rows(const struct pb_publish_options *o, const char *value)
{
    char path[PATH_MAX + 16], text[256];
    struct pb_publish_options with = *o;
    struct pb_err err = {0};
    with.collection = "c";
    struct pb_publish *p = begin(&with);
    snprintf(path, sizeof path, "%s/a.csv", pb_publish_directory(p));
    snprintf(text, sizeof text, HEADER "%s,%s\n", o->scene, value);
    put(path, text);
    snprintf(path, sizeof path, "%s/a.json", pb_publish_directory(p));
    put(path, "{\"collection\":\"c\",\"bbox\":[1,2,3,4],"
              "\"properties\":{\"datetime\":\"2020-01-01T00:00:00Z\"}}");
    ck_assert_int_eq(pb_publish_append(p, "a.csv", "all.csv", &err), 0);
    return p;
}

static int commit_rows(struct pb_publish *p, struct pb_err *err)
{
    char path[PATH_MAX];
    const struct pb_manifest_file files[] = {{"zones", "", "a.csv", "text/csv", 0, "", 0},
                                             {"stac", "", "a.json", "application/json", 0, "", 0}};
    struct pb_manifest_file own[2] = {files[0], files[1]};
    for (int i = 0; i < 2; i++) {
        struct stat st;
        char name[PATH_MAX + 16];
        snprintf(name, sizeof name, "%s/%s", pb_publish_directory(p), own[i].file);
        own[i].bytes = stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
    }
    return pb_publish_commit(p, own, 2, err, path);
}

static void publish_rows(const struct pb_publish_options *o, const char *value)
{
    struct pb_err err = {0};
    struct pb_publish *p = begin_rows(o, value);
    ck_assert_msg(commit_rows(p, &err) == 0, "%s", err.msg);
    ck_assert_str_eq(pb_publish_warning(p), "");
    pb_publish_close(p);
}

static int requests;

static void request_permit(void *user)
{
    (void)user;
    requests++;
}

/* Called while nothing is visible and no lock is held. */
static int permit(void *user, struct pb_err *err)
{
    const int *result = user;
    ck_assert(!there("scene") && !there("all.csv") && !there("collection.json"));
    ck_assert(!there(PB_PUBLISH_LOCK_DIRECTORY));
    ck_assert_int_eq(requests, 1);
    requests = 0;
    return *result == 0 ? 0 : pb_fail(err, PB_E_JOB_DISMISSED, "no");
}

START_TEST(test_permit_is_requested_before_rows_are_visible)
{
    int result = -1;
    struct pb_err err = {0};
    struct pb_publish_options o = options_for("scene", 1);
    o.request_permit = request_permit;
    o.permit = permit;
    o.permit_user = &result;
    struct pb_publish *p = begin_rows(&o, "1");
    ck_assert_int_lt(commit_rows(p, &err), 0);
    ck_assert_int_eq(err.code, PB_E_JOB_DISMISSED);
    pb_publish_close(p);
    ck_assert(!there("scene") && !there("all.csv") && !there("collection.json"));
    ck_assert_int_eq(hidden(), 0);
    result = 0;
    publish_rows(&o, "2");
    assert_file("all.csv", HEADER "scene,2\n");
}
END_TEST

static void wait_for(pid_t child, bool killed)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (killed)
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", status);
}

/* --- the lock --------------------------------------------------------------------------------*/

static int open_root(void)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static struct pb_publish_lock *take(int products)
{
    struct pb_publish_lock *lock = NULL;
    ck_assert_int_eq(pb_publish_lock_take(products, PB_PUBLISH_LOCK_WAIT_MS, &lock), 0);
    return lock;
}

START_TEST(lock_of_a_dead_process_is_broken_at_once)
{
    int products = open_root();
    pid_t child = fork();
    if (child == 0) {
        int fd;
        struct pb_publish_lock *lock = take(products);
        ck_assert_int_eq(pb_publish_lock_file(lock, "x", 0644, &fd), 0);
        (void)raise(SIGKILL);
    }
    wait_for(child, true);
    ck_assert(there(PB_PUBLISH_LOCK_DIRECTORY));
    struct pb_publish_lock *lock = NULL; /* far before one of another machine counts as dead */
    ck_assert_int_eq(pb_publish_lock_take(products, PB_PUBLISH_LOCK_STALE_MS / 2, &lock), 0);
    pb_publish_lock_drop(lock);
    ck_assert_int_eq(hidden(), 0);
    close(products);
}
END_TEST

START_TEST(sweep_removes_the_lock_of_a_dead_process)
{
    int products = open_root();
    for (int other = 0; other < 2; other++) {
        pid_t child = fork();
        if (child == 0) {
            machine = other ? "two" : "one";
            (void)take(products);
            (void)raise(SIGKILL);
        }
        wait_for(child, true);
        (void)pb_publish_sweep(root);
        ck_assert_int_eq(hidden(), other); /* the file of another machine stays */
    }
    close(products);
}
END_TEST

START_TEST(lock_that_is_held_makes_others_wait)
{
    int products = open_root();
    struct pb_publish_lock *lock = take(products), *second = NULL;
    ck_assert_int_eq(pb_publish_lock_take(products, 50, &second), -ETIMEDOUT);
    (void)pb_publish_sweep(root);
    ck_assert_int_eq(pb_publish_lock_take(products, 50, &second), -ETIMEDOUT);
    pb_publish_lock_drop(lock);
    lock = take(products);
    pb_publish_lock_drop(lock);
    ck_assert_int_eq(hidden(), 0);
    put(at(PB_PUBLISH_LOCK_DIRECTORY), "mine");
    ck_assert_int_eq(pb_publish_lock_take(products, 50, &lock), -EEXIST);
    ck_assert_str_eq(get(PB_PUBLISH_LOCK_DIRECTORY), "mine");
    close(products);
}
END_TEST

/* Breaks the lock as a process does that takes its holder for dead. */
static void break_by_hand(void)
{
    char command[PATH_MAX + 64];
    snprintf(command, sizeof command, "rm -r %s/" PB_PUBLISH_LOCK_DIRECTORY, root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(holder_of_a_broken_lock_changes_nothing)
{
    int fd, products = open_root();
    put(at("x"), "old");
    struct pb_publish_lock *late = take(products);
    ck_assert_int_eq(pb_publish_lock_file(late, "x", 0644, &fd), 0);
    ck_assert_int_eq(write(fd, "late", 4), 4);
    close(fd);
    break_by_hand();
    struct pb_publish_lock *next = take(products);
    ck_assert_int_eq(pb_publish_lock_file(late, "y", 0644, &fd), -ESTALE);
    ck_assert_int_eq(pb_publish_lock_place(late), -ESTALE);
    pb_publish_lock_drop(late);
    ck_assert(there(PB_PUBLISH_LOCK_DIRECTORY)); /* the other's */
    ck_assert_str_eq(get("x"), "old");
    pb_publish_lock_drop(next);
    ck_assert_int_eq(hidden(), 0);
    close(products);
}
END_TEST

START_TEST(test_lock_of_a_fenced_run_is_broken_at_once)
{
    int products = open_root(), stopped[2], go[2];
    char byte = 'x';
    ck_assert_int_eq(pipe(stopped) | pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        struct pb_publish_options o = options_for("a", 1);
        machine = "two";
        o.epoch = 1;
        struct pb_publish *p = begin(&o);
        struct pb_publish_lock *late = take(products);
        ck_assert_int_eq(write(stopped[1], &byte, 1), 1);
        ck_assert_int_eq(read(go[0], &byte, 1), 1);
        pb_publish_lock_drop(late);
        pb_publish_close(p);
        _exit(0);
    }
    ck_assert_int_eq(read(stopped[0], &byte, 1), 1);
    struct pb_publish_lock *lock = NULL;
    ck_assert_int_eq(pb_publish_fence(root, "another", 1), 0);
    ck_assert(there(PB_PUBLISH_LOCK_DIRECTORY));
    ck_assert_int_eq(pb_publish_fence(root, "job", 1), 0);
    ck_assert(!there(PB_PUBLISH_LOCK_DIRECTORY));
    ck_assert_int_eq(pb_publish_lock_take(products, 50, &lock), 0);
    ck_assert_int_eq(write(go[1], &byte, 1), 1);
    wait_for(child, false);
    ck_assert(there(PB_PUBLISH_LOCK_DIRECTORY)); /* the other's */
    pb_publish_lock_drop(lock);
    ck_assert_int_eq(hidden(), 0);
    close(products);
}
END_TEST

START_TEST(lock_of_another_machine_is_broken_when_stale)
{
    int products = open_root(), stopped[2], go[2];
    char byte = 'x';
    put(at("x"), "old");
    ck_assert_int_eq(pipe(stopped) | pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        int fd;
        machine = "two";
        struct pb_publish_lock *late = take(products);
        ck_assert_int_eq(pb_publish_lock_file(late, "x", 0644, &fd), 0);
        ck_assert_int_eq(write(fd, "late", 4), 4);
        close(fd);
        ck_assert_int_eq(write(stopped[1], &byte, 1), 1);
        ck_assert_int_eq(read(go[0], &byte, 1), 1);
        _exit(pb_publish_lock_place(late) == -ESTALE ? 0 : 1);
    }
    ck_assert_int_eq(read(stopped[0], &byte, 1), 1);
    struct pb_publish_lock *lock = NULL;
    ck_assert_int_eq(pb_publish_lock_take(products, 100, &lock), -ETIMEDOUT);
    clock_step_ms = 1000;
    ck_assert_int_eq(pb_publish_lock_take(products, PB_PUBLISH_LOCK_WAIT_MS, &lock), 0);
    clock_step_ms = 0;
    ck_assert_int_eq(write(go[1], &byte, 1), 1);
    wait_for(child, false);
    ck_assert_str_eq(get("x"), "old");
    pb_publish_lock_drop(lock);
    ck_assert_int_eq(hidden(), 0);
    close(products);
}
END_TEST

/* --- publications ----------------------------------------------------------------------------*/

START_TEST(rows_and_extent_follow_the_products)
{
    struct pb_publish_options a = options_for("a", 1), b = options_for("b", 2);
    publish_rows(&a, "1");
    publish_rows(&b, "2");
    publish_rows(&a, "3");
    assert_file("all.csv", HEADER "b,2\na,3\n");
    ck_assert(there("collection.json"));
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(extent_holds_all_items_of_a_publication)
{
    /* State of a grid of tiles, whose products are published together. */
    struct pb_publish_options o = options_for("a", 1);
    struct pb_err err = {0};
    char path[PATH_MAX + 16], out[PATH_MAX];
    size_t bytes;
    o.collection = "c";
    struct pb_publish *p = begin(&o);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%d.json", pb_publish_directory(p), i);
        put(path, i == 0 ? "{\"collection\":\"c\",\"bbox\":[1,2,3,4],"
                           "\"properties\":{\"datetime\":\"2020-01-01T00:00:00Z\"}}"
                         : "{\"collection\":\"c\",\"bbox\":[3,2,5,4],"
                           "\"properties\":{\"datetime\":\"2020-01-01T00:00:00Z\"}}");
    }
    const struct pb_manifest_file files[] = {{"stac", "", "0.json", "application/json", 84, "", 0},
                                             {"stac", "", "1.json", "application/json", 84, "", 0}};
    ck_assert_msg(pb_publish_commit(p, files, 2, &err, out) == 0, "%s", err.msg);
    pb_publish_close(p);
    char *text = all_of("collection.json", &bytes), *all = text;
    for (char *c = text; *c != '\0'; c++) /* without white space */
        if (strchr(" \n\t", *c) == NULL)
            *all++ = *c;
    *all = '\0';
    ck_assert_msg(strstr(text, "[[1,2,5,4]]") != NULL, "%s", text);
    free(text);
}
END_TEST

START_TEST(failed_publication_leaves_shared_files)
{
    struct pb_publish_options first = options_for("a", 1), second = options_for("a", 2);
    struct pb_err err = {0};
    second.job = "second";
    struct pb_publish *late = begin_rows(&second, "2"), *p = begin(&first);
    char path[PATH_MAX];
    ck_assert_int_eq(commit(p, "x", &err, path), 0); /* takes the place */
    pb_publish_close(p);
    ck_assert_int_eq(commit_rows(late, &err), -EEXIST);
    pb_publish_close(late);
    ck_assert(!there("all.csv") && !there("collection.json"));
    struct pb_publish_options third = options_for("b", 3);
    err = (struct pb_err){0};
    p = begin_rows(&third, "3");
    fail_rename_of = "scene";
    ck_assert_int_eq(commit_rows(p, &err), -EIO);
    fail_rename_of = NULL;
    pb_publish_close(p);
    ck_assert(!there("all.csv") && !there("collection.json") && !there("b"));
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(series_of_others_fails_the_publication_in_time)
{
    struct pb_publish_options o = options_for("a", 1);
    struct pb_err err = {0};
    put(at("all.csv"), "other,columns\n");
    struct pb_publish *p = begin_rows(&o, "1");
    ck_assert_int_lt(commit_rows(p, &err), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_SERIES);
    pb_publish_close(p);
    assert_file("all.csv", "other,columns\n");
    ck_assert(!there("a") && !there("collection.json"));
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(killed_publication_has_rows_or_no_products)
{
    static const struct {
        const char *name;
        bool after, published;
    } moments[] = {{"scene", false, false}, {"scene", true, true},  {"new-0", false, true},
                   {"new-0", true, true},   {"new-1", false, true}, {"new-1", true, true}};
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        struct pb_publish_options o = options_for("a", 1), other = options_for("b", 2);
        pid_t child = fork();
        if (child == 0) {
            kill_at = moments[i].name;
            kill_after = moments[i].after;
            publish_rows(&o, "1");
            _exit(0);
        }
        wait_for(child, true);
        (void)pb_publish_sweep(root);
        ck_assert_int_eq(there("a/p/a.csv"), moments[i].published);
        assert_file("all.csv", moments[i].published ? HEADER "a,1\n" : "");
        ck_assert_int_eq(there("collection.json"), moments[i].published);
        ck_assert_int_eq(hidden(), 0);
        publish_rows(&other, "2");
        publish_rows(&o, "3");
        assert_file("all.csv", HEADER "b,2\na,3\n");
        teardown();
        reset();
    }
}
END_TEST

START_TEST(rows_of_a_killed_run_wait_for_the_lock)
{
    struct pb_publish_options o = options_for("a", 1);
    int products = open_root();
    pid_t child = fork();
    if (child == 0) {
        kill_at = "new-0";
        publish_rows(&o, "1");
        _exit(0);
    }
    wait_for(child, true);
    break_by_hand();
    struct pb_publish_lock *lock = take(products);
    ck_assert_int_eq(pb_publish_sweep(root), 0); /* the lock of a run elsewhere, for example */
    ck_assert(!there("all.csv"));
    pb_publish_lock_drop(lock);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    assert_file("all.csv", HEADER "a,1\n");
    close(products);
}
END_TEST

START_TEST(recovery_leaves_rows_of_later_products)
{
    struct pb_publish_options o = options_for("a", 1);
    pid_t child = fork();
    if (child == 0) {
        machine = "two"; /* sweeps only when it is back */
        kill_at = "new-0";
        publish_rows(&o, "1");
        _exit(0);
    }
    wait_for(child, true);
    break_by_hand();
    publish_rows(&o, "2");
    machine = "two";
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    assert_file("all.csv", HEADER "a,2\n");
}
END_TEST

/* --- machines --------------------------------------------------------------------------------*/

enum { MACHINES = 3, WRITERS = 2, SCENES = 10 };

static _Noreturn void write_scenes(int m, int w)
{
    static const char *const names[MACHINES] = {"one", "two", "three"};
    machine = names[m];
    locks_are_local = true;
    for (int i = 0; i < SCENES; i++) {
        char scene[32];
        snprintf(scene, sizeof scene, "s%d-%d-%d", m, w, i);
        struct pb_publish_options o = options_for(scene, m * 100 + w * 20 + i);
        o.job = scene;
        publish_rows(&o, "1");
    }
    _exit(0);
}

START_TEST(machines_without_common_locks_lose_nothing)
{
    pid_t child[MACHINES * WRITERS];
    size_t bytes;
    int rows = 0;
    for (int i = 0; i < MACHINES * WRITERS; i++)
        if ((child[i] = fork()) == 0)
            write_scenes(i / WRITERS, i % WRITERS);
    for (int i = 0; i < MACHINES * WRITERS; i++)
        wait_for(child[i], false);
    char *text = all_of("all.csv", &bytes);
    for (size_t i = 0; i < bytes; i++)
        rows += text[i] == '\n';
    free(text);
    ck_assert_int_eq(rows, MACHINES * WRITERS * SCENES + 1);
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(run_of_another_machine_is_not_swept)
{
    int stopped[2], go[2];
    char byte = 'x';
    struct pb_publish_options o = options_for("a", 1), other = options_for("b", 2);
    ck_assert_int_eq(pipe(stopped) | pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        machine = "two";
        locks_are_local = true;
        stop_fd = stopped[1];
        go_fd = go[0];
        kill_at = "scene";
        publish_rows(&o, "1");
        _exit(0);
    }
    ck_assert_int_eq(read(stopped[0], &byte, 1), 1); /* complete, and not visible yet */
    locks_are_local = true;
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    publish(&other, "x"); /* sweeps as well */
    ck_assert_int_eq(write(go[1], &byte, 1), 1);
    wait_for(child, false);
    ck_assert(there("a/p/a.csv") && there("b/p/a.txt"));
    for (int i = 0; i < 2; i++) {
        close(stopped[i]);
        close(go[i]);
    }
}
END_TEST

/* Publishes value 1 of scene a on machine two, which ends at that rename. */
static void end_elsewhere(const char *at_name, bool after)
{
    struct pb_publish_options o = options_for("a", 1);
    o.epoch = 1;
    pid_t child = fork();
    if (child == 0) {
        machine = "two";
        kill_at = at_name;
        kill_after = after;
        publish_rows(&o, "1");
        _exit(0);
    }
    wait_for(child, true);
}

START_TEST(test_fence_adds_rows_of_a_machine_that_is_gone)
{
    char command[PATH_MAX + 64];
    for (int is_other = 0; is_other < 2; is_other++) { /* the inode differs by mount */
        end_elsewhere("scene", true);
        ck_assert(there("a/p/a.csv") && !there("all.csv"));
        snprintf(command, sizeof command, "cd %s && cp -a a/p x && rm -r a/p && mv x a/p", root);
        ck_assert_int_eq(is_other ? system(command) : 0, 0);
        ck_assert_int_eq(pb_publish_fence(root, "another", 1), 0);
        ck_assert(!there("all.csv"));
        ck_assert_int_eq(pb_publish_fence(root, "job", 1), 0);
        assert_file("all.csv", HEADER "a,1\n");
        ck_assert(there("collection.json"));
        teardown();
        reset();
    }
    end_elsewhere("scene", false);
    ck_assert_int_eq(pb_publish_fence(root, "job", 1), 0);
    ck_assert(!there("a") && !there("all.csv") && !there("collection.json"));
}
END_TEST

/* A job that is over up to that epoch. */
static bool is_over(void *user, const char *job, uint64_t epoch)
{
    return strcmp(job, "job") == 0 && epoch <= *(const uint64_t *)user;
}

START_TEST(test_run_of_another_machine_is_swept_when_over)
{
    static const struct {
        const char *name;
        bool after, published;
    } moments[] = {{"scene", false, false}, {"scene", true, true}, {"new-0", true, true}};
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        uint64_t last = 0;
        end_elsewhere(moments[i].name, moments[i].after);
        (void)pb_publish_sweep_runs(root, is_over, &last);
        ck_assert_int_gt(hidden(), 0);
        last = 1;
        ck_assert_int_eq(pb_publish_sweep_runs(root, is_over, &last), 1);
        assert_file("all.csv", moments[i].published ? HEADER "a,1\n" : "");
        ck_assert_int_eq(there("collection.json"), moments[i].published);
        ck_assert_int_eq(there("a/p/a.csv"), moments[i].published);
        ck_assert_int_eq(hidden(), 0);
        teardown();
        reset();
    }
}
END_TEST

START_TEST(test_late_run_leaves_rows_of_its_successor)
{
    int stopped[2], go[2];
    char byte = 'x';
    uint64_t last = 1;
    struct pb_publish_options o = options_for("a", 1), next = o;
    o.epoch = 1;
    next.job = "next";
    ck_assert_int_eq(pipe(stopped) | pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        struct pb_err err = {0};
        machine = "two";
        locks_are_local = kill_after = true;
        stop_fd = stopped[1];
        go_fd = go[0];
        kill_at = "scene";
        struct pb_publish *p = begin_rows(&o, "1");
        _exit(commit_rows(p, &err) == 0 && pb_publish_warning(p)[0] == '\0' ? 0 : 1);
    }
    ck_assert_int_eq(read(stopped[0], &byte, 1), 1); /* visible, without its rows */
    locks_are_local = true;
    ck_assert_int_eq(pb_publish_sweep_runs(root, is_over, &last), 1);
    assert_file("all.csv", HEADER "a,1\n");
    publish_rows(&next, "2");
    ck_assert_int_eq(write(go[1], &byte, 1), 1);
    wait_for(child, false);
    assert_file("all.csv", HEADER "a,2\n");
    ck_assert_int_eq(hidden(), 0);
    for (int i = 0; i < 2; i++) {
        close(stopped[i]);
        close(go[i]);
    }
}
END_TEST

/* --- series ----------------------------------------------------------------------------------*/

/* Asserts the content of a series of these bytes after the scene "a" added the row "a,9". */
static void assert_merged(const char *before, size_t n, const char *after, size_t n_after)
{
    size_t bytes;
    struct pb_publish_options o = options_for("a", 1);
    FILE *f = fopen(at("all.csv"), "wb");
    ck_assert(f != NULL && fwrite(before, 1, n, f) == n && fclose(f) == 0);
    publish_rows(&o, "9");
    char *text = all_of("all.csv", &bytes);
    ck_assert_uint_eq(bytes, n_after);
    ck_assert_mem_eq(text, after, bytes);
    free(text);
}

#define MERGED(before, after) assert_merged(before, sizeof(before) - 1, after, sizeof(after) - 1)

START_TEST(rows_of_other_scenes_stay_byte_by_byte)
{
    MERGED(HEADER "q,\0\nb,1\na,1\nc,2\n", HEADER "q,\0\nb,1\nc,2\na,9\n");
    MERGED(HEADER "\0\na,1\n", HEADER "\0\na,9\n");
    MERGED(HEADER "b,\"1\na,2\"\na,\"1\nb\"\nc,3\n", HEADER "b,\"1\na,2\"\nc,3\na,9\n");
    MERGED(HEADER "b,\"1\nc,3\na,1\nd,4\n", HEADER "b,\"1\nc,3\nd,4\na,9\n"); /* left open */
    MERGED(HEADER "\"a\nb,1\na,1\n", HEADER "\"a\nb,1\na,9\n");
    MERGED(HEADER "b,1,\n\n,\nab,2\na b,3\n", HEADER "b,1,\n\n,\nab,2\na b,3\na,9\n");
    MERGED(HEADER "b,\"x\"\"\na,1\"\"\"\na,2\n", HEADER "b,\"x\"\"\na,1\"\"\"\na,9\n");
}
END_TEST

static unsigned mode_of(const char *name)
{
    struct stat st;
    ck_assert_int_eq(stat(at(name), &st), 0);
    return st.st_mode & 07777;
}

START_TEST(shared_files_have_the_products_mode)
{
    struct pb_publish_options o = options_for("a", 1);
    mode_t was = umask(0077);
    publish_rows(&o, "1");
    ck_assert_uint_eq(mode_of("all.csv"), 0600);
    ck_assert_uint_eq(mode_of("collection.json"), 0600);
    ck_assert_int_eq(chmod(at("all.csv"), 0640), 0);
    publish_rows(&o, "2"); /* without a mode the file's own stays */
    ck_assert_uint_eq(mode_of("all.csv"), 0640);
    o.mode = 0664;
    publish_rows(&o, "3");
    ck_assert_uint_eq(mode_of("all.csv"), 0664);
    ck_assert_int_eq(unlink(at("all.csv")) | unlink(at("collection.json")), 0);
    o.mode = 0644;
    publish_rows(&o, "4");
    ck_assert_uint_eq(mode_of("all.csv"), 0644);
    ck_assert_uint_eq(mode_of("collection.json"), 0644);
    (void)umask(was);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publish_rows");
    TCase *tc = tcase_create("publish_rows");
    tcase_add_checked_fixture(tc, reset, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_permit_is_requested_before_rows_are_visible);
    tcase_add_test(tc, lock_of_a_dead_process_is_broken_at_once);
    tcase_add_test(tc, sweep_removes_the_lock_of_a_dead_process);
    tcase_add_test(tc, lock_that_is_held_makes_others_wait);
    tcase_add_test(tc, holder_of_a_broken_lock_changes_nothing);
    tcase_add_test(tc, test_lock_of_a_fenced_run_is_broken_at_once);
    tcase_add_test(tc, lock_of_another_machine_is_broken_when_stale);
    tcase_add_test(tc, rows_and_extent_follow_the_products);
    tcase_add_test(tc, extent_holds_all_items_of_a_publication);
    tcase_add_test(tc, failed_publication_leaves_shared_files);
    tcase_add_test(tc, series_of_others_fails_the_publication_in_time);
    tcase_add_test(tc, killed_publication_has_rows_or_no_products);
    tcase_add_test(tc, rows_of_a_killed_run_wait_for_the_lock);
    tcase_add_test(tc, recovery_leaves_rows_of_later_products);
    tcase_add_test(tc, machines_without_common_locks_lose_nothing);
    tcase_add_test(tc, run_of_another_machine_is_not_swept);
    tcase_add_test(tc, test_fence_adds_rows_of_a_machine_that_is_gone);
    tcase_add_test(tc, test_run_of_another_machine_is_swept_when_over);
    tcase_add_test(tc, test_late_run_leaves_rows_of_its_successor);
    tcase_add_test(tc, rows_of_other_scenes_stay_byte_by_byte);
    tcase_add_test(tc, shared_files_have_the_products_mode);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
