/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Random changes of a directory: an update that knows the changed names finds what a listing by
 * another scan finds. */
#include "service/base/files.h"
#include "service/inbox/scan.h"

#include "run_suite.h"
#include "service/base/log.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTLE 1000

struct side {
    struct pb_settle *settle;
    struct pb_left *left;
    struct pb_scan *scan;
};

static char root[64];
static struct pb_inbox inbox;
static struct side updated;
static struct pb_changes changes;
static int64_t now;

static bool takes(void *user, const char *name)
{
    (void)user;
    return strncmp(name, "scene", 5) == 0;
}

static bool ignores(void *user, const char *path)
{
    (void)user;
    return strstr(path, "ignored") != NULL;
}

static bool leaves(void *user, const char *path)
{
    (void)user;
    return strstr(path, "foreign") != NULL;
}

static struct side make_side(void)
{
    const struct pb_scan_rules rules = {takes, ignores, leaves, NULL};
    struct side side = {.settle = pb_settle_create(), .left = pb_left_create()};
    side.scan = pb_scan_create(&inbox, &rules, side.settle, side.left);
    ck_assert_ptr_nonnull(side.scan);
    return side;
}

static void free_side(const struct side *side)
{
    pb_scan_destroy(side->scan);
    pb_left_destroy(side->left);
    pb_settle_destroy(side->settle);
}

static void make(void)
{
    (void)snprintf(root, sizeof root, "%s", "/tmp/pb-scan-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    inbox = (struct pb_inbox){.path = root, .recurse = true};
    updated = make_side();
    pb_log_init(PB_LOG_ERROR);
    now = 0;
}

static void unmake(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
    pb_changes_fini(&changes);
    free_side(&updated);
}

/* Scans in small steps. Returns the result of the last one. */
static int scan(const struct side *side, struct pb_changes *names)
{
    int rc = pb_scan_begin(side->scan, names);
    for (int more = rc == 0; more != 0;) {
        rc = pb_scan_step(side->scan, 3);
        more = rc > 0;
    }
    now += 100;
    pb_settle_end(side->settle, SETTLE, now, now, now);
    return rc;
}

static void list(const struct side *side)
{
    struct pb_changes all = {.all = true};
    ck_assert_int_eq(scan(side, &all), 0);
    ck_assert(pb_scan_is_listing(side->scan));
}

static void compare_left(const struct side *one, const struct side *other,
                         enum pb_settle_reason reason)
{
    const struct pb_left_entry *a[PB_LEFT_FIRST_MAX], *b[PB_LEFT_FIRST_MAX];
    ck_assert_uint_eq(pb_left_count(one->left, reason), pb_left_count(other->left, reason));
    const size_t n = pb_left_first(one->left, reason, a);
    ck_assert_uint_eq(n, pb_left_first(other->left, reason, b));
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(a[i]->name, b[i]->name);
        ck_assert_str_eq(a[i]->text, b[i]->text);
    }
}

static void compare(const struct side *one, const struct side *other)
{
    const struct pb_scan_folders *a = pb_scan_folders(one->scan), *b = pb_scan_folders(other->scan);
    ck_assert_uint_eq(pb_settle_count(one->settle), pb_settle_count(other->settle));
    for (size_t i = 0; i < pb_settle_count(one->settle); i++) {
        const struct pb_settle_file *file = pb_settle_at(one->settle, i);
        const struct pb_settle_file *twin = pb_settle_at(other->settle, i);
        ck_assert_str_eq(file->name, twin->name);
        ck_assert_uint_eq(file->size, twin->size);
        ck_assert_uint_eq(file->inode, twin->inode);
        ck_assert_int_eq(file->ctime_ns, twin->ctime_ns);
    }
    for (int reason = PB_SETTLE_LACKS; reason <= PB_SETTLE_IGNORED; reason++)
        compare_left(one, other, (enum pb_settle_reason)reason);
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        ck_assert_str_eq(a->folder[i].path, b->folder[i].path);
}

static const char *const names[] = {"a.tif", "foreign.bin", "ignored.txt", "scene1", "link",
                                    "sub",   "sub2",        "x.part",      "b.tif"};

/* Makes a path of up to three random names. */
static void pick(char out[64])
{
    const char *parts[3];
    for (size_t i = 0; i < 3; i++)
        parts[i] = names[(size_t)rand() % (sizeof names / sizeof names[0])];
    int n = rand() % 3;
    (void)snprintf(out, 64, n == 0 ? "%s" : n == 1 ? "sub/%s" : "sub/sub2/%s", parts[0]);
}

/* Makes or changes the entry of that path below the root, if that is possible. */
static void change(const char *path, const char *other)
{
    int fd;
    switch (rand() % 8) {
    case 0:
    case 1:
    case 2:
        fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_NOFOLLOW, 0644);
        if (fd >= 0) {
            ck_assert_int_eq(write(fd, "x", 1), 1);
            (void)close(fd);
        }
        break;
    case 3:
        (void)(unlink(path) == 0 || rmdir(path) == 0);
        break;
    case 4:
        (void)mkdir(path, 0755);
        break;
    case 5:
        (void)symlink("nowhere", path);
        break;
    case 6:
        (void)rename(path, other);
        break;
    default:
        (void)link(path, other);
        break;
    }
}

static void change_at_random(void)
{
    char path[64], other[64];
    pick(path);
    pick(other);
    ck_assert_int_eq(chdir(root), 0);
    change(path, other);
    ck_assert_int_eq(chdir("/"), 0);
    pb_changes_add(&changes, "", path); /* events report both names */
    pb_changes_add(&changes, "", other);
}

START_TEST(test_update_finds_what_a_listing_finds)
{
    list(&updated);
    for (unsigned round = 0; round < 2000; round++) {
        srand(round);
        for (int i = rand() % 4; i >= 0; i--)
            change_at_random();
        ck_assert_int_eq(scan(&updated, &changes), 0);
        ck_assert(!pb_scan_is_listing(updated.scan));
        const struct side fresh = make_side();
        list(&fresh);
        compare(&updated, &fresh);
        free_side(&fresh);
    }
}
END_TEST

/* Holds, notes and takes files of a scan, as a round does. */
static void use_files(const struct side *side)
{
    static const struct pb_settle_note note = {.reason = PB_SETTLE_REFUSED, .text = "why"};
    struct pb_stays stays;
    for (size_t i = 0; i < pb_settle_count(side->settle); i++) {
        if (rand() % 4 == 0)
            (void)pb_settle_hold(side->settle, i);
        if (rand() % 4 == 0)
            pb_settle_set_note(side->settle, i, rand() % 2 ? &note : NULL);
        if (rand() % 8 == 0)
            pb_settle_taken(side->settle, i);
    }
    const struct pb_settle_file *file;
    while ((file = pb_settle_next(side->settle)) != NULL)
        if (rand() % 2)
            pb_settle_again(side->settle, file);
    pb_stays_collect(side->left, side->settle, &stays);
    ck_assert_uint_le(stays.n_refused,
                      pb_settle_count(side->settle) + pb_left_count(side->left, PB_SETTLE_REFUSED));
}

/* Overflows, other configurations and scans of an inbox that is away are between the updates. */
START_TEST(test_scans_after_faults_find_what_a_listing_finds)
{
    char away[80];
    (void)snprintf(away, sizeof away, "%s.away", root);
    list(&updated);
    for (unsigned round = 0; round < 600; round++) {
        srand(round);
        for (int i = rand() % 6; i >= 0; i--)
            change_at_random();
        if (rand() % 8 == 0) {
            ck_assert_int_eq(rename(root, away), 0);
            ck_assert_int_lt(scan(&updated, &changes), 0);
            ck_assert_int_eq(rename(away, root), 0);
        }
        if (rand() % 8 == 0)
            pb_left_reopen(updated.left);
        if (rand() % 4 == 0)
            pb_changes_add_all(&changes);
        ck_assert_int_eq(scan(&updated, &changes), 0);
        const struct side fresh = make_side();
        list(&fresh);
        compare(&updated, &fresh);
        free_side(&fresh);
        use_files(&updated);
    }
}
END_TEST

START_TEST(test_update_keeps_the_time_of_still_files)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/a.tif", root);
    (void)close(open(path, O_CREAT | O_WRONLY, 0644));
    bool is_still = true;
    int scans = 0;
    list(&updated);
    for (; !pb_settle_hold(updated.settle, 0); scans++)
        ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert_int_eq(scans, SETTLE / 100);
    ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert(pb_settle_hold(updated.settle, 0));
    pb_settle_begin(updated.settle);
    ck_assert_ptr_nonnull(pb_settle_last(updated.settle, 0, &is_still));
    ck_assert(is_still);
}
END_TEST

START_TEST(test_taken_file_is_examined_again)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/a.tif", root);
    (void)close(open(path, O_CREAT | O_WRONLY, 0644));
    list(&updated);
    while (!pb_settle_hold(updated.settle, 0))
        ck_assert_int_eq(scan(&updated, &changes), 0);
    pb_settle_taken(updated.settle, 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(scan(&updated, &changes), 0); /* no event reported it */
    ck_assert_uint_eq(pb_settle_count(updated.settle), 0);
}
END_TEST

START_TEST(test_replaced_inbox_is_listed)
{
    char other[80], path[80];
    (void)snprintf(other, sizeof other, "%s-other", root);
    ck_assert_int_eq(mkfifo(strcat(strcpy(path, root), "/pipe"), 0600), 0);
    list(&updated);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rename(root, other), 0);
    ck_assert_int_lt(scan(&updated, &changes), 0);
    ck_assert_uint_eq(pb_left_count(updated.left, PB_SETTLE_REFUSED), 1); /* still known */
    ck_assert_int_eq(mkdir(root, 0755), 0);
    ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert(pb_scan_is_listing(updated.scan));
    ck_assert_uint_eq(pb_left_count(updated.left, PB_SETTLE_REFUSED), 0);
    ck_assert_int_eq(rmdir(other), 0);
}
END_TEST

START_TEST(test_update_without_descriptors_needs_a_listing)
{
    char path[128];
    struct rlimit limit;
    (void)snprintf(path, sizeof path, "%s/sub", root);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/sub/a.tif", root);
    (void)close(open(path, O_CREAT | O_WRONLY, 0644));
    list(&updated);
    ck_assert(!pb_scan_needs_listing(updated.scan));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int free_fd = dup(STDIN_FILENO);
    const struct rlimit least = {(rlim_t)free_fd + 1, limit.rlim_max}; /* the inbox itself */
    ck_assert_int_eq(close(free_fd), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &least), 0);
    ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert(!pb_scan_is_listing(updated.scan));
    ck_assert(pb_scan_needs_listing(updated.scan));
    ck_assert_uint_eq(pb_settle_count(updated.settle), 0);
    ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert(pb_scan_is_listing(updated.scan));
    ck_assert(!pb_scan_needs_listing(updated.scan));
    ck_assert_uint_eq(pb_settle_count(updated.settle), 1);
}
END_TEST

START_TEST(test_only_local_file_systems_report_changes)
{
    static const uint32_t local[] = {0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x2fc12fc1};
    static const uint32_t remote[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42, 0x65735546,
                                      0x01021997, 0x00c36400, 0x0bd00bd0, 0x47504653, 0x6b414653,
                                      0x5346414f, 0x786f4256, 0x01161970, 0x7461636f, 0};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        ck_assert(pb_files_is_local_type(local[i]));
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        ck_assert(!pb_files_is_local_type(remote[i]));
}
END_TEST

START_TEST(test_scan_lists_without_reliable_events)
{
    inbox.path = "/proc/sys/fs"; /* no event reports a change of it */
    list(&updated);
    ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert(pb_scan_is_listing(updated.scan));
    inbox.path = root;
    list(&updated);
    ck_assert_int_eq(scan(&updated, &changes), 0);
    ck_assert(!pb_scan_is_listing(updated.scan));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("scan");
    TCase *tcase = tcase_create("scan");
    tcase_add_checked_fixture(tcase, make, unmake);
    tcase_add_test(tcase, test_update_finds_what_a_listing_finds);
    tcase_add_test(tcase, test_scans_after_faults_find_what_a_listing_finds);
    tcase_add_test(tcase, test_update_keeps_the_time_of_still_files);
    tcase_add_test(tcase, test_taken_file_is_examined_again);
    tcase_add_test(tcase, test_replaced_inbox_is_listed);
    tcase_add_test(tcase, test_update_without_descriptors_needs_a_listing);
    tcase_add_test(tcase, test_only_local_file_systems_report_changes);
    tcase_add_test(tcase, test_scan_lists_without_reliable_events);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return run_suite(make_suite());
}
