/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutate_scenes [-n COUNT] [-s SEED] [-k] -a CANARY -b CANARY SCENE... Opens and reads COUNT
 * damaged copies of the scenes, each one twice in one process. Before the first time the heap is
 * full of one byte and another scene was read, before the second time of another byte and another
 * scene: pixels of a copy that is accepted must be the same both times, because no byte of the
 * memory or the job before may show. Copies are read in processes of BATCH copies; a signal, over
 * 20 s for a copy, or more than RSS_MIB resident fails it. -k keeps what fails, as
 * ./mutated-SEED-INDEX.tif. Exit status 0 = nothing failed. */
#include "pipeline/raster/raster.h"

#include "config/base/err.h"
#include "config/limits_config.h"
#include "mutate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 500, SECONDS = 20, RSS_MIB = 512, FILE_MAX = 1 << 20 };
enum { HEAP_SIZES = 24, HEAP_EACH = 6 };

static const struct pb_limits limits = {
    .max_pixels = 1 << 22,
    .max_block_bytes = 1 << 22,
    .max_side_px = 1 << 16,
    .max_bands = 16,
    .max_directories = 8,
};

struct shared { /* written by the process that reads, looked at by its parent */
    unsigned long index, accepted, refused, wrong;
};

struct session {
    struct shared *shared;
    unsigned long count, seed;
    const char *canary[2];
    char **scene;
    size_t n_scenes;
    bool keep;
    char path[64]; /* path of the copy */
};

static uint8_t bytes_of[FILE_MAX];

static size_t load(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes_of, sizeof bytes_of);
    if (n < 0) {
        perror(path);
        exit(3);
    }
    (void)close(fd);
    return (size_t)n;
}

static void save(const char *path, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes_of, bytes) != (ssize_t)bytes) {
        perror(path);
        exit(3);
    }
    (void)close(fd);
}

/* Leaves the heap with as much of one byte as there is room for. */
static void fill_heap(int value)
{
    void *taken[HEAP_SIZES][HEAP_EACH];
    for (size_t i = 0; i < HEAP_SIZES; i++) {
        size_t bytes = (size_t)16 << i / 2 << (i % 2 ? 1 : 0);
        for (size_t j = 0; j < HEAP_EACH; j++) {
            taken[i][j] = malloc(bytes);
            if (taken[i][j] != NULL)
                memset(taken[i][j], value, bytes);
            __asm__ volatile("" : : "g"(taken[i][j]) : "memory");
        }
    }
    for (size_t i = 0; i < HEAP_SIZES; i++)
        for (size_t j = 0; j < HEAP_EACH; j++)
            free(taken[i][j]);
}

static uint64_t hash(uint64_t h, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Reads the whole image. Returns 0 and its hash, or the code of the error. */
static enum pb_code read_scene(const char *path, uint64_t *out_hash)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    int32_t bands[PB_BANDS_MAX];
    if (pb_raster_open(path, &limits, &err, &raster) < 0)
        return err.code;
    const struct pb_raster_info *info = pb_raster_info(raster);
    const struct pb_rect rect = {0, 0, info->width, info->height};
    size_t row = (size_t)info->width * pb_type_bytes(info->type);
    size_t plane = row * (size_t)info->height, px = (size_t)info->width * (size_t)info->height;
    size_t bytes = plane * (size_t)info->n_bands + px;
    uint8_t *data = calloc(1, bytes);
    for (int32_t i = 0; i < info->n_bands; i++)
        bands[i] = i + 1;
    struct pb_window to = {
        data, row, plane, data + plane * (size_t)info->n_bands, (size_t)info->width, rect};
    if (data == NULL)
        err.code = PB_E_MEMORY;
    else if (pb_raster_read(raster, bands, (size_t)info->n_bands, &to, &err) == 0)
        *out_hash = hash(UINT64_C(0xcbf29ce484222325), data, bytes);
    free(data);
    pb_raster_close(raster);
    return err.code;
}

static void one(struct session *s)
{
    struct shared *shared = s->shared;
    struct mutate m = {.state = s->seed * UINT64_C(1000003) + shared->index};
    uint64_t hashes[2] = {0}, ignored = 0;
    enum pb_code codes[2];
    size_t bytes = load(s->scene[mutate_below(&m, s->n_scenes)]);
    /* Directories of these files are at their beginning: as often there as anywhere. */
    for (size_t i = 1 + mutate_below(&m, 6); i > 0; i--)
        mutate_once(&m, bytes_of, mutate_below(&m, 3) == 0 && bytes > 512 ? 512 : bytes);
    if (mutate_below(&m, 16) == 0)
        bytes = mutate_below(&m, bytes + 1);
    save(s->path, bytes);
    for (int i = 0; i < 2; i++) {
        fill_heap(i == 0 ? 0x5a : 0xc3);
        (void)alarm(SECONDS);
        if (read_scene(s->canary[i], &ignored) != PB_OK) {
            (void)fprintf(stderr, "%s cannot be read\n", s->canary[i]);
            _exit(3);
        }
        (void)alarm(SECONDS);
        codes[i] = read_scene(s->path, &hashes[i]);
    }
    (void)alarm(0);
    bool same = codes[0] == codes[1] && hashes[0] == hashes[1];
    shared->accepted += same && codes[0] == PB_OK;
    shared->refused += same && codes[0] != PB_OK;
    if (same)
        return;
    shared->wrong++;
    printf("scene %lu (seed %lu): %s, then %s: what is read depends on what was read before\n",
           shared->index, s->seed, codes[0] ? pb_code_id(codes[0]) : "ok",
           codes[1] ? pb_code_id(codes[1]) : "ok");
    (void)fflush(stdout);
    if (s->keep) {
        char kept[64];
        (void)snprintf(kept, sizeof kept, "mutated-%lu-%lu.tif", s->seed, shared->index);
        save(kept, bytes);
    }
}

static void batch(struct session *s)
{
    unsigned long end = s->shared->index + BATCH;
    struct rusage usage;
    for (; s->shared->index < s->count && s->shared->index < end; s->shared->index++)
        one(s);
    (void)getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss > RSS_MIB * 1024L) {
        s->shared->wrong++;
        printf("scenes before %lu (seed %lu): %ld MiB resident\n", s->shared->index, s->seed,
               usage.ru_maxrss / 1024);
        (void)fflush(stdout);
    }
    _exit(0);
}

/* Every copy, in processes of a batch; one that ends a process is named and passed over. */
static void run(struct session *s)
{
    while (s->shared->index < s->count) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            batch(s);
        if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) == 3) {
            (void)fprintf(stderr, "the trial itself failed\n");
            exit(3);
        }
        if (status == 0)
            continue;
        s->shared->wrong++;
        printf("scene %lu (seed %lu): %s %d\n", s->shared->index, s->seed,
               WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        s->shared->index++;
    }
}

int main(int argc, char **argv)
{
    struct session s = {.count = 100, .seed = 1};
    for (int c; (c = getopt(argc, argv, "n:s:a:b:k")) != -1;) {
        if (c == 'n')
            s.count = strtoul(optarg, NULL, 10);
        else if (c == 's')
            s.seed = strtoul(optarg, NULL, 10);
        else if (c == 'k')
            s.keep = true;
        else if (c == 'a' || c == 'b')
            s.canary[c - 'a'] = optarg;
        else
            return 2;
    }
    s.scene = argv + optind;
    s.n_scenes = (size_t)(argc - optind);
    if (s.n_scenes == 0 || s.canary[0] == NULL || s.canary[1] == NULL)
        return 2;
    s.shared =
        mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.shared == MAP_FAILED)
        return 3;
    (void)snprintf(s.path, sizeof s.path, "/tmp/pb_mutate_%d.tif", (int)getpid());
    pb_raster_init();
    run(&s);
    (void)unlink(s.path);
    printf("%lu scenes: %lu accepted, %lu refused, %lu wrong\n", s.count, s.shared->accepted,
           s.shared->refused, s.shared->wrong);
    return s.shared->wrong > 0;
}
