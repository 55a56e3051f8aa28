/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_RUN_FIXTURE_H
#define PB_TEST_RUN_FIXTURE_H
/* A scratch directory, small scenes written byte by byte (no GDAL), a config and a run on them. */
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64], input[128], products[128];
static struct pb_config *config;

static inline void put16(FILE *f, unsigned v)
{
    fputc((int)(v & 255), f);
    fputc((int)(v >> 8 & 255), f);
}

static inline void put32(FILE *f, unsigned v)
{
    put16(f, v & 65535);
    put16(f, v >> 16);
}

static inline void put_tag(FILE *f, unsigned tag, unsigned type, unsigned count, unsigned value)
{
    put16(f, tag);
    put16(f, type);
    put32(f, count);
    put32(f, value);
}

/* Two bands, pixel-interleaved, one uncompressed strip. bytes: of a pixel's band, 1 or 8 (double).
 */
static inline void scene_write(const char *path, unsigned w, unsigned h, unsigned bytes)
{
    enum { TAGS = 11, DATA = 8 + 2 + TAGS * 12 + 4 + 8 };
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite("II*\0\10\0\0\0", 1, 8, f);
    put16(f, TAGS);
    put_tag(f, 256, 4, 1, w);
    put_tag(f, 257, 4, 1, h);
    put_tag(f, 258, 3, 2, bytes * 8 * 65537);
    put_tag(f, 259, 3, 1, 1);
    put_tag(f, 262, 3, 1, 1);
    put_tag(f, 273, 4, 1, DATA);
    put_tag(f, 277, 3, 1, 2);
    put_tag(f, 278, 4, 1, h);
    put_tag(f, 279, 4, 1, w * h * 2 * bytes);
    put_tag(f, 338, 3, 1, 0);
    put_tag(f, 339, 3, 2, (bytes == 8 ? 3 : 1) * 65537);
    fwrite("\0\0\0\0\0\0\0\0\0\0\0\0", 1, 12, f);
    for (unsigned i = 0; i < w * h * 2 * bytes; i++)
        fputc(bytes == 8 ? 0 : (int)((i * 2654435761u) >> 24), f);
    ck_assert_int_eq(fclose(f), 0);
}

/* more: keys of compute; steps: lines of YAML. */
static inline void config_use_steps(const char *more, const char *steps)
{
    char text[2048];
    struct pb_err_list *errors = calloc(1, sizeof *errors);
    snprintf(text, sizeof text,
             "compute: {device: cpu, tile: 64, threads: 3%s}\n"
             "pipelines:\n"
             "  p:\n"
             "    input: {match: ['*.tif'], bands: {A: 1, B: 2}}\n"
             "    steps:\n"
             "%s"
             "    products:\n"
             "      - cog: {type: float32, compress: deflate, blocksize: 64}\n"
             "      - quicklook: {bands: [S], size: 64}\n"
             "      - statistics: {}\n"
             "      - stac: {datetime: file-time}\n",
             more, steps);
    pb_config_destroy(config);
    config = NULL;
    ck_assert_msg(pb_config_parse(text, strlen(text), "test", &pb_products, errors, &config) == 0,
                  "%s", errors->err[0].msg);
    free(errors);
}

static inline void config_use(const char *more)
{
    config_use_steps(more, "      - math: {bands: {S: 'A + B', D: 'A - B'}}\n"
                           "      - convolve: {kernel: box, size: 3}\n");
}

static inline void run_setup(void)
{
    strcpy(root, "/tmp/pb-run-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(input, sizeof input, "%s/scene.tif", root);
    snprintf(products, sizeof products, "%s/products", root);
    scene_write(input, 500, 300, 1);
    config_use("");
}

static inline void run_teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
    pb_config_destroy(config);
    config = NULL;
}

/* The scene is valid until the fourth call after this one. */
static inline struct pb_run_options options_of(const char *path)
{
    static struct pb_scene scene[4];
    static int n;
    struct pb_scene *one = &scene[n++ % 4];
    *one = pb_scene_at(path);
    return (struct pb_run_options){.config = config,
                                   .pipeline = pb_config_pipeline(config, "p"),
                                   .input = one,
                                   .products = products};
}

static inline struct pb_run *run_create(void)
{
    struct pb_err err = {0};
    struct pb_run *run = NULL;
    struct pb_run_options options = options_of(input);
    ck_assert_msg(pb_run_create(&options, &err, &run) == 0, "%s", err.msg);
    return run;
}

/* A run of the input whose products are in the directory; remote: NULL = this process computes. */
static inline struct pb_run *run_published(const char *directory, const struct pb_remote *remote,
                                           struct pb_run_result *result)
{
    struct pb_err err = {0};
    struct pb_run *run = NULL;
    struct pb_run_options options = options_of(input);
    options.remote = remote;
    options.products = directory;
    ck_assert_msg(pb_run_create(&options, &err, &run) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_start(run, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_wait(run, -1, &err) == 0, "%s", err.msg);
    ck_assert_msg(pb_run_publish(run, &err, result) == 0, "%s", err.msg);
    return run;
}

/* Entries of a directory; -1 = it is not there. */
static inline int entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    if (dir == NULL)
        return -1;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}
#endif
