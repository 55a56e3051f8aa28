/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/codec/inflate_pair.h"

#include "pipeline/codec/inflate_lane.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

/* PAUSE_BYTES: output between two pauses, so that it is summed and taken while it is in the core's
 * cache. OVER_BYTES: output after a pause was due. A stored block has 65535 bytes; the symbols that
 * are decoded with care at the end of the input have PB_INFLATE_IN_ROOM and 16 bytes, of two bits
 * and 258 bytes of output each. */
enum {
    HEAD_BYTES = 2,
    TAIL_BYTES = 4,
    ALIGN = 64,
    PAUSE_BYTES = 96 << 10,
    OVER_BYTES = (PB_INFLATE_IN_ROOM + 16) * 4 * 258 + PB_INFLATE_OUT_ROOM
};
_Static_assert(OVER_BYTES > 65535, "a stored block fits after the pause");

struct pb_inflate_pair {
    struct pb_inflate_lane lane[2];
};

const size_t pb_inflate_pair_bytes = sizeof(struct pb_inflate_pair);

int pb_inflate_pair_create(struct pb_inflate_pair **out_pair)
{
    *out_pair = calloc(1, sizeof **out_pair);
    return *out_pair != NULL ? 0 : -ENOMEM;
}

void pb_inflate_pair_destroy(struct pb_inflate_pair *pair)
{
    free(pair);
}

bool pb_inflate_pair_is_idle(const struct pb_inflate_pair *pair)
{
    return pair->lane[0].state == PB_INFLATE_IDLE && pair->lane[1].state == PB_INFLATE_IDLE;
}

void pb_inflate_pair_stop(struct pb_inflate_pair *pair, unsigned lane)
{
    pair->lane[lane].state = PB_INFLATE_IDLE;
}

/* True for deflate, a window of at most 32 KiB, no dictionary. */
static bool is_zlib(const uint8_t *in)
{
    unsigned head = (unsigned)in[0] << 8 | in[1];
    return head % 31 == 0 && (head >> 8 & 15) == 8 && head >> 12 <= 7 && (head >> 5 & 1) == 0;
}

size_t pb_inflate_window_bytes(size_t row_bytes)
{
    size_t room = row_bytes > PAUSE_BYTES / 2 ? 2 * row_bytes : PAUSE_BYTES;
    return PB_INFLATE_DISTANCE_MAX + room + OVER_BYTES;
}

/* Sets the ends of the output, which has `out` to be written next. */
static void set_ends(struct pb_inflate_lane *l)
{
    const bool is_all = l->most <= l->window_bytes;
    l->pause = is_all ? NULL : l->out_start + l->window_bytes - OVER_BYTES;
    l->out_end = l->out_start + (is_all ? l->most : l->window_bytes);
    l->out_fast = !is_all                         ? l->pause
                  : l->most > PB_INFLATE_OUT_ROOM ? l->out_end - PB_INFLATE_OUT_ROOM
                                                  : l->out_start;
}

void pb_inflate_pair_start(struct pb_inflate_pair *pair, unsigned lane, const uint8_t *in,
                           size_t in_bytes, uint8_t *out, size_t most)
{
    pb_inflate_pair_start_window(pair, lane, in, in_bytes, out, most, most);
}

void pb_inflate_pair_start_window(struct pb_inflate_pair *pair, unsigned lane, const uint8_t *in,
                                  size_t in_bytes, uint8_t *window, size_t window_bytes,
                                  size_t most)
{
    struct pb_inflate_lane *l = &pair->lane[lane];
    l->state = PB_INFLATE_BAD;
    l->pause = NULL;
    if (in_bytes < HEAD_BYTES + TAIL_BYTES || !is_zlib(in))
        return;
    l->state = PB_INFLATE_HEADER;
    l->in = in + HEAD_BYTES;
    l->in_end = in + in_bytes - TAIL_BYTES;
    l->in_fast = l->in_end - l->in > PB_INFLATE_IN_ROOM ? l->in_end - PB_INFLATE_IN_ROOM : l->in;
    l->out = l->out_start = l->summed = window;
    l->sum = 1;
    l->window_bytes = window_bytes;
    l->most = most;
    set_ends(l);
    l->bits = 0;
    l->left = l->over = 0;
    l->head = NULL;
}

static bool is_paused(const struct pb_inflate_lane *l)
{
    return (l->state == PB_INFLATE_HEADER || l->state == PB_INFLATE_CODES) && l->pause != NULL &&
           l->out >= l->pause;
}

/* Brings a lane into the state for the fast loops. False: it has ended or paused, or is idle. */
static bool make_ready(struct pb_inflate_lane *l)
{
    for (;;) {
        if (is_paused(l))
            return false;
        if (l->state == PB_INFLATE_HEADER)
            l->state = pb_inflate_header(l);
        else if (l->state != PB_INFLATE_CODES)
            return false;
        else if (pb_inflate_has_room(l))
            return true;
        else
            l->state = pb_inflate_careful(l);
    }
}

static void sum_up(struct pb_inflate_lane *l)
{
    l->sum = libdeflate_adler32(l->sum, l->summed, (size_t)(l->out - l->summed));
    l->summed = l->out;
}

static enum pb_inflate_end end_of(struct pb_inflate_lane *l, size_t *out_bytes)
{
    enum pb_inflate_state state = l->state;
    if (is_paused(l)) {
        sum_up(l);
        *out_bytes = (size_t)(l->out - l->out_start);
        return PB_INFLATE_PAUSED;
    }
    l->state = PB_INFLATE_IDLE;
    if (state == PB_INFLATE_TOO_LONG)
        return PB_INFLATE_LONGER;
    if (state != PB_INFLATE_DONE || l->over > l->left >> 3)
        return PB_INFLATE_DAMAGED;
    const uint8_t *sum = l->in - ((l->left >> 3) - l->over);
    *out_bytes = (size_t)(l->out - l->out_start);
    uint32_t wanted =
        (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3];
    sum_up(l);
    return l->sum == wanted ? PB_INFLATE_COMPLETE : PB_INFLATE_DAMAGED;
}

size_t pb_inflate_pair_slide(struct pb_inflate_pair *pair, unsigned lane, size_t most)
{
    struct pb_inflate_lane *l = &pair->lane[lane];
    const size_t have = (size_t)(l->out - l->out_start);
    size_t n = have > PB_INFLATE_DISTANCE_MAX ? have - PB_INFLATE_DISTANCE_MAX : 0;
    n = n < most ? n : most;
    n -= n % ALIGN; /* samples stay aligned */
    memmove(l->out_start, l->out_start + n, have - n);
    l->out -= n;
    l->summed -= n;
    l->most -= n;
    set_ends(l);
    return n;
}

/* Blocks with different loops: one lane runs alone, the one without the loop of literals. */
static void run_two(struct pb_inflate_lane *a, struct pb_inflate_lane *b)
{
    if (a->loop == b->loop)
        pb_inflate_fast_two(a, b);
    else
        pb_inflate_fast(a->loop != PB_INFLATE_LITERALS ? a : b);
}

/* True if it has ended or paused. */
static bool has_ended(struct pb_inflate_lane *l)
{
    return !make_ready(l) && l->state != PB_INFLATE_IDLE;
}

unsigned pb_inflate_pair_next(struct pb_inflate_pair *pair, enum pb_inflate_end *out_end,
                              size_t *out_bytes)
{
    struct pb_inflate_lane *a = &pair->lane[0], *b = &pair->lane[1];
    assert(a->state != PB_INFLATE_IDLE || b->state != PB_INFLATE_IDLE);
    for (;;) {
        unsigned lane = has_ended(a) ? 0 : 1;
        if (lane == 0 || has_ended(b)) {
            *out_end = end_of(&pair->lane[lane], out_bytes);
            return lane;
        }
        if (a->state == PB_INFLATE_CODES && b->state == PB_INFLATE_CODES)
            run_two(a, b);
        else
            pb_inflate_fast(a->state == PB_INFLATE_CODES ? a : b);
    }
}
