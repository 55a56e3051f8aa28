/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Claims of a node that slept while it claimed: another node has its inbox meanwhile, and sweeps
 * its work/. rename is a function of this program (--wrap), which acts after the claim's move. */
#include "service/inbox/claim.h"

#include "config/base/clock.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/inbox/adopt.h"
#include "service/jobs/nodes.h"

#include "store_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

/* A node, with its directories. */
struct side {
    struct pb_dirs dirs;
    struct pb_intake intake;
};

static struct side a, b;
static struct pb_config *config;
static struct pb_inbox inbox;
static void (*sleeps)(void); /* called once, after the move into work/ */

int __wrap_rename(const char *from, const char *to)
{
    void (*const act)(void) = sleeps;
    const int rc = __real_rename(from, to), error = errno;
    sleeps = NULL;
    if (act != NULL)
        act();
    errno = error;
    return rc;
}

static void begin_side(struct side *side, const char *name)
{
    struct pb_dirs *dirs = &side->dirs;
    struct pb_err err = {0};
    char moved[PB_FILES_PATH_BYTES];

    (void)snprintf(dirs->work, sizeof dirs->work, "%s/work_of_%s", directory, name);
    (void)snprintf(dirs->products, sizeof dirs->products, "%s", directory);
    (void)snprintf(dirs->inbox[0], sizeof dirs->inbox[0], "%s/inbox", directory);
    dirs->n_inboxes = 1;
    ck_assert_int_eq(pb_files_make_directory(dirs->work, "work", NULL), 0);
    pb_intake_init(&side->intake, config);
    side->intake.dirs = dirs;
    side->intake.inbox_rule[0].companion =
        (struct pb_companion_rule){PB_COMPANION_MARKER, "{name}.done"};
    pb_intake_allow(&side->intake, 0, INT64_MAX);
    place.node = name;
    ck_assert_msg(pb_job_store_open(&place, &err, moved, &side->intake.store) == 0, "%s", err.msg);
    const struct pb_node node = {.place = dirs->work,
                                 .work = dirs->work,
                                 .archive = dirs->work,
                                 .quarantine = dirs->work,
                                 .lease_ms = 60000};
    ck_assert_msg(pb_nodes_join(side->intake.store, &node, &err) == 0, "%s", err.msg);
}

static void begin(void)
{
    static const char text[] = "pipelines:\n"
                               "  all:\n"
                               "    input: {match: ['*.tif']}\n"
                               "    products: [statistics: {}]\n";
    struct pb_err_list errors = {0};

    ck_assert_int_eq(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    begin_side(&a, "a");
    begin_side(&b, "b");
    ck_assert_int_eq(pb_files_make_directory(a.dirs.inbox[0], "inbox", NULL), 0);
    inbox = (struct pb_inbox){.path = a.dirs.inbox[0]};
    pb_intake_set_up(&a.intake, 0, &inbox);
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        pb_job_store_close((i ? &b : &a)->intake.store);
        pb_intake_fini(&(i ? &b : &a)->intake);
    }
    pb_config_destroy(config);
}

static void path_of(const char *name, char out[PB_FILES_PATH_BYTES])
{
    ck_assert_int_eq(pb_files_join(out, inbox.path, name), 0);
}

static void deliver(const char *name)
{
    char path[PB_FILES_PATH_BYTES];

    path_of(name, path);
    FILE *const out = fopen(path, "w");
    ck_assert(out != NULL && fclose(out) == 0);
}

static bool is_delivered(const char *name)
{
    char path[PB_FILES_PATH_BYTES];

    path_of(name, path);
    return access(path, F_OK) == 0;
}

/* Finds the directory of the claim; "" = absent. */
static void find_claim(char out[PB_FILES_PATH_BYTES])
{
    char command[PB_FILES_PATH_BYTES + 32];

    (void)snprintf(command, sizeof command, "ls -d %s/*-* 2>/dev/null", a.dirs.work);
    FILE *const list = popen(command, "r");
    ck_assert_ptr_nonnull(list);
    if (fgets(out, PB_FILES_PATH_BYTES, list) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    (void)pclose(list);
}

/* Node a claims s1.tif, with its marker. Returns the result, and the directory of the claim. */
static int claim(char out[PB_FILES_PATH_BYTES])
{
    char path[PB_FILES_PATH_BYTES];
    struct stat st;

    deliver("s1.tif");
    deliver("s1.tif.done");
    path_of("s1.tif", path);
    ck_assert_int_eq(lstat(path, &st), 0);
    const struct pb_settle_file file = {.name = "s1.tif",
                                        .size = (uint64_t)st.st_size,
                                        .inode = st.st_ino,
                                        .mtime_ns = pb_clock_ns(&st.st_mtim),
                                        .ctime_ns = pb_clock_ns(&st.st_ctim)};
    struct pb_claimed claimed = {.file = &file};
    ck_assert_uint_eq(pb_claim_files(&a.intake, &inbox, &claimed, 1), 1);
    if (claimed.rc == 0)
        pb_job_fini(&claimed.job);
    find_claim(out);
    return claimed.rc;
}

static void store_by_a(void)
{
    char at[PB_FILES_PATH_BYTES], input[PB_FILES_PATH_BYTES];
    struct pb_job job;

    find_claim(at);
    ck_assert_int_eq(pb_files_join(input, at, "s1.tif"), 0);
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", strrchr(at, '/') + 1);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, input), 0);
    ck_assert_int_eq(pb_store_offer(a.intake.store, &job, NULL), 0);
    pb_job_fini(&job);
}

static void adopt_by_b(void)
{
    struct pb_adopted adopted;

    pb_adopt_claims(&b.intake, a.dirs.work, 0, &adopted);
    ck_assert_msg(adopted.left == 0, "%s", adopted.first.msg);
    ck_assert_int_eq(adopted.adopted, 1);
}

START_TEST(test_input_adopted_during_its_claim_stays)
{
    char at[PB_FILES_PATH_BYTES], input[PB_FILES_PATH_BYTES];
    struct pb_job job;

    sleeps = adopt_by_b;
    ck_assert_int_eq(claim(at), -EAGAIN);
    ck_assert(!is_delivered("s1.tif") && !is_delivered("s1.tif.done"));
    ck_assert_int_eq(pb_files_join(input, at, "s1.tif"), 0);
    ck_assert_int_eq(access(input, F_OK), 0);
    ck_assert_int_eq(pb_job_store_find(b.intake.store, strrchr(at, '/') + 1, NULL, &job), 0);
    ck_assert_str_eq(job.manifest.input, input);
    pb_job_fini(&job);
}
END_TEST

static void withdraw(void)
{
    char path[PB_FILES_PATH_BYTES];

    path_of("s1.tif.done", path);
    ck_assert_int_eq(unlink(path), 0);
}

START_TEST(test_failed_claim_returns_to_the_inbox)
{
    char at[PB_FILES_PATH_BYTES];

    sleeps = withdraw;
    ck_assert_int_eq(claim(at), -EAGAIN);
    ck_assert(is_delivered("s1.tif"));
    ck_assert_str_eq(at, "");
    ck_assert(!atomic_load(&a.intake.left));
}
END_TEST

static void lose_the_inbox(void)
{
    withdraw();
    pb_intake_allow(&a.intake, 0, 0);
}

START_TEST(test_failed_claim_of_a_lost_inbox_stays)
{
    char at[PB_FILES_PATH_BYTES], input[PB_FILES_PATH_BYTES];

    sleeps = lose_the_inbox; /* another node may adopt the claim at any time */
    ck_assert_int_eq(claim(at), -EAGAIN);
    ck_assert_int_eq(pb_files_join(input, at, "s1.tif"), 0);
    ck_assert_int_eq(access(input, F_OK), 0);
    ck_assert(!is_delivered("s1.tif") && atomic_load(&a.intake.left));
}
END_TEST

/* Another node stores the job while b fetches the companion. */
static void adopt_twice(void)
{
    struct pb_adopted adopted;

    sleeps = store_by_a;
    pb_adopt_claims(&b.intake, a.dirs.work, 0, &adopted);
    ck_assert_msg(adopted.left == 0, "%s", adopted.first.msg);
    ck_assert_int_eq(adopted.adopted, 0);
}

START_TEST(test_claim_adopted_by_two_nodes_is_done)
{
    char at[PB_FILES_PATH_BYTES], input[PB_FILES_PATH_BYTES];

    sleeps = adopt_twice;
    ck_assert_int_eq(claim(at), -EAGAIN);
    ck_assert_int_eq(pb_files_join(input, at, "s1.tif"), 0);
    ck_assert_int_eq(access(input, F_OK), 0);
}
END_TEST

START_TEST(test_unmatched_files_are_left_to_the_owner)
{
    for (int i = 0; i < 2; i++)
        (void)snprintf((i ? &b : &a)->dirs.inbox_node[0], PB_INBOX_NODE_BYTES, "a");
    ck_assert(pb_intake_leaves(&b.intake, 0, "s1.txt"));
    ck_assert(!pb_intake_leaves(&b.intake, 0, "s1.tif"));
    ck_assert(!pb_intake_leaves(&a.intake, 0, "s1.txt")); /* it quarantines the file */
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, test_unmatched_files_are_left_to_the_owner);
    tcase_add_test(tests, test_claim_adopted_by_two_nodes_is_done);
    tcase_add_test(tests, test_input_adopted_during_its_claim_stays);
    tcase_add_test(tests, test_failed_claim_returns_to_the_inbox);
    tcase_add_test(tests, test_failed_claim_of_a_lost_inbox_stays);
}

int main(void)
{
    return run_over_database("claim", begin, end, add);
}
