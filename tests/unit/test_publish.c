/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "find_job.h"
#include "pipeline/publish/holder.h"
#include "publish_fixture.h"
#include "run_suite.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

START_TEST(shows_nothing_before_commit_and_everything_after)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish_options o = options_for("scene", 1);
    struct pb_publish *p = begin(&o);
    write_product(p, "new");
    ck_assert(!there("scene"));
    ck_assert_int_eq(commit(p, "new", &err, path), 0);
    ck_assert_str_eq(get("scene/p/a.txt"), "new");
    ck_assert_str_eq(path, at("scene/p"));
    pb_publish_close(p);
    ck_assert_str_eq(get("scene/p/a.txt"), "new");
    ck_assert(there("scene/p/.pushbroom.json") && there("scene/.pushbroom.json"));
    ck_assert_int_eq(hidden(), 0);
    ck_assert_int_eq(find_job(root, "scene", "p", "job", path, NULL), 0);
}
END_TEST

START_TEST(same_input_replaces_all_its_older_products)
{
    struct pb_publish_options o = options_for("scene", 1);
    publish(&o, "one");
    struct stat before, after;
    ck_assert_int_eq(stat(at("scene/p"), &before), 0);
    publish(&o, "two");
    ck_assert_int_eq(stat(at("scene/p"), &after), 0);
    ck_assert_uint_ne(before.st_ino, after.st_ino);
    ck_assert_str_eq(get("scene/p/a.txt"), "two");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(pipelines_of_one_input_share_its_directory)
{
    struct pb_publish_options p = options_for("scene", 1), q = p;
    q.pipeline = "q";
    publish(&p, "of p");
    publish(&q, "of q");
    ck_assert_str_eq(get("scene/p/a.txt"), "of p");
    ck_assert_str_eq(get("scene/q/a.txt"), "of q");
    /* Both begin before either is there. */
    struct pb_publish_options r = options_for("other", 2), s = r;
    struct pb_err err = {0};
    char path[PATH_MAX];
    s.pipeline = "q";
    s.job = "other";
    struct pb_publish *a = begin(&r), *b = begin(&s);
    ck_assert_int_eq(commit(a, "a", &err, path), 0);
    ck_assert_msg(commit(b, "b", &err, path) == 0, "%s", err.msg);
    pb_publish_close(a);
    pb_publish_close(b);
    ck_assert_str_eq(get("other/p/a.txt"), "a");
    ck_assert_str_eq(get("other/q/a.txt"), "b");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(other_input_of_the_name_is_refused_or_placed_apart)
{
    struct pb_publish_options first = options_for("scene", 1), second = options_for("scene", 2);
    struct pb_publish_options third = options_for("scene", 3);
    publish(&first, "first");
    refuse(&second, PB_E_OUTPUT_EXISTS, "another input");
    second.existing = third.existing = PB_EXISTING_VERSION;
    publish(&second, "second");
    publish(&third, "third");
    publish(&second, "again"); /* replaces its own */
    ck_assert_str_eq(get("scene/p/a.txt"), "first");
    ck_assert_str_eq(get("scene~2/p/a.txt"), "again");
    ck_assert_str_eq(get("scene~3/p/a.txt"), "third");
    ck_assert(!there("scene~4"));
    /* Also when a place before its own was given up. */
    ck_assert_int_eq(rename(at("scene~2"), at("elsewhere")), 0);
    publish(&third, "fourth");
    ck_assert_str_eq(get("scene~3/p/a.txt"), "fourth");
    ck_assert(!there("scene~2"));
    second.pipeline = "q"; /* the scene belongs to its input, whatever the pipeline */
    second.existing = PB_EXISTING_REFUSE;
    refuse(&second, PB_E_OUTPUT_EXISTS, "another input");
}
END_TEST

START_TEST(what_pushbroom_did_not_make_is_never_replaced)
{
    struct pb_publish_options o = options_for("scene", 1);
    ck_assert_int_eq(mkdir(at("scene"), 0755), 0);
    put(at("scene/mine"), "x");
    refuse(&o, PB_E_OUTPUT_EXISTS, "not made by pushbroom");
    o.existing = PB_EXISTING_VERSION;
    publish(&o, "x");
    ck_assert_str_eq(get("scene/mine"), "x");
    ck_assert(there("scene~2/p/a.txt"));
    o = options_for("file", 1);
    put(at("file"), "x");
    refuse(&o, PB_E_OUTPUT_EXISTS, "not a directory");
    o = options_for("link", 1);
    ck_assert_int_eq(symlink("scene~2", at("link")), 0);
    refuse(&o, PB_E_OUTPUT_EXISTS, "not a directory");
    o = options_for("broken", 1);
    ck_assert_int_eq(symlink("none", at("broken")), 0);
    refuse(&o, PB_E_OUTPUT_EXISTS, "not a directory");
    o = options_for("scene~2", 1); /* its own products are there, but as "scene" */
    publish(&o, "y");
    ck_assert_str_eq(get("scene~2/p/a.txt"), "y");
    ck_assert_str_eq(get("file"), "x");
}
END_TEST

START_TEST(within_a_scene_nothing_of_others_is_replaced)
{
    struct pb_publish_options o = options_for("scene", 1);
    publish(&o, "x");
    put(at("scene/p/notes"), "mine");
    refuse(&o, PB_E_OUTPUT_EXISTS, "notes");
    ck_assert_int_eq(unlink(at("scene/p/notes")), 0);
    ck_assert_int_eq(rename(at("scene/p"), at("scene/q")), 0);
    o.pipeline = "q"; /* products of p, whatever the directory is called */
    refuse(&o, PB_E_OUTPUT_EXISTS, "products of pipeline");
    o.pipeline = "r";
    ck_assert_int_eq(mkdir(at("scene/r"), 0755), 0);
    refuse(&o, PB_E_OUTPUT_EXISTS, "not made by pushbroom");
    o.pipeline = "s";
    put(at("scene/s"), "x");
    refuse(&o, PB_E_OUTPUT_EXISTS, "not a directory");
}
END_TEST

START_TEST(viewer_file_among_products_is_kept_and_explained)
{
    struct pb_publish_options o = options_for("scene", 1);
    struct pb_err err = {0};
    char path[PATH_MAX];
    o.existing = PB_EXISTING_VERSION;
    publish(&o, "old");
    put(at("scene/p/a.txt.aux.xml"), "statistics");
    for (int i = 0; i < 2; i++) { /* the second replaces the first in its place */
        struct pb_publish *p = begin(&o);
        ck_assert_msg(commit(p, "new", &err, path) == 0, "%s", err.msg);
        ck_assert_str_eq(pb_publish_place(p), "scene~2");
        ck_assert_msg(strstr(pb_publish_warning(p), "are in scene~2") != NULL &&
                          strstr(pb_publish_warning(p), "'a.txt.aux.xml'") != NULL,
                      "%s", pb_publish_warning(p));
        pb_publish_close(p);
    }
    ck_assert_str_eq(get("scene/p/a.txt"), "old");
    ck_assert_str_eq(get("scene/p/a.txt.aux.xml"), "statistics");
    ck_assert_str_eq(get("scene~2/p/a.txt"), "new");
    ck_assert(!there("scene~3"));
    ck_assert_int_eq(unlink(at("scene/p/a.txt.aux.xml")), 0);
    publish(&o, "newer"); /* without a warning */
    ck_assert_str_eq(get("scene/p/a.txt"), "newer");
}
END_TEST

START_TEST(directory_of_the_input_is_never_replaced)
{
    struct pb_publish_options o = options_for("scene", 1);
    char input[PATH_MAX + 16];
    publish(&o, "x");
    ck_assert_int_eq(symlink("scene/p", at("way")), 0);
    snprintf(input, sizeof input, "%s/way/a.txt", root);
    o.input_path = input;
    refuse(&o, PB_E_OUTPUT_EXISTS, "the input itself");
    snprintf(input, sizeof input, "%s/in.tif", root);
    put(input, "x");
    publish(&o, "y");
}
END_TEST

START_TEST(delivered_folder_is_never_its_products_directory)
{
    struct pb_publish_options o = options_for("scene", 1);
    char input[PATH_MAX + 16];
    ck_assert_int_eq(mkdir(at("scene"), 0777), 0);
    ck_assert_int_eq(symlink("scene", at("way")), 0);
    snprintf(input, sizeof input, "%s/way", root);
    o.input_path = input;
    refuse(&o, PB_E_OUTPUT_EXISTS, "scene is the input itself");
    o.existing = PB_EXISTING_REPLACE;
    refuse(&o, PB_E_OUTPUT_EXISTS, "scene is the input itself");
}
END_TEST

START_TEST(a_place_taken_meanwhile_is_left_to_who_took_it)
{
    struct pb_publish_options first = options_for("scene", 1), second = options_for("scene", 2);
    struct pb_err err = {0};
    char path[PATH_MAX];
    first.existing = second.existing = PB_EXISTING_VERSION;
    second.job = "second";
    struct pb_publish *a = begin(&first), *b = begin(&second);
    ck_assert_str_eq(pb_publish_place(b), "scene");
    ck_assert_int_eq(commit(a, "a", &err, path), 0);
    ck_assert_int_eq(commit(b, "b", &err, path), PB_PUBLISH_MOVED);
    ck_assert_str_eq(pb_publish_place(b), "scene~2");
    ck_assert(!there("scene~2"));
    ck_assert_int_eq(commit(b, "b", &err, path), 0);
    pb_publish_close(a);
    pb_publish_close(b);
    ck_assert_str_eq(get("scene/p/a.txt"), "a");
    ck_assert_str_eq(get("scene~2/p/a.txt"), "b");
    ck_assert_int_eq(hidden(), 0);
    /* Without versions the later one fails and leaves nothing. */
    first = options_for("once", 1);
    second = options_for("once", 2);
    second.job = "second";
    a = begin(&first);
    b = begin(&second);
    ck_assert_int_eq(commit(a, "a", &err, path), 0);
    ck_assert_int_eq(commit(b, "b", &err, path), -EEXIST);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_EXISTS);
    pb_publish_close(a);
    pb_publish_close(b);
    ck_assert_str_eq(get("once/p/a.txt"), "a");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

enum { PUBLISHERS = 8, ROUNDS = 6 };

static void *publish_own(void *arg)
{
    int n = *(int *)arg;
    char job[16];
    struct pb_publish_options o = options_for("scene", n);
    snprintf(job, sizeof job, "job%d", n);
    o.job = job;
    o.existing = PB_EXISTING_VERSION;
    for (int i = 0; i < ROUNDS; i++) {
        char text[16], path[PATH_MAX];
        struct pb_err err = {0};
        int rc;
        snprintf(text, sizeof text, "%d", n);
        struct pb_publish *p = begin(&o);
        while ((rc = commit(p, text, &err, path)) == PB_PUBLISH_MOVED)
            continue;
        ck_assert_msg(rc == 0, "%s", err.msg);
        pb_publish_close(p);
    }
    return NULL;
}

START_TEST(simultaneous_inputs_of_one_name_all_get_a_place)
{
    pthread_t thread[PUBLISHERS];
    int number[PUBLISHERS];
    bool seen[PUBLISHERS] = {false};
    for (int i = 0; i < PUBLISHERS; i++) {
        number[i] = i;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, publish_own, &number[i]), 0);
    }
    for (int i = 0; i < PUBLISHERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i <= PUBLISHERS; i++) {
        char name[64] = "scene/p/a.txt";
        if (i > 1)
            snprintf(name, sizeof name, "scene~%d/p/a.txt", i);
        int n = atoi(get(name));
        ck_assert_msg(n >= 0 && n < PUBLISHERS && get(name)[0] != '\0' && !seen[n], "%s", name);
        seen[n] = true;
    }
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(removes_what_was_not_committed)
{
    struct pb_publish_options o = options_for("scene", 1);
    struct pb_publish *p = begin(&o);
    write_product(p, "x");
    ck_assert_int_eq(hidden(), 1);
    pb_publish_close(p);
    ck_assert_int_eq(hidden(), 0);
    ck_assert(!there("scene"));
}
END_TEST

/* The inode of the only hidden entry of root, whose name is copied to out. */
static ino_t only_hidden(char out[256])
{
    struct stat st = {.st_ino = 0};
    DIR *dir = opendir(root);
    int n = 0;
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] == '.' && e->d_name[strspn(e->d_name, ".")] != '\0') {
            n++;
            snprintf(out, 256, "%s", e->d_name);
            ck_assert_int_eq(lstat(at(e->d_name), &st), 0);
        }
    closedir(dir);
    ck_assert_int_eq(n, 1);
    return st.st_ino;
}

/* Publishes and leaves the temporary directory. */
static void publish_and_leave(const char *scene)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish_options o = options_for(scene, 1);
    struct pb_publish *p = begin(&o);
    pb_publish_leave_temp(p);
    ck_assert_msg(commit(p, scene, &err, path) == 0, "%s", err.msg);
    ck_assert_str_eq(pb_publish_warning(p), "");
    pb_publish_close(p);
}

START_TEST(next_publication_takes_the_left_directory)
{
    char first[256], second[256];
    publish_and_leave("one");
    const ino_t left = only_hidden(first);
    ck_assert(strncmp(first, ".one.job.", 9) == 0);
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    publish_and_leave("two");
    ck_assert_uint_eq(only_hidden(second), left);
    ck_assert(strncmp(second, ".two.job.", 9) == 0);
    publish_and_leave("one"); /* leaves older products in it, which are removed */
    ck_assert_uint_eq(only_hidden(second), left);
    struct pb_publish_options o = options_for("three", 1);
    struct pb_publish *p = begin(&o);
    ck_assert_uint_eq(only_hidden(second), left);
    pb_publish_close(p);
    ck_assert_int_eq(hidden(), 0);
    ck_assert_str_eq(get("one/p/a.txt"), "one");
    ck_assert_str_eq(get("two/p/a.txt"), "two");
    ck_assert(!there("three"));
}
END_TEST

START_TEST(left_directory_is_removed_or_swept)
{
    char name[256], was[PATH_MAX];
    publish_and_leave("one");
    pb_publish_drop_temp();
    ck_assert_int_eq(hidden(), 0);
    pb_publish_drop_temp();
    publish_and_leave("two"); /* the next one publishes elsewhere */
    snprintf(was, sizeof was, "%s", root);
    setup();
    publish_and_leave("three");
    pb_publish_drop_temp();
    ck_assert_int_eq(hidden(), 0);
    teardown();
    snprintf(root, sizeof root, "%s", was);
    ck_assert_int_eq(hidden(), 0);
    publish_and_leave("four"); /* another process removed it meanwhile */
    (void)only_hidden(name);
    ck_assert_int_eq(unlinkat(AT_FDCWD, at(strcat(strcpy(was, name), "/.lock")), 0), 0);
    ck_assert_int_eq(rmdir(at(name)), 0);
    publish_and_leave("five");
    pb_publish_drop_temp();
    pid_t pid = fork();
    if (pid == 0) { /* ends as if it was killed */
        publish_and_leave("six");
        _exit(0);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(hidden(), 1);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

/* The name of a temporary directory of a process of this machine that has ended. */
static const char *dead(const char *scene, unsigned n)
{
    static char name[4][256];
    static unsigned next;
    struct pb_holder holder;
    char text[PB_HOLDER_BYTES], *out = name[next++ % 4];
    pb_holder_make(&holder);
    holder.pid = 4194305; /* over the kernel's highest */
    holder.n = n;
    pb_holder_print(&holder, text);
    snprintf(out, sizeof name[0], ".%s.job.1.%s.tmp", scene, text);
    return out;
}

/* The same, with a name below it. */
static const char *in_dead(const char *scene, unsigned n, const char *file)
{
    static char path[4][512];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", dead(scene, n), file);
    return out;
}

/* A temporary directory as a killed process leaves it. */
static void leave_behind(const char *name)
{
    char path[PATH_MAX];
    struct pb_publish_options o = options_for("gone", 1);
    o.job = NULL;
    struct pb_publish *p = begin(&o);
    write_product(p, "half");
    snprintf(path, sizeof path, "%s", pb_publish_directory(p));
    for (int i = 0; i < 2; i++)
        *strrchr(path, '/') = '\0';
    ck_assert_int_eq(rename(path, at(name)), 0);
    pb_publish_close(p);
}

START_TEST(sweeps_leftovers_of_the_dead_and_spares_the_living)
{
    struct pb_publish_options o = options_for("alive", 1);
    struct pb_publish *p = begin(&o);
    leave_behind(dead("gone", 0));
    ck_assert_int_eq(mkdir(at("scene"), 0755), 0);
    ck_assert_int_eq(hidden(), 2);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert(!there(dead("gone", 0)) && there("scene"));
    ck_assert_int_eq(access(pb_publish_directory(p), F_OK), 0);
    pb_publish_close(p);
}
END_TEST

START_TEST(sweeps_only_what_carries_our_mark)
{
    static const char *const others[] = {
        ".mine.tmp", ".a.1-2", ".1-2.tmp",  ".a.b-1.tmp",   ".a.1-.tmp",         ".a.-1.tmp",
        "a.1-2.tmp", ".tmp",   ".a.12.tmp", ".a.1-2.x.tmp", ".a.1-2.tmp.old.tmp"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        leave_behind(others[i]);
    ck_assert_int_eq(mkdir(at(dead("user", 1)), 0755), 0); /* our kind of name, not our manifest */
    ck_assert_int_eq(mkdir(at(in_dead("user", 1, "scene")), 0755), 0);
    put(at(in_dead("user", 1, "scene/keep")), "x");
    ck_assert_int_eq(mkdir(at(dead("user", 2)), 0755), 0);
    ck_assert_int_eq(mkdir(at(in_dead("user", 2, ".pushbroom.json.new")), 0755), 0);
    leave_behind(dead("user", 3));
    put(at(in_dead("user", 3, "notes")), "mine");
    ck_assert_int_eq(mkdir(at("kept"), 0755), 0);
    put(at("kept/a.txt"), "x");
    ck_assert_int_eq(symlink("kept", at(dead("link", 1))), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert_str_eq(get(in_dead("user", 1, "scene/keep")), "x");
    ck_assert(there(in_dead("user", 2, ".pushbroom.json.new")) && there(dead("link", 1)));
    ck_assert_str_eq(get(in_dead("user", 3, "notes")), "mine");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(there(others[i]), "%s", others[i]);
    leave_behind(dead("a.b", 1));
    ck_assert_int_eq(symlink("../../../kept", at(in_dead("a.b", 1, "scene/p/link"))), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert(!there(dead("a.b", 1)));
    ck_assert_str_eq(get("kept/a.txt"), "x"); /* the target of the link */
}
END_TEST

START_TEST(sweep_leaves_other_machines_directories)
{
    char name[256];
    snprintf(name, sizeof name, "%s", dead("far", 1));
    char *node = strchr(strstr(name, ".job.1.") + 6, '.') + 1;
    node[0] = node[0] == '0' ? '1' : '0';
    leave_behind(name);
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert(there(name));
}
END_TEST

START_TEST(sweep_spares_processes_that_run_without_locks)
{
    /* State where locks are local to each mount of a network file system. */
    struct pb_holder holder;
    char name[256], text[PB_HOLDER_BYTES];
    int go[2];
    ck_assert_int_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)close(go[1]);
        _exit(read(go[0], name, 1) == 1);
    }
    pb_holder_make(&holder);
    holder.pid = child;
    ck_assert(pb_holder_start(child, &holder.start));
    pb_holder_print(&holder, text);
    snprintf(name, sizeof name, ".alive.run.0.%s.tmp", text);
    leave_behind(name);
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert(there(name));
    (void)close(go[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    (void)close(go[0]);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
}
END_TEST

START_TEST(sweeps_what_was_killed_before_its_first_manifest)
{
    ck_assert_int_eq(mkdir(at(dead("scene", 2)), 0755), 0);
    ck_assert_int_eq(mkdir(at(dead("scene", 3)), 0755), 0);
    ck_assert_int_eq(mkdir(at(in_dead("scene", 3, "scene")), 0755), 0);
    put(at(in_dead("scene", 3, "scene/.pushbroom.json.new")), "{\"mani");
    ck_assert_int_eq(mkdir(at(dead("held", 4)), 0755), 0); /* a run is just making it */
    int fd = open(at(dead("held", 4)), O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 2);
    ck_assert_int_eq(hidden(), 1);
    close(fd);
    put(at(in_dead("held", 4, ".lock")), "");
    fd = open(at(in_dead("held", 4, ".lock")), O_RDWR);
    ck_assert_int_eq(pb_holder_lock_file(fd), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    close(fd);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
}
END_TEST

START_TEST(sweeps_what_earlier_versions_left_after_a_day)
{
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 100000}, {.tv_sec = 1}};
    const struct timespec times[2] = {old[0], old[0]};
    static const char *const names[] = {".a.77-0.tmp", ".b.77-1.tmp"};
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        struct pb_publish_options o = options_for("gone", 1);
        struct pb_publish *p = begin(&o);
        snprintf(path, sizeof path, "%s", pb_publish_directory(p));
        *strrchr(path, '/') = '\0'; /* they had no directory around scene/ */
        ck_assert_int_eq(rename(path, at(names[i])), 0);
        pb_publish_close(p);
    }
    ck_assert_int_eq(utimensat(AT_FDCWD, at(names[0]), times, 0), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
    ck_assert(!there(names[0]) && there(names[1]));
}
END_TEST

START_TEST(sweep_keeps_foreign_files_in_replaced_products)
{
    /* State after a crash between the exchange and the removal of the older products. */
    struct pb_publish_options o = options_for("scene", 1);
    publish(&o, "old");
    leave_behind(dead("scene", 7));
    ck_assert_int_eq(unlink(at(in_dead("scene", 7, "scene/p/a.txt"))), 0);
    ck_assert_int_eq(rmdir(at(in_dead("scene", 7, "scene/p"))), 0);
    ck_assert_int_eq(rename(at("scene/p"), at(in_dead("scene", 7, "scene/p"))), 0);
    put(at(in_dead("scene", 7, "scene/p/notes")), "mine");
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 0);
    ck_assert_str_eq(get(in_dead("scene", 7, "scene/p/notes")), "mine");
    ck_assert(!there(in_dead("scene", 7, "scene/p/a.txt")));
    ck_assert_int_eq(unlink(at(in_dead("scene", 7, "scene/p/notes"))), 0);
    ck_assert_int_eq(pb_publish_sweep(root), 1);
}
END_TEST

START_TEST(changed_products_are_never_replaced)
{
    struct pb_publish_options o = options_for("scene", 1);
    struct pb_err err = {0};
    char path[PATH_MAX];
    struct stat was;
    publish(&o, "old");
    ck_assert_int_eq(stat(at("scene/p/a.txt"), &was), 0);
    put(at("scene/p/a.txt"), "own"); /* a file of the same size, and with the same time */
    const struct timespec times[2] = {was.st_atim, was.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, at("scene/p/a.txt"), times, 0), 0);
    refuse(&o, PB_E_OUTPUT_EXISTS, "'a.txt', which was changed since pushbroom made it");
    o.existing = PB_EXISTING_REPLACE;
    refuse(&o, PB_E_OUTPUT_EXISTS, "'a.txt', which was changed");
    struct pb_publish_options other = options_for("scene", 2);
    other.existing = PB_EXISTING_REPLACE;
    refuse(&other, PB_E_OUTPUT_EXISTS, "'a.txt', which was changed");
    o.existing = PB_EXISTING_VERSION;
    struct pb_publish *p = begin(&o);
    ck_assert_msg(commit(p, "new", &err, path) == 0, "%s", err.msg);
    ck_assert_msg(strstr(pb_publish_warning(p), "are in scene~2") != NULL, "%s",
                  pb_publish_warning(p));
    pb_publish_close(p);
    ck_assert_str_eq(get("scene/p/a.txt"), "own");
    ck_assert_str_eq(get("scene~2/p/a.txt"), "new");
}
END_TEST

START_TEST(products_changed_while_the_run_computes_stay)
{
    struct pb_publish_options o = options_for("scene", 1);
    struct pb_err err = {0};
    char path[PATH_MAX];
    publish(&o, "old");
    struct pb_publish *p = begin(&o);
    put(at("scene/p/a.txt"), "own");
    ck_assert_int_eq(commit(p, "new", &err, path), -EEXIST);
    pb_publish_close(p);
    ck_assert_str_eq(get("scene/p/a.txt"), "own");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(touched_and_missing_products_are_replaced)
{
    struct pb_publish_options o = options_for("scene", 1);
    publish_sum(&o, "one");
    ck_assert_int_eq(chmod(at("scene/p/a.txt"), 0600), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, at("scene/p/a.txt"), NULL, 0), 0); /* the same bytes */
    publish_sum(&o, "two");
    ck_assert_str_eq(get("scene/p/a.txt"), "two");
    ck_assert_int_eq(unlink(at("scene/p/a.txt")), 0);
    publish_sum(&o, "six");
    ck_assert_str_eq(get("scene/p/a.txt"), "six");
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

static atomic_bool enough;

static void *sweep(void *arg)
{
    while (!atomic_load(&enough))
        (void)pb_publish_sweep(arg);
    return NULL;
}

START_TEST(a_sweep_takes_nothing_that_is_just_being_made)
{
    pthread_t sweeper[2];
    struct pb_publish_options o = options_for("scene", 1);
    atomic_store(&enough, false);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&sweeper[i], NULL, sweep, root), 0);
    for (int i = 0; i < 150; i++)
        publish(&o, "x");
    atomic_store(&enough, true);
    for (int i = 0; i < 2; i++)
        pthread_join(sweeper[i], NULL);
    ck_assert_int_eq(hidden(), 0);
}
END_TEST

START_TEST(permissions_are_those_asked_for_whatever_the_umask)
{
    static const unsigned modes[][2] = {{0640, 0750}, {0644, 0755}, {0600, 0700}, {0664, 0775}};
    mode_t was = umask(0077);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct stat st;
        struct pb_publish_options o = options_for("scene", (int)i);
        o.existing = PB_EXISTING_VERSION;
        o.mode = modes[i][0];
        publish(&o, "x");
        char place[256] = "scene", name[300];
        if (i > 0)
            snprintf(place, sizeof place, "scene~%zu", i + 1);
        static const char *const files[] = {"/p/a.txt", "/p/.pushbroom.json", "/.pushbroom.json"};
        for (size_t k = 0; k < 3; k++) {
            snprintf(name, sizeof name, "%s%s", place, files[k]);
            ck_assert_int_eq(stat(at(name), &st), 0);
            ck_assert_uint_eq(st.st_mode & 07777, modes[i][0]);
        }
        snprintf(name, sizeof name, "%s/p", place);
        ck_assert_int_eq(stat(at(name), &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, modes[i][1]);
        ck_assert_int_eq(stat(at(place), &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, modes[i][1]);
    }
    umask(was);
}
END_TEST

START_TEST(takes_names_as_long_as_names_can_be)
{
    char scene[280] = "a", path[PATH_MAX];
    struct pb_err err = {0};
    for (int i = 0; i < 127; i++)
        strcat(scene, "\u00e9");
    struct pb_publish_options o = options_for(scene, 1), other = options_for(scene, 2);
    struct pb_publish *p = begin(&o);
    const char *cut = strstr(pb_publish_directory(p), "\u00e9.");
    ck_assert_ptr_nonnull(cut); /* between two characters */
    ck_assert_msg(commit(p, "x", &err, path) == 0, "%s", err.msg);
    ck_assert_ptr_nonnull(strstr(path, scene));
    pb_publish_close(p);
    other.existing = PB_EXISTING_VERSION;
    publish(&other, "y");
    strcpy(scene + 253, "~2/p/a.txt"); /* cut between two characters */
    ck_assert_str_eq(get(scene), "y");
}
END_TEST

START_TEST(refuses_names_that_hide_or_lead_elsewhere)
{
    static const char *const bad[] = {"", ".", "..", ".x", "a/b", ".x.tmp"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pb_publish_options o = options_for(bad[i], 1);
        refuse(&o, PB_E_OUTPUT_NAME, "cannot be named");
        o = options_for("good", 1);
        o.pipeline = bad[i];
        refuse(&o, PB_E_OUTPUT_NAME, "cannot be named");
    }
}
END_TEST

START_TEST(says_which_path_cannot_be_created)
{
    char below[PATH_MAX + 16];
    struct pb_publish_options o = options_for("scene", 1);
    put(at("file"), "x");
    snprintf(below, sizeof below, "%s/file/deeper", root);
    o.products = below;
    refuse(&o, PB_E_OUTPUT_WRITE, below);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("publish");
    TCase *tc = tcase_create("publish");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, shows_nothing_before_commit_and_everything_after);
    tcase_add_test(tc, same_input_replaces_all_its_older_products);
    tcase_add_test(tc, pipelines_of_one_input_share_its_directory);
    tcase_add_test(tc, delivered_folder_is_never_its_products_directory);
    tcase_add_test(tc, other_input_of_the_name_is_refused_or_placed_apart);
    tcase_add_test(tc, what_pushbroom_did_not_make_is_never_replaced);
    tcase_add_test(tc, within_a_scene_nothing_of_others_is_replaced);
    tcase_add_test(tc, viewer_file_among_products_is_kept_and_explained);
    tcase_add_test(tc, directory_of_the_input_is_never_replaced);
    tcase_add_test(tc, a_place_taken_meanwhile_is_left_to_who_took_it);
    tcase_add_test(tc, simultaneous_inputs_of_one_name_all_get_a_place);
    tcase_add_test(tc, removes_what_was_not_committed);
    tcase_add_test(tc, next_publication_takes_the_left_directory);
    tcase_add_test(tc, left_directory_is_removed_or_swept);
    tcase_add_test(tc, sweeps_leftovers_of_the_dead_and_spares_the_living);
    tcase_add_test(tc, sweeps_only_what_carries_our_mark);
    tcase_add_test(tc, sweep_leaves_other_machines_directories);
    tcase_add_test(tc, sweep_spares_processes_that_run_without_locks);
    tcase_add_test(tc, sweeps_what_was_killed_before_its_first_manifest);
    tcase_add_test(tc, sweeps_what_earlier_versions_left_after_a_day);
    tcase_add_test(tc, sweep_keeps_foreign_files_in_replaced_products);
    tcase_add_test(tc, changed_products_are_never_replaced);
    tcase_add_test(tc, products_changed_while_the_run_computes_stay);
    tcase_add_test(tc, touched_and_missing_products_are_replaced);
    tcase_add_test(tc, a_sweep_takes_nothing_that_is_just_being_made);
    tcase_add_test(tc, permissions_are_those_asked_for_whatever_the_umask);
    tcase_add_test(tc, takes_names_as_long_as_names_can_be);
    tcase_add_test(tc, refuses_names_that_hide_or_lead_elsewhere);
    tcase_add_test(tc, says_which_path_cannot_be_created);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
