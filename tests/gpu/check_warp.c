/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_warp [CASES]
 * AVERAGE and MODE of warps between random grids with seams and poles (tests/warp_cases.h), by the
 * GPU and by the CPU: the same bits. Exits 1 at a difference. */
#include <stdio.h>

#ifndef PB_HAVE_CUDA
int main(void)
{
    (void)puts("skipped: this build has no CUDA");
    return 77;
}
#else
#include "tests/gpu/check_device.h"
#include "tests/warp_cases.h"

/* A warp whose tables are in device memory, and that itself. */
struct device_warp {
    struct pb_warp host;
    struct pb_warp *warp;
};

static struct device_warp upload(const struct pb_warp *warp)
{
    struct device_warp d = {.host = *warp};
    const size_t boxes = (size_t)warp->cols * (size_t)warp->rows;

    d.host.leaf = on_device(warp->leaf, (warp->n_leaf + 1) * sizeof *warp->leaf);
    d.host.tree = on_device(warp->tree, warp->n_tree * sizeof *warp->tree);
    d.host.box = on_device(warp->box, boxes * sizeof *warp->box);
    d.warp = on_device(&d.host, sizeof d.host);
    return d;
}

static void release(struct device_warp *d)
{
    MUST(cudaFree(d->host.leaf));
    MUST(cudaFree(d->host.tree));
    MUST(cudaFree(d->host.box));
    MUST(cudaFree(d->warp));
}

/* Returns how many pixels have other bits on the GPU. */
static size_t compare(const struct warp_case *c, enum pb_resampling how, size_t *valid)
{
    static float here[SIDE * SIDE];
    const struct pb_rect all = {0, 0, c->way.from.w, c->way.from.h};
    struct pb_warp_job job = job_of_case(c, how);
    struct device_warp there = upload(c->warp);
    const struct pb_plane in = {on_device(c->px, (size_t)all.w * (size_t)all.h * sizeof(float)),
                                all};
    const struct pb_plane out = {on_device(NULL, sizeof here), {0, 0, SIDE, SIDE}};
    size_t off = 0;

    if (run_case_cpu(c, &job, here) < 0)
        abort();
    job.warp = there.warp;
    if (pb_warp_run_cuda(&job, &in, NULL, &out, NULL) < 0)
        abort();
    float *const made = on_host(out.data, sizeof here);
    for (int k = 0; k < SIDE * SIDE; k++) {
        off += memcmp(&made[k], &here[k], sizeof here[k]) != 0;
        *valid += made[k] == made[k];
    }
    free(made);
    MUST(cudaFree(in.data));
    MUST(cudaFree(out.data));
    release(&there);
    return off;
}

int main(int argc, char **argv)
{
    static float px[SOURCE_MOST * SOURCE_MOST];
    const int cases = argc > 1 ? atoi(argv[1]) : CASES;
    uint32_t random = 20261128;
    size_t off = 0, torn = 0, valid = 0;

    for (int i = 0; i < cases; i++) {
        struct warp_case c = {.px = px};

        if (make_case(&random, &c) < 0)
            abort();
        for (int how = PB_AVERAGE; how <= PB_MODE; how++)
            off += compare(&c, (enum pb_resampling)how, &valid);
        torn += c.warp->n_torn;
        pb_warp_put(c.warp);
    }
    (void)printf("average and mode of %d pairs of grids: %zu valid pixels, %zu pixels of pieces, "
                 "%zu differ from the CPU's\n",
                 cases, valid, torn, off);
    return off > 0 || torn == 0 || valid == 0;
}
#endif
