/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Publishing on disks that fail, on file systems without the flags of renameat2, and in processes
 * that are killed at the worst moment. fsync and the renames are this program's own. */
#include "find_job.h"
#include "publish_fixture.h"
#include "run_suite.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char log_text[8192]; /* "fsync NAME;" and "rename FROM TO;", in order */
static bool logging, no_flags, fail_renames_back, read_only;
static int fail_sync_after_rename; /* errno of the first fsync of a directory after a rename */
static int renames, kill_after;    /* SIGKILL after this many renames; 0 = never */
static int stop_before;            /* SIGSTOP before this rename; 0 = never */
static int fail_fence;             /* errno of renames by a fence */
static int fail_look;              /* errno of a look for an entry */
static int fail_read;              /* errno at the end of a directory */

static void note(const char *what, const char *a, const char *b)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* several sync at a time */
    (void)pthread_mutex_lock(&lock);
    size_t n = strlen(log_text);
    if (logging)
        snprintf(log_text + n, sizeof log_text - n, "%s %s%s%s;", what, a, b[0] ? " " : "", b);
    (void)pthread_mutex_unlock(&lock);
}

static const char *base_of(int fd)
{
    static _Thread_local char path[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int fsync(int fd);
int fsync(int fd)
{
    struct stat st;
    note("fsync", base_of(fd), "");
    if (fail_sync_after_rename != 0 && renames > 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = fail_sync_after_rename;
        fail_sync_after_rename = 0;
        read_only = fail_renames_back;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static void stop_if_due(const char *from)
{
    if (strncmp(from, PB_MANIFEST_FILE, strlen(PB_MANIFEST_FILE)) != 0 &&
        renames + 1 == stop_before) {
        stop_before = 0;
        (void)raise(SIGSTOP);
    }
}

static int renamed(int rc, const char *from, const char *to)
{
    if (rc != 0 || strncmp(from, PB_MANIFEST_FILE, strlen(PB_MANIFEST_FILE)) == 0)
        return rc; /* a manifest gets its name in a directory that is not visible yet */
    note("rename", from, to);
    if (++renames == kill_after)
        (void)raise(SIGKILL);
    return 0;
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    stop_if_due(from);
    if (fail_look != 0 && strcmp(from, "p") == 0 && !(no_flags && flags != 0)) {
        errno = ENOENT;
        return -1;
    }
    if (read_only || (no_flags && flags != 0)) {
        errno = read_only ? EROFS : EINVAL;
        return -1;
    }
    return renamed((int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags), from, to);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    stop_if_due(from);
    if (fail_fence != 0 && strstr(to, "fenced") != NULL) {
        errno = fail_fence;
        return -1;
    }
    return renamed((int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0), from, to);
}

int faccessat(int fd, const char *name, int mode, int flags)
{
    struct stat st;
    errno = fail_look;
    return fail_look != 0 || mode != F_OK ? -1 : fstatat(fd, name, &st, flags);
}

struct dirent *readdir(DIR *dir)
{
    struct dirent *(*real)(DIR *);
    *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    struct dirent *e = real(dir);
    if (e == NULL && fail_read != 0)
        errno = fail_read;
    return e;
}

static void reset(void)
{
    setup();
    logging = no_flags = fail_renames_back = read_only = false;
    fail_sync_after_rename = renames = kill_after = stop_before = fail_fence = fail_look = 0;
    log_text[0] = '\0';
}

START_TEST(files_are_synced_before_rename_and_folder_after)
{
    struct pb_publish_options o = options_for("scene", 1);
    char temp[PATH_MAX], expected[1024], path[PATH_MAX];
    struct pb_err err = {0};
    o.epoch = 1;
    struct pb_publish *p = begin(&o);
    snprintf(temp, sizeof temp, "%s", pb_publish_directory(p) + strlen(root) + 1);
    *strchr(temp, '/') = '\0';
    ck_assert_ptr_nonnull(strstr(temp, ".scene.job.1."));
    logging = true;
    ck_assert_int_eq(pb_publish_identify(p, &err), 0);
    ck_assert_str_eq(log_text, "fsync .pushbroom.json;"); /* the temporary directory's */
    log_text[0] = '\0';
    ck_assert_int_eq(commit(p, "x", &err, path), 0);
    logging = false;
    snprintf(expected, sizeof expected, "rename scene scene;fsync %.60s;", strrchr(root, '/') + 1);
    char *rename = strstr(log_text, "rename");
    ck_assert_ptr_nonnull(rename);
    ck_assert_str_eq(rename, expected);
    *rename = '\0'; /* before it, in any order */
    ck_assert_msg(strstr(log_text, "fsync scene;") != NULL, "%s", log_text);
    ck_assert_msg(strstr(log_text, "fsync p;") != NULL, "%s", log_text);
    ck_assert_msg(strstr(log_text, "fsync .pushbroom.json;") != NULL, "%s", log_text);
    pb_publish_close(p);
    log_text[0] = '\0';
    logging = true;
    o.epoch = 2;
    publish(&o, "y");
    const char *exchange = strstr(log_text, "rename p p;fsync scene;");
    ck_assert_msg(exchange != NULL, "%s", log_text);
    ck_assert_ptr_eq(strstr(exchange + 1, "rename"), NULL);
}
END_TEST

/* Fails its sync; the products of the scene are still `expected` afterwards, "" = absent. */
static void fail_to_sync(const struct pb_publish_options *o, const char *file, const char *expected)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish *p = begin(o);
    renames = 0;
    fail_sync_after_rename = EIO;
    ck_assert_int_eq(commit(p, "new", &err, path), -EIO);
    ck_assert_int_eq(fail_sync_after_rename, 0); /* it was requested */
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    ck_assert_str_eq(get(file), expected);
    pb_publish_close(p);
    ck_assert_str_eq(get(file), expected);
    ck_assert_int_eq(hidden(), 0);
}

START_TEST(a_rename_that_cannot_be_synced_is_taken_back)
{
    for (int flags = 0; flags < 2; flags++) {
        const char *scene = flags ? "with" : "without";
        char p_file[64], q_file[64];
        snprintf(p_file, sizeof p_file, "%s/p/a.txt", scene);
        snprintf(q_file, sizeof q_file, "%s/q/a.txt", scene);
        no_flags = flags == 0;
        struct pb_publish_options o = options_for(scene, 1), q = o;
        q.pipeline = "q";
        fail_to_sync(&o, p_file, ""); /* the whole scene directory */
        char directory[PATH_MAX];
        ck_assert_int_eq(find_job(root, scene, "p", "job", directory, NULL), -ENOENT);
        publish(&o, "old");
        fail_to_sync(&o, p_file, "old"); /* an exchange */
        fail_to_sync(&q, q_file, "");    /* a new pipeline in it */
        ck_assert_str_eq(get(p_file), "old");
        ck_assert_int_eq(find_job(root, scene, "p", "job", directory, NULL), 0);
    }
}
END_TEST

START_TEST(failure_to_undo_is_a_success_with_a_warning)
{
    struct pb_publish_options o = options_for("scene", 1);
    char path[PATH_MAX];
    struct pb_err err = {0};
    for (int round = 0; round < 2; round++) { /* a new scene, and an exchange */
        struct pb_publish *p = begin(&o);
        renames = 0;
        fail_renames_back = true;
        fail_sync_after_rename = EIO;
        ck_assert_msg(commit(p, round ? "two" : "one", &err, path) == 0, "%s", err.msg);
        ck_assert_msg(strstr(pb_publish_warning(p), "could not be synced") != NULL, "%s",
                      pb_publish_warning(p));
        ck_assert_str_eq(get("scene/p/a.txt"), round ? "two" : "one");
        pb_publish_close(p);
        ck_assert_int_eq(find_job(root, "scene", "p", "job", path, NULL), 0);
        read_only = fail_renames_back = false;
    }
    (void)pb_publish_sweep(root);
    ck_assert_int_eq(hidden(), 0);
    ck_assert_str_eq(get("scene/p/a.txt"), "two");
}
END_TEST

START_TEST(without_flags_everything_works_as_with_them)
{
    struct pb_publish_options o = options_for("scene", 1), other = options_for("scene", 2), q = o;
    no_flags = true;
    q.pipeline = "q";
    publish(&o, "one");
    publish(&o, "two");
    publish(&q, "q");
    refuse(&other, PB_E_OUTPUT_EXISTS, "another input");
    other.existing = PB_EXISTING_VERSION;
    publish(&other, "other");
    ck_assert_str_eq(get("scene/p/a.txt"), "two");
    ck_assert_str_eq(get("scene/q/a.txt"), "q");
    ck_assert_str_eq(get("scene~2/p/a.txt"), "other");
    ck_assert_int_eq(mkdir(at("mine"), 0755), 0);
    put(at("mine/keep"), "x");
    o = options_for("mine", 1);
    refuse(&o, PB_E_OUTPUT_EXISTS, "not made by pushbroom");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

/* Publishes "new" in a process that is killed after the n-th rename. */
static void publish_and_die(const struct pb_publish_options *o, int n)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        renames = 0;
        kill_after = n;
        publish(o, "new");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(crash_between_renames_restores_older_products)
{
    char directory[PATH_MAX];
    struct pb_publish_options o = options_for("scene", 1), newer = o;
    newer.job = "newer";
    no_flags = true;
    publish(&o, "old");
    publish_and_die(&newer, 1); /* the older ones are aside, the new ones not there yet */
    ck_assert(!there("scene/p"));
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert_str_eq(get("scene/p/a.txt"), "old");
    ck_assert_int_eq(find_job(root, "scene", "p", "job", directory, NULL), 0);
    ck_assert_int_eq(find_job(root, "scene", "p", "newer", directory, NULL), -ENOENT);
    ck_assert_int_eq(hidden(), 0);
    publish_and_die(&newer, 2); /* the new ones are there, the older ones not removed yet */
    ck_assert_str_eq(get("scene/p/a.txt"), "new");
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert_str_eq(get("scene/p/a.txt"), "new");
    ck_assert_int_eq(find_job(root, "scene", "p", "newer", directory, NULL), 0);
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(a_crash_after_an_exchange_leaves_the_new_products)
{
    struct pb_publish_options o = options_for("scene", 1);
    publish(&o, "old");
    publish_and_die(&o, 1);
    ck_assert_str_eq(get("scene/p/a.txt"), "new");
    ck_assert_int_eq(hidden(), 1);
    struct pb_publish_options other = options_for("other", 1);
    publish(&other, "x"); /* a next run sweeps */
    ck_assert_int_eq(hidden(), 0);
    ck_assert_str_eq(get("scene/p/a.txt"), "new");
}
END_TEST

START_TEST(fenced_run_without_flags_sets_nothing_aside)
{
    struct pb_publish_options o = options_for("scene", 1);
    char path[PATH_MAX];
    struct pb_err err = {0};
    no_flags = true;
    publish(&o, "old");
    o.epoch = 1;
    struct pb_publish *late = begin(&o);
    write_product(late, "late");
    o.epoch = 2;
    struct pb_publish *next = begin(&o);
    struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", 4, "", 0};
    ck_assert_int_lt(pb_publish_commit(late, &file, 1, &err, path), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "a later run of the job"));
    ck_assert_str_eq(get("scene/p/a.txt"), "old");
    ck_assert_int_eq(commit(next, "next", &err, path), 0);
    pb_publish_close(late);
    pb_publish_close(next);
    ck_assert_str_eq(get("scene/p/a.txt"), "next");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

/* Publishes "late" in a process that stops before its n-th rename. Returns its id. */
static pid_t publish_and_stop(const struct pb_publish_options *o, int n)
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char path[PATH_MAX];
        struct pb_err err = {0};
        struct pb_publish *p = begin(o);
        renames = 0;
        stop_before = n;
        const int rc = commit(p, "late", &err, path);
        pb_publish_close(p);
        _exit(rc == 0 ? 1 : strstr(err.msg, "a later run of the job") != NULL ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
    ck_assert(WIFSTOPPED(status));
    return child;
}

static ino_t inode_of(const char *name)
{
    struct stat st;
    ck_assert_int_eq(stat(at(name), &st), 0);
    return st.st_ino;
}

START_TEST(test_stopped_run_replaces_nothing_later)
{
    for (int i = 0; i < 4; i++) { /* with and without flags; a free place, and an exchange */
        char scene[16], file[32];
        int status;
        struct pb_publish_options o = options_for(scene, 1);
        snprintf(scene, sizeof scene, "s%d", i);
        snprintf(file, sizeof file, "%s/p/a.txt", scene);
        no_flags = i % 2 == 1;
        if (i >= 2)
            publish(&o, "old");
        o.epoch = 1;
        const pid_t late = publish_and_stop(&o, 1);
        ck_assert_int_eq(pb_publish_fence(root, o.job, 1), 0);
        o.epoch = 2;
        publish(&o, "next");
        const ino_t made = inode_of(file);
        ck_assert_int_eq(kill(late, SIGCONT), 0);
        ck_assert_int_eq(waitpid(late, &status, 0), late);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
        ck_assert_str_eq(get(file), "next");
        ck_assert_uint_eq(inode_of(file), made);
        ck_assert_int_eq(hidden(), 0);
    }
}
END_TEST

START_TEST(test_stopped_run_of_an_ended_job_is_refused)
{
    char directory[PATH_MAX];
    int status;
    struct pb_publish_options o = options_for("scene", 1);
    o.epoch = 1;
    const pid_t late = publish_and_stop(&o, 1);
    ck_assert_int_eq(pb_publish_fence(root, o.job, 1), 0);
    ck_assert_int_eq(find_job(root, "scene", "p", o.job, directory, NULL), -ENOENT);
    ck_assert_int_eq(kill(late, SIGCONT), 0);
    ck_assert_int_eq(waitpid(late, &status, 0), late);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_int_eq(find_job(root, "scene", "p", o.job, directory, NULL), -ENOENT);
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(test_run_waits_until_earlier_ones_are_fenced)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish_options o = options_for("scene", 1);
    o.epoch = 1;
    struct pb_publish *late = begin(&o);
    struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", 4, "", 0};
    write_product(late, "late");
    fail_fence = EIO;
    ck_assert_int_eq(pb_publish_fence(root, o.job, 1), -EIO);
    o.epoch = 2;
    refuse(&o, PB_E_OUTPUT_WRITE, "cannot keep earlier runs of the job from publishing");
    fail_fence = 0;
    publish(&o, "next");
    ck_assert_int_lt(pb_publish_commit(late, &file, 1, &err, path), 0);
    pb_publish_close(late);
    ck_assert_str_eq(get("scene/p/a.txt"), "next");
}
END_TEST

START_TEST(test_list_that_ends_early_is_no_fence)
{
    struct pb_publish_options o = options_for("scene", 1);
    o.epoch = 1;
    struct pb_publish *late = begin(&o);
    fail_read = EIO;
    ck_assert_int_eq(pb_publish_fence(root, o.job, 1), -EIO);
    o.epoch = 2;
    refuse(&o, PB_E_OUTPUT_WRITE, "cannot keep earlier runs of the job from publishing");
    fail_read = 0;
    ck_assert_int_eq(pb_publish_fence(root, o.job, 1), 0);
    pb_publish_close(late);
}
END_TEST

START_TEST(test_failed_look_is_not_taken_for_a_later_run)
{
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        struct pb_err err = {0};
        struct pb_publish_options o = options_for("scene", 1);
        no_flags = i == 1;
        publish(&o, "old");
        o.epoch = 1;
        struct pb_publish *p = begin(&o);
        write_product(p, "late");
        fail_look = EIO;
        ck_assert_int_lt(commit(p, "late", &err, path), 0);
        ck_assert_msg(strstr(err.msg, "a later run") == NULL, "%s", err.msg);
        ck_assert_ptr_nonnull(strstr(err.msg, strerror(EIO)));
        fail_look = 0;
        pb_publish_close(p);
        ck_assert_str_eq(get("scene/p/a.txt"), "old");
    }
}
END_TEST

START_TEST(set_aside_products_wait_for_a_foreign_directory)
{
    struct pb_publish_options o = options_for("scene", 1);
    no_flags = true;
    publish(&o, "old");
    publish_and_die(&o, 1);
    ck_assert_int_eq(mkdir(at("scene/p"), 0755), 0); /* another program was faster than the sweep */
    put(at("scene/p/keep"), "mine");
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert_str_eq(get("scene/p/keep"), "mine");
    ck_assert(!there("scene/p/a.txt"));
    ck_assert_int_eq(rename(at("scene/p"), at("elsewhere")), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert_str_eq(get("scene/p/a.txt"), "old");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publish_faults");
    TCase *tc = tcase_create("publish_faults");
    tcase_add_checked_fixture(tc, reset, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, files_are_synced_before_rename_and_folder_after);
    tcase_add_test(tc, a_rename_that_cannot_be_synced_is_taken_back);
    tcase_add_test(tc, failure_to_undo_is_a_success_with_a_warning);
    tcase_add_test(tc, without_flags_everything_works_as_with_them);
    tcase_add_test(tc, crash_between_renames_restores_older_products);
    tcase_add_test(tc, a_crash_after_an_exchange_leaves_the_new_products);
    tcase_add_test(tc, fenced_run_without_flags_sets_nothing_aside);
    tcase_add_test(tc, test_stopped_run_replaces_nothing_later);
    tcase_add_test(tc, test_stopped_run_of_an_ended_job_is_refused);
    tcase_add_test(tc, test_run_waits_until_earlier_ones_are_fenced);
    tcase_add_test(tc, test_list_that_ends_early_is_no_fence);
    tcase_add_test(tc, test_failed_look_is_not_taken_for_a_later_run);
    tcase_add_test(tc, set_aside_products_wait_for_a_foreign_directory);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
