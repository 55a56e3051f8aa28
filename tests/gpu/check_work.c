/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Resident workers (kernels/work) that make whole products of stored blocks on a GPU: every block's
 * bytes compared with the CPU's, with few and with many workers, over and over; refused pieces,
 * requests to stop, and missing pieces. Then the time of a scene from pinned memory to pinned
 * memory, in turn with streams of launches, whose bytes are compared as well.
 *
 *   check_work [--quick]     0 equal; 1 not; 77 no GPU or built without CUDA; 2 no figures, because
 *                            the kernels were compiled quickly (figures.h)
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
#include "tests/gpu/figures.h"
#include "tests/gpu/work_launches.h"

enum { TURNS = 7, AGAIN = 20 };

static const struct work_case cases[] = {
    {"deflate, float", 300, 260, 128, 128, 4, 2, PB_DEVICE_DEFLATE, false, false, PB_F32,
     PB_ENCODE_RUNS},
    {"every codec, halo", 600, 500, 96, 256, 2, 1, PB_DEVICE_CODECS, true, true, PB_F32,
     PB_ENCODE_RUNS},
    {"LZW, integers", 700, 600, 256, 128, 3, 2, PB_DEVICE_LZW, false, false, PB_I16,
     PB_ENCODE_INTEGERS},
    {"stored, halo", 500, 300, 64, 64, 2, 1, PB_DEVICE_STORED, true, false, PB_U8,
     PB_ENCODE_INTEGERS},
};
enum { CASES = sizeof cases / sizeof *cases };

/* --- bytes ----------------------------------------------------------------------------------- */

static uint32_t compare_blocks(const struct work_gpu *g, const struct encode_reference *want)
{
    uint32_t wrong = 0, n = g->scene.view.encode.batch.n_blocks;
    bool *told = work_host(n, sizeof *told);
    for (uint32_t i = 0, k = 0; k < n; i++) {
        const struct pb_work_record *r = &g->records[i];
        if (r->event != PB_WORK_BLOCK)
            continue;
        k++;
        const char *differs = told[r->number]
                                  ? "how often it was told"
                                  : work_differs(&g->scene, &want[r->number], &r->encoded, g->out);
        told[r->number] = true;
        if (differs != NULL && wrong++ < 5)
            (void)fprintf(stderr, "%s, block %u of %u: %s differs\n", g->scene.of->name, r->number,
                          n, differs);
    }
    free(told);
    return wrong;
}

static struct encode_reference *references(const struct work_gpu *g)
{
    const uint32_t n = g->scene.view.encode.batch.n_blocks;
    struct encode_reference *want = work_host(n, sizeof *want);
    struct work_expect expect;
    work_expect_make(&g->scene, &expect);
    for (uint32_t i = 0; i < n; i++)
        if (!work_expect_block(&g->scene, &expect, i, &want[i]))
            exit(1);
    work_expect_free(&expect);
    return want;
}

/* One after the other, with continuing counters. */
static bool check_case(const struct work_case *of, uint32_t workers, int times)
{
    struct work_gpu g;
    uint32_t wrong = 0;
    work_gpu_make(of, workers, &g);
    struct encode_reference *want = references(&g);
    for (int i = 0; i < times && wrong == 0; i++) {
        (void)work_run(&g, NULL);
        wrong = compare_blocks(&g, want) + (work_stop_word(&g) != WIC_READY_DONE);
    }
    (void)printf("%s: %u pieces, %u blocks, %u workers, %d times: %u wrong\n", of->name,
                 g.scene.n_pieces, g.scene.view.encode.batch.n_blocks, g.workers, times, wrong);
    (void)fflush(stdout);
    for (uint32_t i = 0; i < g.scene.view.encode.batch.n_blocks; i++)
        encode_reference_free(&want[i]);
    free(want);
    work_gpu_free(&g);
    return wrong == 0;
}

/* --- ways out -------------------------------------------------------------------------------- */

/* A request to stop while pieces are missing; then no piece arrives for the limit. */
static bool check_stop(bool late)
{
    struct work_gpu g;
    work_gpu_make(&cases[0], 0, &g);
    work_begin(&g);
    g.scene.view.ready.limit_ns = late ? UINT64_C(50000000) : WORK_LIMIT;
    const double start = work_now_ms();
    work_start(&g);
    work_bring(&g, g.scene.n_pieces - 1);
    MUST(cudaStreamSynchronize(g.up));
    if (!late && wic_ready_stop_behind(&g.scene.view.ready, WIC_READY_ABORTED, g.up) < 0)
        return false;
    MUST(cudaStreamSynchronize(g.work));
    const double ms = work_now_ms() - start;
    const uint32_t word = work_stop_word(&g);
    work_gpu_free(&g);
    (void)printf("%s: left after %.1f ms, stop word %u\n", late ? "nothing comes" : "aborted", ms,
                 word);
    return word == (late ? WIC_READY_LATE : WIC_READY_ABORTED) && ms < 1000;
}

/* A damaged piece is reported; the host brings its decoded bytes and has it opened. */
static bool check_refused(void)
{
    enum { BAD = 3 };
    struct work_gpu g;
    work_gpu_make(&cases[0], 0, &g);
    struct work_scene *s = &g.scene;
    const struct pb_work_piece *piece = &s->piece[BAD];
    struct encode_reference *want = references(&g);
    uint8_t *bytes = work_host(piece->stream.most, 1),
            *stored = work_host(piece->stream.in_bytes, 1);
    uint32_t at = 0, blocks = 0, refused = 0;
    (void)work_run(&g, NULL); /* afterwards the piece's decoded bytes are on the device */
    MUST(cudaMemcpy(bytes, piece->stream.out, piece->stream.most, cudaMemcpyDeviceToHost));
    work_begin(&g);
    memcpy(stored, s->stored[work_kind(s, BAD)].bytes, piece->stream.in_bytes);
    stored[0] ^= 0x40;
    work_start(&g);
    for (uint32_t i = 0; i < s->n_pieces; i++)
        MUST(cudaMemcpyAsync((void *)(uintptr_t)s->piece[i].stream.in,
                             i == BAD ? stored : s->stored[work_kind(s, i)].bytes,
                             s->piece[i].stream.in_bytes, cudaMemcpyHostToDevice, g.up));
    bool good = wic_ready_push_behind(&s->view.ready, PB_WORK_DECODE, s->n_pieces, g.up) == 0;
    while (blocks < s->view.encode.batch.n_blocks) {
        const struct pb_work_record *r = work_next(&g, &at);
        if (r == NULL)
            break;
        blocks += r->event == PB_WORK_BLOCK;
        if (r->event != PB_WORK_REFUSED)
            continue;
        refused += r->number == BAD && r->status == PB_DECODE_BAD;
        MUST(cudaMemcpyAsync(piece->stream.out, bytes, piece->stream.most, cudaMemcpyHostToDevice,
                             g.up));
        good = wic_ready_push_task_behind(&s->view.ready, PB_WORK_OPEN, 0, BAD, g.up) == 0 && good;
    }
    MUST(cudaStreamSynchronize(g.work));
    good = good && refused == 1 && work_stop_word(&g) == WIC_READY_DONE &&
           compare_blocks(&g, want) == 0;
    (void)printf("a damaged piece, repaired by the host: %s\n", good ? "good" : "WRONG");
    for (uint32_t i = 0; i < s->view.encode.batch.n_blocks; i++)
        encode_reference_free(&want[i]);
    free(want);
    free(bytes);
    free(stored);
    work_gpu_free(&g);
    return good;
}

/* --- speed ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *ms)
{
    qsort(ms, TURNS, sizeof *ms, ascending);
    return ms[TURNS / 2];
}

/* Prints the time of the workers by kind of work in `runs` runs. */
static void say_spent(const struct work_gpu *g, int runs)
{
    static const char *const names[PB_WORK_STAGES] = {"pack",  "count",  "strings", "rows",
                                                      "halve", "pixels", "open",    "decode"};
    struct pb_work_spent *spent = on_host(g->scene.view.spent, sizeof *spent);
    const double each = 1e6 * runs * g->workers;
    (void)printf("  ms a worker: parked %.2f", (double)spent->parked_ns / each);
    for (int i = 0; i < PB_WORK_STAGES; i++)
        if (spent->tasks[i] > 0)
            (void)printf(", %s %.2f (%.0f us each)", names[i], (double)spent->ns[i] / each,
                         (double)spent->ns[i] / 1e3 / (double)spent->tasks[i]);
    (void)puts("");
    free(spent);
}

/* With fewer workers on each multiprocessor. */
static void measure_workers(struct work_gpu *g)
{
    const uint32_t all = g->workers;
    for (uint32_t quarters = 1; quarters < 4; quarters++) {
        double ms[TURNS];
        g->workers = all * quarters / 4;
        for (int i = 0; i < TURNS; i++)
            ms[i] = work_run(g, NULL);
        (void)printf("  %u workers: %.2f ms\n", g->workers, median(ms));
    }
    g->workers = all;
}

/* Measures workers, then launches in many slices, in turn. */
static bool measure(const struct work_case *of)
{
    static const uint32_t slices[] = {4, 8, 16};
    enum { WAYS = 3 };
    struct work_gpu g;
    struct work_launches launches[WAYS];
    double resident[TURNS], first[TURNS], by_launches[WAYS][TURNS];
    uint32_t wrong = 0;
    work_gpu_make(of, 0, &g);
    for (int k = 0; k < WAYS; k++)
        work_launches_make(&g, slices[k], &launches[k]);
    (void)work_run(&g, NULL); /* loads the kernels */
    for (int k = 0; k < WAYS; k++)
        (void)work_launches_run(&launches[k]);
    for (int i = 0; i < TURNS; i++) {
        resident[i] = work_run(&g, &first[i]);
        for (int k = 0; k < WAYS; k++) {
            by_launches[k][i] = work_launches_run(&launches[k]);
            wrong += work_launches_compare(&launches[k]);
        }
    }
    uint64_t out_bytes = 0;
    for (uint32_t i = 0; i < g.scene.view.encode.batch.n_blocks; i++)
        out_bytes += g.records[i].encoded.bytes;
    (void)printf("%s: %u pieces, %.0f MB in, %u blocks, %.0f MB out, %u workers: resident %.2f ms "
                 "(first block %.2f); launches in 4, 8, 16 slices %.2f, %.2f, %.2f; %u wrong\n",
                 of->name, g.scene.n_pieces, (double)g.scene.in_bytes / 1e6,
                 g.scene.view.encode.batch.n_blocks, (double)out_bytes / 1e6, g.workers,
                 median(resident), median(first), median(by_launches[0]), median(by_launches[1]),
                 median(by_launches[2]), wrong);
    say_spent(&g, TURNS + 1);
    measure_workers(&g);
    (void)fflush(stdout);
    for (int k = 0; k < WAYS; k++)
        work_launches_free(&launches[k]);
    work_gpu_free(&g);
    return wrong == 0;
}

static const struct work_case speeds[] = {
    {"50 blocks", 3584, 3584, 512, 512, 4, 2, PB_DEVICE_DEFLATE, false, false, PB_F32,
     PB_ENCODE_RUNS},
    {"scene", 10980, 10980, 512, 512, 4, 2, PB_DEVICE_DEFLATE, false, false, PB_F32,
     PB_ENCODE_RUNS},
    {"small blocks", 10980, 10980, 256, 256, 4, 2, PB_DEVICE_DEFLATE, false, false, PB_F32,
     PB_ENCODE_RUNS},
    {"LZW", 10980, 10980, 512, 512, 4, 2, PB_DEVICE_LZW, false, false, PB_F32, PB_ENCODE_RUNS},
    {"halo", 10980, 10980, 512, 512, 4, 2, PB_DEVICE_DEFLATE, true, false, PB_F32, PB_ENCODE_RUNS},
};

int main(int argc, char **argv)
{
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    bool good = true;
    int n = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        (void)fprintf(stderr, "skipped: no GPU\n");
        return 77;
    }
    if (!quick && !figures_are_sound("check_work", ", or compare bytes alone with --quick"))
        return 2;
    for (int i = 0; i < CASES; i++) {
        good = check_case(&cases[i], 1, 1) && good;
        good = check_case(&cases[i], 0, quick ? 1 : AGAIN) && good;
    }
    good = check_stop(false) && good;
    good = check_stop(true) && good;
    good = check_refused() && good;
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds && !quick && good; i++)
        good = measure(&speeds[i]) && good;
    (void)puts(good ? "good" : "WRONG");
    return good ? 0 : 1;
}
#endif
