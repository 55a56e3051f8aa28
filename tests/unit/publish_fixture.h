/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_PUBLISH_FIXTURE_H
#define PB_TEST_PUBLISH_FIXTURE_H
/* A products directory of its own for each test, and small products to publish in it. */
#include "pipeline/publish/publish.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[PATH_MAX];

static void setup(void)
{
    char made[] = "/tmp/pb-publish-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(made));
    ck_assert_ptr_nonnull(realpath(made, root));
}

static void teardown(void)
{
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* Below root, in turn one of four buffers. */
static inline const char *at(const char *name)
{
    static char path[4][2 * PATH_MAX];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", root, name);
    return out;
}

static inline void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_msg(f != NULL, "%s", path);
    fputs(text, f);
    fclose(f);
}

/* Returns the content of the file below root, "" if it is absent. */
static inline const char *get(const char *name)
{
    static char text[64];
    FILE *f = fopen(at(name), "r");
    text[0] = '\0';
    if (f != NULL) {
        if (fgets(text, sizeof text, f) == NULL)
            text[0] = '\0';
        fclose(f);
    }
    return text;
}

static inline bool there(const char *name)
{
    struct stat st;
    return lstat(at(name), &st) == 0;
}

/* How many entries of root begin with a dot. */
static inline int hidden(void)
{
    char command[PATH_MAX + 64];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | grep -c '^\\.'", root);
    FILE *f = popen(command, "r");
    ck_assert_int_eq(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

/* The input number n of the scene, pipeline "p". */
static inline struct pb_publish_options options_for(const char *scene, int n)
{
    struct pb_publish_options o = {.products = root, .scene = scene, .pipeline = "p", .job = "job"};
    pb_input_id_set(&o.input, "scene.tif", 100, n);
    snprintf(o.input.checksum[PB_CHECKSUM_SHA2_256], PB_CHECKSUM_TEXT_BYTES, "sha256:%064d", n);
    return o;
}

static inline struct pb_publish *begin(const struct pb_publish_options *o)
{
    struct pb_publish *p = NULL;
    struct pb_err err = {0};
    ck_assert_msg(pb_publish_open(o, &err, &p) == 0, "%s", err.msg);
    return p;
}

/* Writes the one product, a.txt. */
static inline void write_product(struct pb_publish *p, const char *text)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/a.txt", pb_publish_directory(p));
    put(path, text);
}

static inline int commit(struct pb_publish *p, const char *text, struct pb_err *err, char *out_path)
{
    struct pb_manifest_file file = {
        "cog",
        "",
        "a.txt",
        "text/plain",
        strlen(text),
        "sha256:"
        "0000000000000000000000000000000000000000000000000000000000000000",
        0};
    write_product(p, text);
    return pb_publish_commit(p, &file, 1, err, out_path);
}

static inline void publish(const struct pb_publish_options *o, const char *text)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_publish *p = begin(o);
    ck_assert_msg(commit(p, text, &err, path) == 0, "%s", err.msg);
    ck_assert_str_eq(pb_publish_warning(p), "");
    pb_publish_close(p);
}

/* The same, with the checksum of the product in its manifest. */
static inline void publish_sum(const struct pb_publish_options *o, const char *text)
{
    char path[PATH_MAX];
    struct pb_err err = {0};
    struct pb_manifest_file file = {"cog", "", "a.txt", "text/plain", strlen(text), "", 0};
    struct pb_sum *sum = pb_sum_create(PB_CHECKSUM_SHA2_256);
    pb_sum_add(sum, text, strlen(text));
    ck_assert_int_eq(pb_sum_text(sum, file.checksum), 0);
    pb_sum_destroy(sum);
    struct pb_publish *p = begin(o);
    write_product(p, text);
    ck_assert_msg(pb_publish_commit(p, &file, 1, &err, path) == 0, "%s", err.msg);
    pb_publish_close(p);
}

static inline void refuse(const struct pb_publish_options *o, enum pb_code code, const char *word)
{
    struct pb_publish *p = NULL;
    struct pb_err err = {0};
    ck_assert_int_lt(pb_publish_open(o, &err, &p), 0);
    ck_assert_msg(err.code == code, "%s: %s", pb_code_id(err.code), err.msg);
    ck_assert_msg(strstr(err.msg, word) != NULL, "%s", err.msg);
}
#endif
