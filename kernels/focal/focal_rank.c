/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A rank of windows on the CPU: a sorting network over the pixels of a window, for LANES windows
 * beside each other at a time, so that every comparison is one of vectors. The network is Batcher's
 * merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2 M) without the comparators that
 * the wanted rank does not depend on. temp: the padded rows, then the network. */
#include "kernels/focal/focal_job.h"
#include "kernels/pixel.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define WINDOW_MAX      (PB_FOCAL_WINDOW_SIDE_MAX * PB_FOCAL_WINDOW_SIDE_MAX)
#define COMPARATORS_MAX 4096 /* more than Batcher's for 256 */
#define LANES           32

/* Afterwards the lesser one is at `low`. */
struct comparator {
    uint8_t low, high;
};

struct network {
    size_t n;
    struct comparator comparator[COMPARATORS_MAX];
};
static_assert(WINDOW_MAX <= UINT8_MAX + 1, "a comparator's members are places in a window");

/* All comparators that sort n values. */
static void make_network(size_t n, struct network *network)
{
    size_t top = 1;

    while (2 * top < n)
        top *= 2;
    network->n = 0;
    for (size_t p = top; p > 0; p /= 2) {
        size_t q = top, r = 0, d = p;

        for (;;) {
            for (size_t i = 0; i + d < n; i++)
                if ((i & p) == r)
                    network->comparator[network->n++] =
                        (struct comparator){(uint8_t)i, (uint8_t)(i + d)};
            if (q == p)
                break;
            d = q - p;
            q /= 2;
            r = p;
        }
    }
    assert(network->n <= COMPARATORS_MAX);
}

/* Leaves what the value at `rank` depends on: from the last comparator back. */
static void prune(struct network *network, int32_t rank)
{
    bool needed[WINDOW_MAX + 1] = {false};
    size_t kept = COMPARATORS_MAX;

    needed[rank] = true;
    for (size_t i = network->n; i-- > 0;) {
        const struct comparator c = network->comparator[i];

        if (needed[c.low] || needed[c.high]) {
            needed[c.low] = needed[c.high] = true;
            network->comparator[--kept] = c;
        }
    }
    network->n = COMPARATORS_MAX - kept;
    memmove(network->comparator, network->comparator + kept,
            network->n * sizeof(struct comparator));
}

static struct network *network_of(const struct pb_focal_job *job)
{
    const size_t px = pb_focal_window_temp_px(job->focal, (size_t)job->out->rect.w);

    return (struct network *)(void *)(job->temp + (px + 15) / 16 * 16);
}

size_t pb_focal_rank_temp_px(const struct pb_focal *focal, size_t w)
{
    return (pb_focal_window_temp_px(focal, w) + 15) / 16 * 16 +
           (sizeof(struct network) + sizeof(float) - 1) / sizeof(float);
}

void pb_focal_rank_begin(struct pb_focal_job *job)
{
    struct network *const network = network_of(job);

    assert(job->focal->choice >= 0 && job->focal->choice < job->side * job->side);
    make_network((size_t)job->side * (size_t)job->side, network);
    prune(network, job->focal->choice);
}

/* The windows at window[0] to window[n - 1]. n: 1 .. LANES. */
PB_CLONES static void rank_of_lanes(const float *window, int32_t stride, int32_t side,
                                    const struct network *network, int32_t rank, int32_t n,
                                    float *out)
{
    float value[WINDOW_MAX][LANES], invalid[LANES] = {0.0f};

    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            const float *const from = window + (size_t)y * (size_t)stride + x;
            float *const to = value[y * side + x];

            if (n < LANES)
                memset(to, 0, sizeof value[0]);
            for (int32_t i = 0; i < n; i++) {
                to[i] = from[i] + 0.0f; /* -0 becomes +0 */
                invalid[i] += from[i] - from[i];
            }
        }
    for (size_t k = 0; k < network->n; k++) {
        float *const low = value[network->comparator[k].low];
        float *const high = value[network->comparator[k].high];

        PB_INDEPENDENT
        for (int i = 0; i < LANES; i++) {
            const float a = low[i], b = high[i];

            low[i] = a < b ? a : b;
            high[i] = b < a ? a : b; /* whatever happens to NaN: `invalid` tells */
        }
    }
    for (int32_t i = 0; i < n; i++)
        out[i] = pb_pixel_result(value[rank][i] + invalid[i]);
}

void pb_focal_rank_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const int32_t w = job->out->rect.w;
    int32_t stride;
    const float *const window = pb_focal_find_windows(job, rows, &stride);

    for (int32_t x = 0; x < w; x += LANES)
        rank_of_lanes(window + x, stride, job->side, network_of(job), job->focal->choice,
                      w - x < LANES ? w - x : LANES, out + x);
}
