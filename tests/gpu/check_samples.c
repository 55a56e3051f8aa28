/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_samples [--speed]
 * Makes planes of random blocks of every size of samples, number of samples and predictor on the
 * GPU, and compares with the host's. --speed: then how fast, of 500 blocks. Exits 1 at a
 * difference. */
#include <stdio.h>

#ifndef PB_HAVE_CUDA
int main(void)
{
    (void)puts("skipped: this build has no CUDA");
    return 77;
}
#else
#include "kernels/codec/unpredict_device.h"
#include "pipeline/codec/unpredict.h"
#include "tests/tools/mutate.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void must(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        (void)fprintf(stderr, "check_samples: %s: %s\n", what, cudaGetErrorString(rc));
        exit(1);
    }
}

static void *need(void *p)
{
    if (p == NULL) {
        (void)fprintf(stderr, "check_samples: out of memory\n");
        exit(1);
    }
    return p;
}

static size_t whole(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

struct samples {
    struct pb_unpredict_form form;
    struct pb_unpredict_block block; /* one of those at `in` and `out`, in sequence */
    uint32_t rows, n;
    uint8_t *in, *out;
    size_t in_bytes, out_bytes; /* sizes of one block */
};

static void run_samples(const struct samples *s, float *out_ms)
{
    struct pb_unpredict_block *blocks = need(calloc(s->n, sizeof *blocks)), *there;
    cudaEvent_t from, to;
    for (uint32_t i = 0; i < s->n; i++) {
        blocks[i] = s->block;
        blocks[i].in = s->in + i * s->in_bytes;
        blocks[i].out = s->out + i * s->out_bytes;
    }
    must(cudaMalloc((void **)&there, s->n * sizeof *there), "memory");
    must(cudaMemcpy(there, blocks, s->n * sizeof *there, cudaMemcpyHostToDevice), "upload");
    must(cudaEventCreate(&from), "event");
    must(cudaEventCreate(&to), "event");
    for (int i = 0; i < 2; i++) { /* the first one loads the kernel */
        must(cudaEventRecord(from, NULL), "event");
        if (pb_unpredict_cuda(&s->form, there, s->n, s->block.h, NULL) < 0)
            exit(1);
        must(cudaEventRecord(to, NULL), "event");
        must(cudaDeviceSynchronize(), "unpredict");
        must(cudaEventElapsedTime(out_ms, from, to), "event");
    }
    (void)cudaFree(there);
    free(blocks);
}

/* Compares the first block's planes with the host's. */
static bool compare_samples(const struct samples *s, const uint8_t *in, const uint8_t *out)
{
    const struct pb_unpredict_form *f = &s->form;
    size_t size = f->sample_bytes, row = (size_t)f->block_w * f->n_samples * size;
    uint8_t *work = need(malloc(2 * row)), *want = need(malloc(f->block_w * size));
    bool same = true;
    for (uint32_t y = 0; y < s->block.h; y++) {
        memcpy(work, in + (s->block.top + y) * row, row);
        pb_unpredict_row((int)f->predictor, size, f->swap != 0, work, f->block_w, f->n_samples,
                         work + row);
        for (uint32_t p = 0; p < f->n_planes; p++) {
            pb_gather_samples(work + (s->block.left * f->n_samples + f->sample[p]) * size, size,
                              f->n_samples, s->block.w, want);
            same = same && memcmp(want, out + p * s->block.plane_bytes + y * s->block.row_bytes,
                                  s->block.w * size) == 0;
        }
    }
    free(work);
    free(want);
    return same;
}

/* Blocks of 512 x 512 pixels of random bytes; those that are cut begin and end inside. */
static bool check_samples(uint32_t size, uint32_t bands, uint32_t predictor, bool cut, bool speed)
{
    struct samples s = {.rows = 512, .n = speed ? 500 : 2};
    struct mutate m = {size * 64 + bands * 8 + predictor};
    float ms = 0;
    s.form = (struct pb_unpredict_form){.sample_bytes = size,
                                        .predictor = predictor,
                                        .swap = predictor < 3 && cut,
                                        .n_samples = bands,
                                        .block_w = cut ? 509 : 512,
                                        .n_planes = bands};
    for (uint32_t p = 0; p < bands; p++)
        s.form.sample[p] = (uint16_t)(bands - 1 - p);
    s.block = (struct pb_unpredict_block){
        .left = cut ? 3 : 0, .top = cut ? 1 : 0, .w = cut ? 490 : 512, .h = cut ? 500 : 512};
    s.block.row_bytes = s.block.w * (size_t)size;
    s.block.plane_bytes = s.block.row_bytes * s.block.h;
    s.in_bytes = whole((size_t)s.form.block_w * bands * size * s.rows);
    s.out_bytes = s.block.plane_bytes * bands;
    uint8_t *in = need(malloc(s.in_bytes)), *out = need(malloc(s.out_bytes));
    for (size_t i = 0; i < s.in_bytes; i++)
        in[i] = (uint8_t)mutate_next(&m);
    must(cudaMalloc((void **)&s.in, s.in_bytes * s.n), "memory");
    must(cudaMalloc((void **)&s.out, s.out_bytes * s.n), "memory");
    must(cudaMemcpy(s.in, in, s.in_bytes, cudaMemcpyHostToDevice), "upload");
    run_samples(&s, &ms);
    must(cudaMemcpy(out, s.out, s.out_bytes, cudaMemcpyDeviceToHost), "download");
    bool same = compare_samples(&s, in, out);
    if (speed)
        (void)printf("speed, planes of %u samples of %u bytes, predictor %u: %.2f ms, %.0f GB/s "
                     "read and written\n",
                     bands, size, predictor, (double)ms,
                     (double)(s.in_bytes + s.out_bytes) * s.n / 1e6 / (double)ms);
    if (!same)
        (void)printf("planes of %u samples of %u bytes, predictor %u: wrong\n", bands, size,
                     predictor);
    (void)cudaFree(s.in);
    (void)cudaFree(s.out);
    free(in);
    free(out);
    return same;
}

static bool check_all_samples(bool speed)
{
    static const uint32_t fast[][3] = {{2, 4, 2}, {2, 1, 2},  {1, 3, 2}, {1, 1, 2},
                                       {2, 1, 1}, {2, 10, 2}, {4, 1, 3}, {4, 4, 3}};
    bool good = true;
    for (uint32_t size = 1; size <= 8; size *= 2)
        for (uint32_t bands = 1; bands <= 5; bands++)
            for (uint32_t predictor = 1; predictor <= (size < 4 ? 2u : 3u); predictor++)
                for (int cut = 0; cut < 2; cut++)
                    good = check_samples(size, bands, predictor, cut != 0, false) && good;
    for (size_t i = 0; speed && i < sizeof fast / sizeof *fast; i++)
        good = check_samples(fast[i][0], fast[i][1], fast[i][2], false, true) && good;
    (void)printf("planes of samples: %s\n", good ? "as the host makes them" : "WRONG");
    return good;
}

int main(int argc, char **argv)
{
    return check_all_samples(argc > 1 && strcmp(argv[1], "--speed") == 0) ? 0 : 1;
}
#endif
