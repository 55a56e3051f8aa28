// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps that nobody knows beforehand: this thread is D0 and has the schedule, a resident block is
// D1. Steps go to the device one by one, as the pattern yields them; what comes of D1's own steps,
// how many chunks and a value, is decided on the device by the data and told to the pattern. So
// what the device says decides counts, directions and the end. The same exchange without a device
// says what has to come of it. Every wait ends at the abort word or after 2 s.
#include "wic/bench/replay/replay.cuh"
#include "wic/bench/replay/told.cuh"
#include "wic/pattern/replay.h"

#include <cerrno>
#include <cstring>

using namespace told;

namespace
{
using namespace replay_wait;
constexpr uint64_t no_end = UINT64_C(1) << 62;

struct told_exchange {
    const char *name;
    const wic_pattern *pattern;
    uint64_t down, up; // chunks, or WIC_OPEN
    uint64_t args[4];
    rules follows;
    uint64_t lie_at;  // the pattern is told otherwise of that outcome of D1's; 0: never
    uint64_t stop_at; // D0 ends instead of that move; 0: it does not
};

struct host {
    table *t; // NULL: no device, and what it would do is done here
    const told_exchange *x;
    side s;
    uint64_t wrong, moves, given, told;
    uint64_t trace; // of all chunks, in order
    bool fresh;     // no chunk of the step has been moved
};

// The chunk's words in its slot, written or checked. *words: 0, its way has ended.
int move_words(host *h, const wic_step &step, uint64_t value, uint64_t *words)
{
    way &w = h->t->ways[step.from];
    const bool sends = step.from == 0;
    const uint64_t turn = h->s.turns[step.from], at = turn % ring_slots;
    const int rc = wait_above(sends ? &w.allowed : &w.published, turn);
    if (rc != 0) {
        return rc;
    }
    *words = sends ? *words : w.words[at];
    for (uint64_t i = 0; i < *words; i++) {
        if (sends) {
            w.slot[at][i] = value ^ i;
        } else {
            h->wrong += w.slot[at][i] != (value ^ i);
        }
    }
    if (sends) {
        w.words[at] = *words;
    }
    store(sends ? &w.published : &w.allowed, turn + 1 + (sends ? 0 : ring_slots));
    return 0;
}

int move_on_host(void *context, const wic_step *step, uint64_t chunk)
{
    host *h = static_cast<host *>(context);
    const bool sends = step->from == 0;
    const uint64_t value = chunk_value(*step, chunk, sends ? h->s.got : h->s.sent);
    uint64_t words =
        h->s.chunks[step->from] < h->x->follows.ends[step->from] ? step->chunk_bytes / 8 : 0;
    if (++h->moves == h->x->stop_at) {
        return -ECANCELED;
    }
    if (h->t != nullptr) {
        if (h->fresh) {
            h->t->steps[h->given % ring_steps] = *step;
            store(&h->t->given, ++h->given);
        }
        const int rc = move_words(h, *step, value, &words);
        if (rc != 0) {
            return rc;
        }
    }
    h->fresh = false;
    h->s.turns[step->from]++;
    if (words == 0) {
        return 1;
    }
    h->s.chunks[step->from]++;
    (sends ? h->s.sent : h->s.got) = value;
    h->trace = mixed(h->trace + value);
    return 0;
}

int tell_on_host(void *context, const wic_step *step, wic_outcome *outcome)
{
    host *h = static_cast<host *>(context);
    const bool own = step->from == 0;
    outcome->value =
        value_of(h->x->follows.values, own ? h->s.sent : h->s.got, own ? h->s.got : h->s.sent);
    if (own || h->t == nullptr) {
        return 0;
    }
    const int rc = wait_above(&h->t->told, h->told);
    const wic_outcome said = h->t->outcomes[h->told++ % ring_steps];
    if (rc != 0 || said.count != outcome->count) {
        return rc != 0 ? rc : -EPROTO;
    }
    outcome->value = said.value + 2 * (h->told == h->x->lie_at);
    return 0;
}

int step_is_over(void *context, uint64_t)
{
    static_cast<host *>(context)->fresh = true;
    return 0;
}

int walk(host *h, char *text)
{
    const told_exchange &x = *h->x;
    wic_pattern_params params = {};
    params.parties = 2;
    params.slots = ring_slots;
    params.chunk_bytes = 8 * chunk_words;
    params.args = x.args;
    params.chunks[0][1] = x.down;
    params.chunks[1][0] = x.up;
    const struct wic_replay replay = {0, move_on_host, tell_on_host, nullptr, step_is_over, h};
    wic_schedule schedule;
    h->fresh = true;
    int rc = wic_schedule_init(&schedule, x.pattern, &params, text, WIC_TEXT_BYTES);
    rc = rc ? rc : wic_replay_schedule(&schedule, &replay, text, WIC_TEXT_BYTES);
    wic_schedule_fini(&schedule);
    return rc;
}

bool run(const told_exchange &x, table *t, cudaStream_t stream)
{
    char text[WIC_TEXT_BYTES] = "";
    told_exchange undisturbed = x;
    undisturbed.stop_at = 0;
    host wanted = {}, h = {};
    wanted.x = &undisturbed;
    if (walk(&wanted, text) != 0) {
        bench_fail(text, __LINE__);
    }
    memset(t, 0, sizeof *t);
    t->ways[0].allowed = t->ways[1].allowed = ring_slots;
    t->last = no_end;
    h.x = &x;
    h.t = t;
    told::launch(t, x.follows, stream);
    const double start = bench_seconds();
    const int rc = walk(&h, text);
    const double seconds = bench_seconds() - start;
    store(rc == 0 ? &t->last : &t->abort, rc == 0 ? h.given : 1);
    CUDA_MUST(cudaStreamSynchronize(stream)); // its waits have limits
    const bool same = h.trace == wanted.trace && h.moves == wanted.moves;
    const bool right = h.wrong == 0 && t->wrong == 0;
    const bool good = x.stop_at > 0  ? rc == -ECANCELED && t->end == LEFT && right
                      : x.lie_at > 0 ? rc == 0 && t->end == DONE && right && !same
                                     : rc == 0 && t->end == DONE && right && same;
    printf("told     %-38s %s: %llu down, %llu up, %llu told, %llu + %llu wrong, %.2f us each, "
           "status %d, kernel %s\n",
           x.name, good ? "ok" : "FAIL", static_cast<unsigned long long>(h.s.chunks[0]),
           static_cast<unsigned long long>(h.s.chunks[1]), static_cast<unsigned long long>(h.told),
           static_cast<unsigned long long>(h.wrong), static_cast<unsigned long long>(t->wrong),
           1e6 * seconds / static_cast<double>(h.moves), rc, t->end == DONE ? "done" : "left");
    fflush(stdout);
    return good;
}
} // namespace

bool replay_told()
{
    const wic_pattern *turns = &wic_pattern_alternating, *many = &wic_pattern_multiple,
                      *chance = &wic_pattern_probabilistic;
    const rules until = {UNTIL_ZERO, {UINT64_MAX, UINT64_MAX}};
    const rules next = {NEXT_STEP, {UINT64_MAX, UINT64_MAX}};
    const told_exchange exchanges[] = {
        {"alternating, until the device says 0", turns, WIC_OPEN, WIC_OPEN, {0, 1}, until, 0, 0},
        {"alternating, 300 rounds", turns, WIC_OPEN, WIC_OPEN, {300, 0}, until, 0, 0},
        {"multiple, 4 and 1, D0 ends",
         many,
         WIC_OPEN,
         WIC_OPEN,
         {4, 1},
         {UNTIL_ZERO, {1001, UINT64_MAX}},
         0,
         0},
        {"multiple, 3 and 2, D1 ends",
         many,
         WIC_OPEN,
         WIC_OPEN,
         {3, 2},
         {UNTIL_ZERO, {UINT64_MAX, 501}},
         0,
         0},
        {"probabilistic, both decide", chance, 2000, 1000, {9, 5, 1, 0}, next, 0, 0},
        {"probabilistic, open, D0 ends",
         chance,
         WIC_OPEN,
         WIC_OPEN,
         {9, 5, 1, 0},
         {NEXT_STEP, {1500, UINT64_MAX}},
         0,
         0},
        {"told otherwise: noticed", chance, 2000, 1000, {9, 5, 1, 0}, next, 40, 0},
        {"aborted on the way", chance, 2000, 1000, {9, 5, 1, 0}, next, 0, 700},
    };
    cudaStream_t stream;
    table *t;
    CUDA_MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_MUST(cudaHostAlloc(&t, sizeof *t, cudaHostAllocMapped));
    bool good = true;
    for (const told_exchange &x : exchanges) {
        good = run(x, t, stream) && good;
    }
    cudaStreamDestroy(stream);
    cudaFreeHost(t);
    return good;
}
