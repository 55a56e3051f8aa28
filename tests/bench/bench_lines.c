/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_lines CONFIG DIRECTORY LINES RATE [GROUP [WIDTH [FILE_CONFIG]]]: a process appends LINES
 * lines of 4 bands of uint16 to a growing scene at RATE lines a second, GROUP at a time, while this
 * process computes them with the pipeline of CONFIG. Prints the times from the publication of a
 * line to its values and to its alert, CPU seconds and memory; then computes the closed file, with
 * FILE_CONFIG if it is given, and compares all products. DIRECTORY must not exist. Exit code 0: all
 * lines arrived and all products are equal. */
#include "config/base/clock.h"
#include "config/config.h"
#include "config/match.h"
#include "config/yaml/report.h"
#include "pipeline/lines/segment.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BANDS = 4, KINDS = 256, ALERT_EVERY = 128, ALERTS_MAX = 1 << 16, SPIN_NS = 200000 };

struct bench {
    const struct pb_config *config[2]; /* config[true]: for the growing file */
    const char *directory;
    char input[4096];
    int32_t lines, width;
    uint32_t group;
    double rate;
    struct pb_segment *segment; /* to read: times of lines */
    _Atomic uint32_t n_alerts;
    double alert_us[ALERTS_MAX];
    double late_us; /* longest delay of a group against its time, in the publishing process */
};

/* --- the sensor --- */

/* Makes KINDS lines that differ; every ALERT_EVERY-th one has a bright target. */
static uint16_t *make_lines(const struct bench *b)
{
    uint16_t *const data = malloc((size_t)KINDS * BANDS * (size_t)b->width * sizeof *data);
    for (size_t i = 0; data != NULL && i < (size_t)KINDS * BANDS * (size_t)b->width; i++) {
        const size_t x = i % (size_t)b->width, band = i / (size_t)b->width % BANDS;
        const size_t line = i / (size_t)b->width / BANDS;
        const uint32_t noise = (uint32_t)(i * 2654435761u) >> 26;
        data[i] = (uint16_t)(1000 + 400 * band + (x * 7 + line * 3) / 16 % 512 + noise);
        if (line % ALERT_EVERY == 5 && x / 8 == 100)
            data[i] = band == 3 ? 60000 : 10;
    }
    return data;
}

static void wait_until(int64_t ns)
{
    const int64_t now = (int64_t)pb_clock_mono_ns();
    if (ns - now > SPIN_NS) {
        const int64_t to = ns - SPIN_NS / 2;
        const struct timespec at = {to / 1000000000, to % 1000000000};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    while ((int64_t)pb_clock_mono_ns() < ns)
        ;
}

static int feed(struct bench *b, struct pb_segment *segment, const uint16_t *data)
{
    struct pb_err err = {0};
    const size_t line_bytes = (size_t)b->width * sizeof *data;
    const int64_t start = (int64_t)pb_clock_mono_ns() + 300000000;
    double late = 0;
    for (int32_t line = 0; line < b->lines;) {
        const uint32_t left = (uint32_t)(b->lines - line), at = (uint32_t)line % KINDS;
        uint32_t n = left < b->group ? left : b->group;
        n = n < KINDS - at ? n : KINDS - at;
        const int64_t due = start + (int64_t)((double)line * 1e9 / b->rate);
        wait_until(due);
        const double own = ((double)pb_clock_mono_ns() - (double)due) / 1e3;
        late = own > late ? own : late;
        const struct pb_segment_group group = {data + (size_t)at * BANDS * (size_t)b->width,
                                               line_bytes * BANDS,
                                               line_bytes,
                                               n,
                                               NULL,
                                               0};
        if (pb_segment_append(segment, &group, NULL) != (int)n)
            return 1;
        line += (int32_t)n;
    }
    const double took = ((double)pb_clock_mono_ns() - (double)start) / 1e9;
    printf("sensor: %d lines in %.2f s (%.0f lines/s, %.0f MB/s), at most %.0f us late\n",
           (int)b->lines, took, b->lines / took,
           (double)b->lines * (double)(line_bytes * BANDS) / took / 1e6, late);
    (void)fflush(stdout);
    return pb_segment_close(segment, &err) == 0 ? 0 : 1;
}

/* Starts the process that creates and fills the segment. Returns its id when the segment exists. */
static pid_t start_feed(struct bench *b)
{
    int ready[2];
    char byte;
    if (pipe(ready) < 0)
        return -1;
    const pid_t pid = fork();
    if (pid != 0) {
        (void)close(ready[1]);
        const ssize_t n = pid > 0 ? read(ready[0], &byte, 1) : 0;
        (void)close(ready[0]);
        return n == 1 ? pid : -1;
    }
    struct pb_err err = {0};
    struct pb_segment *segment = NULL;
    const struct pb_segment_spec spec = {.width = b->width,
                                         .height = b->lines,
                                         .n_bands = BANDS,
                                         .type = PB_U16,
                                         .has_nodata = true,
                                         .has_transform = true,
                                         .transform = {500000, 10, 0, 4600000, 0, -10},
                                         .epsg = 32633};
    uint16_t *const data = make_lines(b);
    int rc = data == NULL || pb_segment_create(b->input, &spec, &err, &segment) < 0;
    if (rc != 0)
        (void)fprintf(stderr, "%s\n", err.msg);
    if (rc == 0 && write(ready[1], "r", 1) == 1)
        rc = feed(b, segment, data);
    pb_segment_destroy(segment);
    free(data);
    _exit(rc);
}

/* --- the run --- */

static void on_alert(void *user, const struct pb_alert *alert)
{
    struct bench *const b = user;
    const int64_t now = (int64_t)pb_clock_mono_ns();
    const uint32_t i = atomic_fetch_add(&b->n_alerts, 1);
    if (b->segment != NULL && i < ALERTS_MAX)
        b->alert_us[i] =
            (double)(now - pb_segment_line(b->segment, alert->line).published_ns) / 1e3;
}

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *const f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kib) == 1)
            break;
    if (f != NULL)
        (void)fclose(f);
    return kib;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_report(struct bench *b, const struct pb_run_report *r, double cpu_s)
{
    uint32_t n = atomic_load(&b->n_alerts);
    n = n < ALERTS_MAX ? n : ALERTS_MAX;
    printf("run: %s, sync %s%s%s, tiles of %d px; CPU %.2f s (%.0f us a line)\n", r->device,
           r->sync, r->sync_why[0] != '\0' ? ": " : "", r->sync_why, (int)r->tile_px, cpu_s,
           cpu_s * 1e6 / b->lines);
    printf("values: %llu times, p50 %.1f us, p99 %.1f us, most %.1f us\n",
           (unsigned long long)r->latency.n, (double)r->latency.p50_ns / 1e3,
           (double)r->latency.p99_ns / 1e3, (double)r->latency.most_ns / 1e3);
    if (r->link.used)
        printf("device: %u launches of %u blocks; %s\n", r->link.launches, r->link.blocks,
               r->link.plan);
    if (n == 0)
        return;
    qsort(b->alert_us, n, sizeof b->alert_us[0], by_value);
    printf("alerts: %u, p50 %.1f us, p99 %.1f us, most %.1f us\n", n, b->alert_us[n / 2],
           b->alert_us[(size_t)n * 99 / 100], b->alert_us[n - 1]);
}

/* Waits for the run; prints the memory ten times meanwhile. */
static int wait_run(const struct bench *b, struct pb_run *run, bool is_live, struct pb_err *err)
{
    const int64_t step_ms = (int64_t)(b->lines / b->rate * 100) + 1;
    int rc = -ETIMEDOUT;
    while (rc == -ETIMEDOUT) {
        rc = pb_run_wait(run, is_live ? step_ms : -1, err);
        if (is_live)
            printf("%ld MiB%s", resident_kib() >> 10, rc == -ETIMEDOUT ? ", " : " of memory\n");
    }
    return rc;
}

static double cpu_seconds(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int run_one(struct bench *b, bool is_live, struct pb_run **out_run,
                   struct pb_run_result *result)
{
    struct pb_err err = {0};
    char products[4200];
    (void)snprintf(products, sizeof products, "%s/%s", b->directory, is_live ? "live" : "file");
    static struct pb_scene scene[2];
    scene[is_live] = pb_scene_at(b->input);
    const struct pb_run_options options = {.config = b->config[is_live],
                                           .pipeline =
                                               pb_config_match(b->config[is_live], b->input),
                                           .input = &scene[is_live],
                                           .products = products,
                                           .alert = on_alert,
                                           .user = b};
    const double cpu = cpu_seconds();
    int rc = options.pipeline != NULL ? pb_run_create(&options, &err, out_run) : -1;
    rc = rc ? rc : pb_run_start(*out_run, &err);
    rc = rc ? rc : wait_run(b, *out_run, is_live, &err);
    const double computed = cpu_seconds() - cpu;
    rc = rc ? rc : pb_run_publish(*out_run, &err, result);
    if (rc != 0)
        (void)fprintf(stderr, "%s: %s\n", b->input, err.msg);
    else if (is_live)
        print_report(b, &result->report, computed);
    else
        printf("file: %lld ms, CPU %.2f s\n", (long long)result->report.elapsed_ms, computed);
    return rc;
}

/* --- comparison --- */

static bool is_same_file(const char *a, const char *b)
{
    enum { PART = 1 << 20 };
    static char x[PART], y[PART];
    FILE *const f = fopen(a, "rbe"), *const g = fopen(b, "rbe");
    bool same = f != NULL && g != NULL;
    for (size_t n = PART; same && n == PART;) {
        n = fread(x, 1, PART, f);
        same = fread(y, 1, PART, g) == n && memcmp(x, y, n) == 0;
    }
    if (f != NULL)
        (void)fclose(f);
    if (g != NULL)
        (void)fclose(g);
    return same;
}

static int compare(const struct pb_run_result *live, const struct pb_run_result *file)
{
    int differ = live->n_products != file->n_products;
    for (size_t i = 0; i < live->n_products && !differ; i++) {
        char a[4500], b[4500];
        (void)snprintf(a, sizeof a, "%s/%s", live->directory, live->products[i].file);
        (void)snprintf(b, sizeof b, "%s/%s", file->directory, file->products[i].file);
        if (strstr(a, ".stac.") == NULL && !is_same_file(a, b)) {
            printf("%s differs\n", live->products[i].file);
            differ = 1;
        }
    }
    printf("products: %zu, %s\n", live->n_products, differ ? "NOT EQUAL" : "all equal");
    return differ;
}

static int measure(struct bench *b)
{
    struct pb_run *live = NULL, *file = NULL;
    struct pb_run_result of_live, of_file;
    struct pb_err err = {0};
    int status = 1;
    const pid_t pid = start_feed(b);
    const int fd = pid > 0 ? open(b->input, O_RDONLY | O_CLOEXEC) : -1;
    int rc = fd >= 0 ? pb_segment_open(fd, b->input, &err, &b->segment) : -1;
    rc = rc ? rc : run_one(b, true, &live, &of_live);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0)
        rc = -1;
    pb_segment_destroy(b->segment);
    b->segment = NULL;
    rc = rc ? rc : run_one(b, false, &file, &of_file);
    rc = rc ? rc : compare(&of_live, &of_file);
    pb_run_destroy(live);
    pb_run_destroy(file);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

static struct pb_config *load(const char *path)
{
    static struct pb_err_list errors;
    struct pb_config *config = NULL;
    if (pb_config_load(path, &pb_products, &errors, &config) != 0)
        (void)fprintf(stderr, "%s\n", errors.err[0].msg);
    return config;
}

int main(int argc, char **argv)
{
    static struct bench b;
    if (argc < 5) {
        (void)fprintf(stderr,
                      "bench_lines CONFIG DIRECTORY LINES RATE [GROUP [WIDTH [FILE_CONFIG]]]\n");
        return 2;
    }
    b.directory = argv[2];
    b.lines = atoi(argv[3]);
    b.rate = atof(argv[4]);
    b.group = argc > 5 ? (uint32_t)atoi(argv[5]) : 1;
    b.width = argc > 6 ? atoi(argv[6]) : 4096;
    (void)snprintf(b.input, sizeof b.input, "%s/scene.tif", b.directory);
    struct pb_config *const live = load(argv[1]), *const file = load(argc > 7 ? argv[7] : argv[1]);
    b.config[true] = live;
    b.config[false] = file;
    int rc = live != NULL && file != NULL ? mkdir(b.directory, 0700) : -1;
    rc = rc ? rc : measure(&b);
    pb_config_destroy(live);
    pb_config_destroy(file);
    return rc == 0 ? 0 : 1;
}
