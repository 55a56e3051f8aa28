/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Writes a COG from raw float32 planes, the way a run does it: tiles are taken by several threads,
 * at random within the window of the pyramid. Options are key=value:
 *   in out w h bands type compress level predictor block overviews nodata mask big
 *   tile order threads flight seed pool move checksum
 * Prints bytes, checksum, and the memory that was declared and taken. Exit 1: the writer's error.
 */
#include "pipeline/cog/cog_writer.h"
#include "pipeline/io/sha256.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct job {
    struct pb_cog_options options;
    struct pb_grid grid;
    struct pb_cog_writer *writer;
    const float *planes;
    uint32_t *visit; /* tiles in visiting order */
    char *state;     /* state by place: 0 waiting, 1 started, 2 finished */
    uint32_t first, n, seed;
    int rc;
    struct pb_err err;
    pthread_mutex_t lock;
    pthread_cond_t moved;
};

struct worker {
    struct job *job;
    uint32_t number;
    pthread_t thread;
};

static const char *option(int argc, char **argv, const char *key, const char *fallback)
{
    size_t n = strlen(key);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], key, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    return fallback;
}

static int choice(const char *word, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    (void)fprintf(stderr, "write_cog: '%s' is not known\n", word);
    exit(2);
}

/* Returns a waiting tile of the window, at random; -1 if there is no tile to take now. */
static int64_t take(struct job *job)
{
    uint32_t end = job->first + job->options.tiles_in_flight, waiting = 0;
    end = end < job->n ? end : job->n;
    for (uint32_t i = job->first; i < end; i++)
        waiting += job->state[i] == 0;
    if (waiting == 0)
        return -1;
    job->seed = job->seed * 1664525u + 1013904223u;
    uint32_t skip = (job->seed >> 8) % waiting;
    for (uint32_t i = job->first;; i++)
        if (job->state[i] == 0 && skip-- == 0) {
            job->state[i] = 1;
            return i;
        }
}

static void give(struct job *job, uint32_t place)
{
    job->state[place] = 2;
    while (job->first < job->n && job->state[job->first] == 2)
        job->first++;
    pthread_cond_broadcast(&job->moved);
}

static int write_tile(struct job *job, uint32_t tile, uint32_t worker, float *pixels,
                      struct pb_err *err)
{
    struct pb_rect core = pb_grid_core(&job->grid, tile);
    const float *planes[PB_BANDS_MAX];
    size_t w = (size_t)job->grid.image_w, plane = w * (size_t)job->grid.image_h;
    size_t core_px = (size_t)core.w * (size_t)core.h;
    for (uint32_t b = 0; b < job->options.n_bands; b++) {
        planes[b] = pixels + b * core_px;
        for (int32_t y = 0; y < core.h; y++)
            memcpy(pixels + b * core_px + (size_t)y * (size_t)core.w,
                   job->planes + b * plane + (size_t)(core.y + y) * w + (size_t)core.x,
                   (size_t)core.w * sizeof(float));
    }
    return pb_cog_writer_tile(job->writer, &core, planes, worker, err);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct job *job = worker->job;
    size_t side = (size_t)job->grid.side_px;
    float *pixels = malloc(side * side * job->options.n_bands * sizeof *pixels);
    struct pb_err err = {0};
    pthread_mutex_lock(&job->lock);
    while (pixels != NULL && job->rc == 0 && job->first < job->n) {
        int64_t place = take(job);
        if (place < 0) {
            pthread_cond_wait(&job->moved, &job->lock);
            continue;
        }
        pthread_mutex_unlock(&job->lock);
        int rc = write_tile(job, job->visit[place], worker->number, pixels, &err);
        pthread_mutex_lock(&job->lock);
        if (rc != 0 && job->rc == 0) {
            job->rc = rc;
            job->err = err;
        }
        give(job, (uint32_t)place);
    }
    pthread_mutex_unlock(&job->lock);
    free(pixels);
    return NULL;
}

static void run(struct job *job)
{
    uint32_t n = job->options.workers;
    struct worker *workers = calloc(n, sizeof *workers);
    for (uint32_t i = 0; i < n; i++) {
        workers[i] = (struct worker){.job = job, .number = i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
}

static void find_order(struct job *job)
{
    job->n = pb_grid_count(&job->grid);
    job->visit =
        calloc(job->n + pb_order_unit_max(&job->grid, job->options.order), sizeof *job->visit);
    job->state = calloc(job->n, 1);
    uint32_t n = 0;
    for (uint32_t u = 0; u < pb_order_units(&job->grid, job->options.order); u++)
        n += pb_order_unit(&job->grid, job->options.order, u, job->visit + n);
}

static int number(int argc, char **argv, const char *key, const char *fallback)
{
    return (int)strtol(option(argc, argv, key, fallback), NULL, 10);
}

static void parse(int argc, char **argv, struct job *job)
{
    static const char *const types[] = {"uint8",  "int16",   "uint16",  "int32",
                                        "uint32", "float32", "float64", NULL};
    static const char *const codecs[] = {"none", "deflate", "zstd", "lzw", NULL};
    static const char *const overviews[] = {"auto", "average", "nearest", "none", NULL};
    static const char *const orders[] = {"rows", "z", NULL};
    static const char *const sums[] = {"blake3", "sha2-256", "none", NULL};
    struct pb_cog_options *o = &job->options;
    const char *nodata = option(argc, argv, "nodata", NULL);
    o->grid = &job->grid;
    o->n_bands = (uint32_t)number(argc, argv, "bands", "1");
    o->type = (enum pb_type)choice(option(argc, argv, "type", "float32"), types);
    o->compress = (enum pb_compress)choice(option(argc, argv, "compress", "deflate"), codecs);
    o->overviews = (enum pb_overviews)choice(option(argc, argv, "overviews", "average"), overviews);
    o->order = (enum pb_order)choice(option(argc, argv, "order", "rows"), orders);
    o->level = number(argc, argv, "level", "0");
    o->predictor = number(argc, argv, "predictor", "0");
    o->block_px = number(argc, argv, "block", "512");
    o->workers = (uint32_t)number(argc, argv, "threads", "2");
    o->tiles_in_flight = (uint32_t)number(argc, argv, "flight", "8");
    o->has_nodata = nodata != NULL;
    o->nodata = nodata != NULL ? strtod(nodata, NULL) : 0;
    o->checksum = (enum pb_checksum)choice(option(argc, argv, "checksum", "blake3"), sums);
    o->mask = number(argc, argv, "mask", "0") != 0;
    o->force_big = number(argc, argv, "big", "0") != 0;
    o->move_gaps = number(argc, argv, "move", "0") != 0;
    o->pool_bytes = (uint64_t)number(argc, argv, "pool", "0");
    job->seed = (uint32_t)number(argc, argv, "seed", "1");
}

/* The tags a scene would bring; the real ones need GDAL. */
static const struct pb_tiff_tags *tags_of(const struct job *job)
{
    static double scale[3] = {10, 10, 0}, tie[6] = {0, 0, 0, 500000, 4600000, 0};
    static uint16_t keys[16] = {1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32631};
    static char nodata[40];
    static struct pb_tiff_tag tag[] = {
        {33550, 12, 3, scale}, {33922, 12, 6, tie}, {34735, 3, 16, keys}, {42113, 2, 0, nodata}};
    static const struct pb_tiff_tags tags = {tag, 4};
    (void)snprintf(nodata, sizeof nodata, "%.17g", pb_cog_writer_nodata(&job->options));
    tag[3].count = strlen(nodata) + 1;
    return &tags;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int write_all(struct job *job)
{
    struct pb_cog_summary summary;
    pb_sha256_destroy(pb_sha256_create()); /* libcrypto takes some for itself, once */
    struct mallinfo2 before = mallinfo2();
    uint64_t declared = pb_cog_writer_bytes(&job->options);
    int rc = pb_cog_writer_create(&job->options, &job->err, &job->writer);
    if (rc != 0)
        return rc;
    struct mallinfo2 after = mallinfo2();
    double t0 = now();
    run(job);
    double t1 = now();
    if (job->rc == 0)
        job->rc = pb_cog_writer_finish(job->writer, &job->err, &summary);
    double t2 = now();
    pb_cog_writer_destroy(job->writer);
    if (job->rc != 0)
        return job->rc;
    (void)printf("{\"bytes\": %llu, \"checksum\": \"%s\", \"declared\": %llu, \"taken\": %zu, "
                 "\"tiles_s\": %.3f, \"finish_s\": %.3f}\n",
                 (unsigned long long)summary.bytes, summary.checksum, (unsigned long long)declared,
                 after.uordblks + after.hblkhd - before.uordblks - before.hblkhd, t1 - t0, t2 - t1);
    return 0;
}

int main(int argc, char **argv)
{
    struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};
    int w = number(argc, argv, "w", "0"), h = number(argc, argv, "h", "0");
    if (pb_grid_init(&job.grid, w, h, number(argc, argv, "tile", "1024")) != 0)
        return 2;
    parse(argc, argv, &job);
    const char *out = option(argc, argv, "out", "out.tif");
    char directory[4096];
    (void)snprintf(directory, sizeof directory, "%s", out);
    char *slash = strrchr(directory, '/');
    (void)snprintf(slash != NULL ? slash : directory, 2, "%s", slash != NULL ? "" : ".");
    job.options.directory = directory;
    job.options.path = out;
    job.options.tags = tags_of(&job);
    size_t bytes = (size_t)w * (size_t)h * job.options.n_bands * sizeof(float);
    int fd = open(option(argc, argv, "in", ""), O_RDONLY);
    void *planes = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (planes == MAP_FAILED) {
        perror("write_cog: in=");
        return 2;
    }
    job.planes = planes;
    find_order(&job);
    int rc = write_all(&job);
    if (rc != 0) {
        char text[1024];
        pb_err_text(&job.err, text, sizeof text);
        (void)fprintf(stderr, "write_cog: %s: %s\n", pb_code_id(job.err.code), text);
    }
    free(job.visit);
    free(job.state);
    munmap(planes, bytes);
    close(fd);
    return rc != 0;
}
