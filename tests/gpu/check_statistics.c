/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Statistics, percentiles and counts of values that a GPU finds in planes against the CPU's, to the
 * last bit (statistics_cases.h), and the speed of a scene's tiles.
 *
 *   check_statistics [--quick]     0 equal; 1 not; 77 no GPU or built without CUDA
 *
 * --quick times nothing: for running under compute-sanitizer. */
#ifndef PB_HAVE_CUDA
#include <stdio.h>

int main(void)
{
    (void)fprintf(stderr, "skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/reduce/percentiles.h"
#include "kernels/reduce/percentiles_device.h"
#include "kernels/reduce/value_counts.h"
#include "kernels/reduce/value_table.h"
#include "pipeline/numbers/value_tally.h"
#include "tests/statistics_cases.h"
#include "tests/gpu/check_device.h"

/* All cases in one call. */
static bool check_cases(void)
{
    struct pb_statistics_plane planes[STATISTICS_CASES];
    struct pb_statistics_part *parts = malloc(STATISTICS_CASES * sizeof *parts);
    static struct statistics_found want[STATISTICS_CASES], got;
    bool good = true;
    if (parts == NULL)
        abort();
    for (int i = 0; i < STATISTICS_CASES; i++) {
        const struct statistics_case *c = &statistics_cases[i];
        const size_t bytes = statistics_case_px(c) * sizeof(float);
        float *px = malloc(bytes);
        if (px == NULL)
            abort();
        statistics_case_fill(c, px);
        statistics_by_cpu(c, px, &want[i]);
        planes[i] = (struct pb_statistics_plane){on_device(px, bytes), (uint32_t)(c->w + c->extra),
                                                 c->w, c->h};
        free(px);
    }
    struct pb_statistics_plane *listed = on_device(planes, sizeof planes);
    struct pb_statistics_part *there = on_device(NULL, STATISTICS_CASES * sizeof *parts);
    if (pb_statistics_cuda(listed, STATISTICS_CASES, UINT64_C(1) << 17, there, NULL) < 0)
        good = false;
    MUST(cudaMemcpy(parts, there, STATISTICS_CASES * sizeof *parts, cudaMemcpyDeviceToHost));
    for (int i = 0; i < STATISTICS_CASES; i++) {
        statistics_by_device(&parts[i], &got);
        const char *what = statistics_difference(&want[i], &got);
        if (what != NULL)
            (void)fprintf(stderr, "%s: the %s differs\n", statistics_cases[i].name, what);
        good = good && what == NULL;
        MUST(cudaFree((void *)(uintptr_t)planes[i].data));
    }
    MUST(cudaFree(listed));
    MUST(cudaFree(there));
    free(parts);
    return good;
}

enum { PERCENTILES = 3 };
static const double wanted[PERCENTILES] = {2, 50, 98};

/* A round over one plane, into `part`. */
static void add_plane(const struct statistics_case *c, const float *px, bool on_gpu,
                      struct pb_percentiles *part)
{
    static const struct pb_samples any = {.n = 0};
    const size_t bytes = pb_percentiles_bytes(PERCENTILES, &any);
    struct pb_statistics_plane plane = {px, (uint32_t)(c->w + c->extra), c->w, c->h};
    if (!on_gpu) {
        for (int32_t y = 0; y < c->h; y++)
            pb_percentiles_add(part, px + (size_t)y * plane.row_px, (size_t)c->w);
        return;
    }
    float *there = on_device(px, statistics_case_px(c) * sizeof *px);
    plane.data = there;
    struct pb_statistics_plane *listed = on_device(&plane, sizeof plane);
    struct pb_percentiles *state = on_device(part, bytes);
    if (pb_percentiles_cuda(state, listed, 1, UINT64_C(1) << 17, NULL) < 0)
        exit(1);
    MUST(cudaMemcpy(part, state, bytes, cudaMemcpyDeviceToHost));
    MUST(cudaFree(there));
    MUST(cudaFree(listed));
    MUST(cudaFree(state));
}

static void percentiles(const struct statistics_case *c, const float *px, bool on_gpu, double *out)
{
    static const struct pb_samples any = {.n = 0};
    const size_t bytes = pb_percentiles_bytes(PERCENTILES, &any);
    struct pb_percentiles *all = malloc(bytes), *part = malloc(bytes);
    if (all == NULL || part == NULL)
        abort();
    pb_percentiles_begin(all, wanted, PERCENTILES, &any);
    pb_percentiles_begin(part, wanted, PERCENTILES, &any);
    for (;; pb_percentiles_again(part, all)) {
        add_plane(c, px, on_gpu, part);
        pb_percentiles_merge(all, part);
        if (pb_percentiles_end(all, out))
            break;
    }
    free(all);
    free(part);
}

static bool check_percentiles(void)
{
    bool good = true;
    for (int i = 0; i < STATISTICS_CASES; i++) {
        const struct statistics_case *c = &statistics_cases[i];
        double want[PERCENTILES], got[PERCENTILES];
        float *px = malloc(statistics_case_px(c) * sizeof *px);
        if (px == NULL)
            abort();
        statistics_case_fill(c, px);
        percentiles(c, px, false, want);
        percentiles(c, px, true, got);
        for (int k = 0; k < PERCENTILES; k++)
            if (got[k] != want[k] && (got[k] == got[k] || want[k] == want[k])) {
                (void)fprintf(stderr, "%s: percentile %g is %.9g, not %.9g\n", c->name, wanted[k],
                              got[k], want[k]);
                good = false;
            }
        free(px);
    }
    return good;
}

enum { VALUES = PB_VALUE_TALLY_VALUES, SIDE_PX = 512, MANY = 6 };

static struct pb_value_counts *make_counts(uint32_t entries)
{
    struct pb_value_counts *counts = malloc(pb_value_counts_bytes(entries));
    if (counts == NULL)
        abort();
    pb_value_counts_begin(counts, entries);
    return counts;
}

/* Queues the counting of the values of n planes, two at a time, in a new table. */
static void count_values(struct pb_value_table *table, struct pb_value_table *spare,
                         const struct pb_statistics_plane *list, uint32_t n)
{
    if (pb_value_table_begin_cuda(table, VALUES, NULL) < 0 ||
        pb_value_table_begin_cuda(spare, VALUES, NULL) < 0)
        exit(1);
    for (uint32_t i = 0; i < n; i += 2) {
        const struct pb_value_planes two = {list + i, 2, 1, 0, SIDE_PX};
        if (pb_value_table_add_cuda(table, spare, &two, NULL) < 0)
            exit(1);
    }
}

/* Counts planes of SIDE_PX x SIDE_PX like a table's planes, two at a time. */
static struct pb_value_counts *count_there(const float *there, uint32_t n)
{
    struct pb_statistics_plane planes[MANY];
    const uint32_t parts = pb_value_table_parts(VALUES);
    struct pb_value_table *table = on_device(NULL, pb_value_table_bytes(VALUES)),
                          *spare = on_device(NULL, pb_value_table_bytes(VALUES));
    struct pb_value_part *listed = on_device(NULL, parts * sizeof *listed);
    struct pb_value_counts *all = make_counts(VALUES);
    for (uint32_t i = 0; i < n; i++)
        planes[i] = (struct pb_statistics_plane){there + (size_t)i * SIDE_PX * SIDE_PX, SIDE_PX,
                                                 SIDE_PX, SIDE_PX};
    struct pb_statistics_plane *list = on_device(planes, n * sizeof *planes);
    count_values(table, spare, list, n);
    if (pb_value_table_list_cuda(table, VALUES, listed, NULL) < 0)
        exit(1);
    MUST(cudaDeviceSynchronize());
    struct pb_value_part *here = on_host(listed, parts * sizeof *listed);
    for (uint32_t i = 0; i < parts; i++)
        if (!pb_value_counts_take_part(all, &here[i]))
            exit(1);
    MUST(cudaFree(table));
    MUST(cudaFree(spare));
    MUST(cudaFree(listed));
    MUST(cudaFree(list));
    free(here);
    pb_value_counts_sort(all);
    return all;
}

static struct pb_value_counts *count_here(const float *px, uint32_t n)
{
    struct pb_value_counts *all = make_counts(VALUES), *part = make_counts(1 << 16);
    for (size_t done = 0; done < (size_t)n * SIDE_PX * SIDE_PX;) {
        done += pb_value_counts_add(part, 0, px + done, (size_t)n * SIDE_PX * SIDE_PX - done);
        if (!pb_value_counts_merge(all, part))
            exit(1);
    }
    free(part);
    pb_value_counts_sort(all);
    return all;
}

/* Few values, and more than fit at level 0. */
static bool check_values(void)
{
    const size_t n = (size_t)MANY * SIDE_PX * SIDE_PX;
    float *px = malloc(n * sizeof *px);
    bool good = px != NULL;
    for (int kind = 0; kind < 2 && good; kind++) {
        uint64_t state = UINT64_C(88172645463325252);
        size_t a, b;
        for (size_t i = 0; i < n; i++)
            px[i] = statistics_value(kind, &state);
        float *there = on_device(px, n * sizeof *px);
        struct pb_value_counts *want = count_here(px, MANY), *got = count_there(there, MANY);
        const struct pb_value_count *x = pb_value_counts_of(want, 0, &a);
        const struct pb_value_count *y = pb_value_counts_of(got, 0, &b);
        good = a == b && pb_value_counts_level(want) == pb_value_counts_level(got);
        for (size_t i = 0; i < a && good; i++)
            good = x[i].key == y[i].key && x[i].n == y[i].n;
        (void)printf("%zu values at level %u, of the GPU %zu at %u%s\n", a,
                     pb_value_counts_level(want), b, pb_value_counts_level(got),
                     good ? "" : ": they differ");
        MUST(cudaFree(there));
        free(want);
        free(got);
    }
    free(px);
    return good;
}

/* The first round. */
static void measure_percentiles(const struct pb_statistics_plane *listed, uint32_t n, size_t px,
                                cudaEvent_t begin, cudaEvent_t end)
{
    static const struct pb_samples any = {.n = 0};
    const size_t bytes = pb_percentiles_bytes(PERCENTILES, &any);
    struct pb_percentiles *part = malloc(bytes);
    float ms = 0;
    if (part == NULL)
        abort();
    pb_percentiles_begin(part, wanted, PERCENTILES, &any);
    struct pb_percentiles *state = on_device(part, bytes);
    for (int i = 0; i < 2; i++) { /* the first one warms up */
        MUST(cudaEventRecord(begin, NULL));
        if (pb_percentiles_cuda(state, listed, n, px, NULL) < 0)
            exit(1);
        MUST(cudaEventRecord(end, NULL));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
    }
    (void)printf("a round of percentiles of them: %.2f ms, %.0f GB/s\n", (double)ms,
                 (double)(n * px * sizeof(float)) / (double)ms / 1e6);
    MUST(cudaFree(state));
    free(part);
}

/* Counts of values, two tiles at a time. */
static void measure_values(const struct pb_statistics_plane *listed, uint32_t n, size_t px,
                           const char *what, cudaEvent_t begin, cudaEvent_t end)
{
    struct pb_value_table *table = on_device(NULL, pb_value_table_bytes(VALUES)),
                          *spare = on_device(NULL, pb_value_table_bytes(VALUES));
    float ms = 0;
    for (int i = 0; i < 2; i++) { /* the first one warms up */
        MUST(cudaEventRecord(begin, NULL));
        count_values(table, spare, listed, n);
        MUST(cudaEventRecord(end, NULL));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
    }
    (void)printf("counts of %s in them: %.2f ms, %.0f GB/s\n", what, (double)ms,
                 (double)(n * px * sizeof(float)) / (double)ms / 1e6);
    MUST(cudaFree(table));
    MUST(cudaFree(spare));
}

static void measure(void)
{
    enum { SIDE = 512, TILES = 484, RUNS = 5 };
    const struct statistics_case c = {"a tile", SIDE, SIDE, 0, 0};
    const size_t px = statistics_case_px(&c);
    static struct pb_statistics_plane planes[TILES];
    float *tile = malloc(px * sizeof *tile), *there = on_device(NULL, TILES * px * sizeof *there);
    cudaEvent_t begin, end;
    float best = 1e30f;
    if (tile == NULL)
        abort();
    statistics_case_fill(&c, tile);
    for (size_t i = 0; i < TILES; i++) {
        MUST(cudaMemcpy(there + i * px, tile, px * sizeof *tile, cudaMemcpyHostToDevice));
        planes[i] = (struct pb_statistics_plane){there + i * px, SIDE, SIDE, SIDE};
    }
    struct pb_statistics_plane *listed = on_device(planes, sizeof planes);
    struct pb_statistics_part *parts = on_device(NULL, TILES * sizeof *parts);
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    for (int i = 0; i <= RUNS; i++) {
        float ms;
        MUST(cudaEventRecord(begin, NULL));
        if (pb_statistics_cuda(listed, TILES, px, parts, NULL) < 0)
            exit(1);
        MUST(cudaEventRecord(end, NULL));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
        best = i > 0 && ms < best ? ms : best;
    }
    (void)printf("statistics of %d tiles of %d px: %.2f ms, %.0f GB/s\n", TILES, SIDE, (double)best,
                 (double)(TILES * px * sizeof(float)) / (double)best / 1e6);
    measure_percentiles(listed, TILES, px, begin, end);
    measure_values(listed, TILES, px, "12000 values", begin, end);
    for (size_t i = 0; i < px; i++)
        tile[i] += (float)i * 1e-9f;
    for (size_t i = 0; i < TILES; i++) { /* each tile has values of its own */
        for (size_t k = 0; k < px; k++)
            tile[k] *= 1.0001f;
        MUST(cudaMemcpy(there + i * px, tile, px * sizeof *tile, cudaMemcpyHostToDevice));
    }
    measure_values(listed, TILES, px, "values that are all different", begin, end);
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
    MUST(cudaFree(parts));
    MUST(cudaFree(listed));
    MUST(cudaFree(there));
    free(tile);
}

int main(int argc, char **argv)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        (void)fprintf(stderr, "skipped: no GPU\n");
        return 77;
    }
    bool good = check_cases();
    good = check_percentiles() && good;
    good = check_values() && good;
    if (good)
        (void)printf("%d planes have the statistics and percentiles of the CPU\n",
                     STATISTICS_CASES);
    if (argc < 2 || strcmp(argv[1], "--quick") != 0)
        measure();
    return good ? 0 : 1;
}
#endif
