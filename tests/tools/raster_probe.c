/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * raster_probe [-s] [-m] [-l SECONDS] [-f SECONDS] FILE...
 * Opens and reads whole rasters as a run does.
 *
 * One line a file, tab-separated:
 *   file  ok|open|meta|read|capped  code  milliseconds  maxrss_kib  WxHxB  type  sha256  message
 * -s: sha256 over the decoded pixels, band after band, rows top to bottom, host byte order (else
 * "-"). -m: makes everything a product takes over from the scene, too. -l: stop reading a file
 * after SECONDS and print "capped" (default: never). -f: each file in a process of its own, forked
 * when GDAL is loaded and ended after SECONDS; for one that does not exit with 0 the line is "file
 * died  exit status N" or "file  died  signal N". The exit status is 0 for all files: the lines
 * have the results. */
#include "pipeline/raster/raster.h"
#include "config/base/err.h"
#include "config/limits_config.h"
#include "pipeline/io/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_BYTES ((int64_t)16 << 20)

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(200000000000),
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};

static const char *const type_words[PB_TYPE_COUNT] = {"uint8",  "int16",   "uint16", "int32",
                                                      "uint32", "float32", "float64"};
static const size_t type_bytes[PB_TYPE_COUNT] = {1, 2, 2, 4, 4, 4, 8};

struct probe {
    struct pb_raster *raster;
    const struct pb_raster_info *info;
    struct pb_sha256 *sum;
    char *data;
    uint8_t *mask;
    double until;
    bool capped;
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One window of one band (its mask, too, with the first). */
static int probe_window(struct probe *probe, const struct pb_rect *rect, int32_t band,
                        struct pb_err *err)
{
    size_t row = (size_t)rect->w * type_bytes[probe->info->type];
    int rc =
        pb_raster_read(probe->raster, &band, 1,
                       &(struct pb_window){probe->data, row, row * (size_t)rect->h,
                                           band == 1 ? probe->mask : NULL, (size_t)rect->w, *rect},
                       err);
    if (rc == 0)
        pb_sha256_add(probe->sum, probe->data, row * (size_t)rect->h);
    probe->capped = probe->until > 0 && now() > probe->until;
    return rc;
}

/* Whole rows, as many as fit the window and whole blocks of them. */
static int probe_pixels(struct probe *probe, struct pb_err *err)
{
    const struct pb_raster_info *info = probe->info;
    int64_t row = (int64_t)info->width * (int64_t)type_bytes[info->type];
    int64_t rows = WINDOW_BYTES / row < 1 ? 1 : WINDOW_BYTES / row;
    if (rows > info->block_h)
        rows -= rows % info->block_h;
    if (rows > info->height)
        rows = info->height;
    probe->data = malloc((size_t)(rows * row));
    probe->mask = malloc((size_t)(rows * info->width));
    int rc = probe->data && probe->mask ? 0 : pb_fail(err, PB_E_MEMORY, "no memory for a window");
    for (int32_t band = 1; rc == 0 && band <= info->n_bands; band++) {
        struct pb_rect rect = {0, 0, info->width, (int32_t)rows};
        for (; rc == 0 && !probe->capped && rect.y < info->height; rect.y += (int32_t)rows) {
            if (rect.h > info->height - rect.y)
                rect.h = info->height - rect.y;
            rc = probe_window(probe, &rect, band, err);
        }
    }
    free(probe->data);
    free(probe->mask);
    return rc;
}

/* Footprint, CRS texts and tags: none may fail or hang, whatever the metadata is. */
static int probe_metadata(struct probe *probe, struct pb_err *err)
{
    struct pb_geo_extra extra = {.n_bands = 1, .type = PB_F32};
    struct pb_footprint footprint;
    struct pb_tiff_tags tags = {NULL, 0};
    (void)pb_raster_footprint(probe->raster, NULL, &footprint);
    free(pb_raster_wkt2(probe->raster));
    free(pb_raster_projjson(probe->raster));
    int rc = pb_raster_geo_tags(probe->raster, &extra, err, &tags);
    pb_tiff_tags_free(&tags);
    return rc;
}

static int64_t reserve(const struct pb_raster_info *info)
{
    struct pb_rect row = {0, 0, info->width, 1};
    uint64_t bytes = pb_raster_cache_bytes(info, &row);
    return bytes < (UINT64_C(64) << 20) ? (int64_t)bytes : (int64_t)64 << 20;
}

static const char *stage_of(struct probe *probe, bool metadata, struct pb_err *err)
{
    if (metadata && probe_metadata(probe, err) < 0)
        return "meta";
    if (probe_pixels(probe, err) < 0)
        return "read";
    return probe->capped ? "capped" : "ok";
}

static void probe_file(const char *path, bool hash, bool metadata, double seconds)
{
    struct pb_err err = {0};
    struct probe probe = {.until = seconds > 0 ? now() + seconds : 0};
    const char *stage = "open";
    char hex[65] = "-", shape[64] = "-";
    const char *type = "-";
    double start = now();
    if (pb_raster_open(path, &limits, &err, &probe.raster) == 0) {
        probe.info = pb_raster_info(probe.raster);
        type = type_words[probe.info->type];
        (void)snprintf(shape, sizeof shape, "%dx%dx%d", (int)probe.info->width,
                       (int)probe.info->height, (int)probe.info->n_bands);
        probe.sum = hash ? pb_sha256_create() : NULL;
        int64_t cache = reserve(probe.info);
        pb_raster_cache_reserve(cache);
        stage = stage_of(&probe, metadata, &err);
        if (hash && !strcmp(stage, "ok"))
            (void)pb_sha256_hex(probe.sum, hex);
        pb_sha256_destroy(probe.sum);
        pb_raster_close(probe.raster);
        pb_raster_cache_reserve(-cache);
    }
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf("%s\t%s\t%s\t%.0f\t%ld\t%s\t%s\t%s\t%s\n", path, stage,
                 err.code ? pb_code_id(err.code) : "-", (now() - start) * 1e3, usage.ru_maxrss,
                 shape, type, hex, err.msg);
    (void)fflush(stdout);
}

static void probe_apart(const char *path, bool hash, bool metadata, double seconds, unsigned limit)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(limit); /* no handler: the end */
        probe_file(path, hash, metadata, seconds);
        exit(0);
    }
    if (child > 0)
        (void)waitpid(child, &status, 0);
    if (status == 0)
        return;
    bool killed = WIFSIGNALED(status);
    (void)printf("%s\tdied\t%s %d\n", path, killed ? "signal" : "exit status",
                 killed ? WTERMSIG(status) : WEXITSTATUS(status));
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    bool hash = false, metadata = false;
    double seconds = 0;
    int apart = 0;
    for (int c; (c = getopt(argc, argv, "sml:f:")) != -1;) {
        if (c == 's')
            hash = true;
        else if (c == 'm')
            metadata = true;
        else if (c == 'l')
            seconds = atof(optarg);
        else if (c == 'f')
            apart = atoi(optarg);
        else
            return 2;
    }
    pb_raster_init();
    for (int i = optind; i < argc; i++)
        if (apart > 0)
            probe_apart(argv[i], hash, metadata, seconds, (unsigned)apart);
        else
            probe_file(argv[i], hash, metadata, seconds);
    return 0;
}
