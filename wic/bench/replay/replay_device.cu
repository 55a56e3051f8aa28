// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Exchanges in both directions with the resident kernel of wic/device, by the patterns of
// wic/patterns: this thread is D0 and walks the schedule, D1 is the device with its proxy. A chunk
// down is a tile; a chunk up is the result of one, or of all tiles of a step, whose state stays in
// the shared memory of the device's blocks in between. What goes down depends on the last result
// that came up, and values that are told depend on the results or are made by the device, so an
// order other than the schedule's, or a result before its time, gives other data. The same exchange
// without a device says what has to come of it.
#include "wic/bench/base/channel.cuh"
#include "wic/bench/replay/replay.cuh"
#include "wic/device/wic_device.cuh"
#include "wic/pattern/replay.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace
{
constexpr uint32_t slots = 8, unit_bytes = 16, pieces = 4;
constexpr size_t chunk_bytes = 16384, words = chunk_bytes / sizeof(uint64_t);
constexpr int64_t limit_ns = 2000000000; // of a wait

__host__ __device__ uint64_t answer(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return word ^ (word >> 27);
}

// What the device tells with a chunk up, as the chunk's last word.
__host__ __device__ uint64_t told_with(uint64_t word_before)
{
    return answer(word_before + 1) % 512 != 0;
}

// Travels beside a tile: its place among those that one result is made of.
struct place {
    uint64_t k, count;
};

// Each block has one piece, the same of every tile, so what it keeps is its own.
__global__ void __launch_bounds__(1024) answers(const __grid_constant__ wic_view view)
{
    wic_resident(view, [&](const wic_piece &piece) {
        const place &at = *static_cast<const place *>(piece.user);
        const ulonglong2 *in = static_cast<const ulonglong2 *>(piece.in);
        ulonglong2 *kept = static_cast<ulonglong2 *>(piece.work);
        for (uint32_t i = piece.thread; i < piece.units; i += piece.threads) {
            const ulonglong2 before = at.k > 0 ? kept[i] : make_ulonglong2(0, 0), v = in[i];
            ulonglong2 now = make_ulonglong2(answer(before.x ^ v.x), answer(before.y ^ v.y));
            if (at.k + 1 < at.count) {
                kept[i] = now;
                continue;
            }
            if (piece.first + i == words / 2 - 1) {
                now.y = told_with(now.x);
            }
            static_cast<ulonglong2 *>(piece.out)[i] = now;
        }
    });
}

// --- D0 ---

enum told_by { BY_RESULTS, BY_COUNT, BY_DEVICE };

struct side {
    wic_channel *in, *out; // NULL: no device, the answers are made here
    uint64_t sent[slots];  // first word of chunk n, at n % slots
    uint64_t down, up;     // chunks moved
    uint64_t into_one;     // chunks down that make a chunk up
    uint64_t got;          // the last answer's first word
    uint64_t told;         // with it
    uint64_t wrong;        // words
    uint64_t trace;        // of all that came up, in order
    told_by values;        // BY_RESULTS: they say what the next step is; else whether there is one
    uint64_t zero_after;   // BY_COUNT: the value is 0 from this chunk up on
};

int send(side *s, uint64_t chunk)
{
    const uint64_t first = answer(s->got + chunk + 1);
    s->sent[chunk % slots] = first;
    if (s->in == nullptr) {
        return 0;
    }
    wic_slot slot;
    const int rc = wic_acquire(s->in, limit_ns, &slot);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < words; i++) {
        static_cast<uint64_t *>(slot.data)[i] = first ^ i;
    }
    *static_cast<place *>(slot.user) = {chunk % s->into_one, s->into_one};
    return wic_publish(s->in, &slot, chunk_bytes);
}

// Word i of the answer to the chunks down that belong to a chunk up.
uint64_t answer_to(const side *s, uint64_t chunk, uint64_t i)
{
    uint64_t word = 0;
    for (uint64_t k = 0; k < s->into_one; k++) {
        word = answer(word ^ s->sent[(chunk * s->into_one + k) % slots] ^ i);
    }
    return word;
}

// The next result; tiles that others follow into the same one come back empty.
int take_result(side *s, wic_slot *out)
{
    int rc = wic_wait(s->out, limit_ns, out);
    while (rc == 0 && out->bytes == 0) {
        rc = wic_release(s->out, out);
        rc = rc != 0 ? rc : wic_wait(s->out, limit_ns, out);
    }
    return rc;
}

int receive(side *s, uint64_t chunk)
{
    s->got = answer_to(s, chunk, 0);
    s->told = told_with(answer_to(s, chunk, words - 2));
    if (s->out != nullptr) {
        wic_slot slot;
        const int rc = take_result(s, &slot);
        if (rc != 0) {
            return rc;
        }
        const uint64_t *result = static_cast<uint64_t *>(slot.data);
        for (size_t i = 0; i + 1 < words; i++) {
            s->wrong += result[i] != answer_to(s, chunk, i);
        }
        s->wrong += result[words - 1] != s->told;
        s->got = result[0];
        s->told = result[words - 1];
        const int released = wic_release(s->out, &slot);
        if (released != 0) {
            return released;
        }
    }
    s->trace = answer(s->trace + s->got);
    return 0;
}

int move(void *context, const wic_step *step, uint64_t chunk)
{
    side *s = static_cast<side *>(context);
    if (step->from == 0) {
        s->down++;
        return send(s, chunk);
    }
    s->up++;
    return receive(s, chunk);
}

// As much as the data wants, within what is on its way and what has room.
uint64_t next_by_data(const side *s)
{
    const uint64_t on_way = s->down - s->up, room = slots - on_way;
    const uint64_t wanted = answer(s->got + s->down) >> 32;
    const bool up = on_way > 0 && (room == 0 || wanted % 2);
    return 2 * (1 + wanted / 2 % (up ? on_way : room)) + up;
}

int tell(void *context, const wic_step *step, wic_outcome *outcome)
{
    const side *s = static_cast<side *>(context);
    outcome->value = s->values == BY_RESULTS ? next_by_data(s)
                     : step->from == 0       ? 0
                     : s->values == BY_COUNT ? s->up < s->zero_after
                                             : s->told;
    return 0;
}

int describe(void *, const wic_slot *in, const wic_slot *, wic_device_tile *out_tile)
{
    const place *at = static_cast<const place *>(in->user);
    *out_tile = {static_cast<uint32_t>(in->bytes / unit_bytes),
                 at->k + 1 < at->count ? 0 : in->bytes, 0};
    return 0;
}

// --- an exchange ---

struct exchange {
    const char *name;
    const wic_pattern *pattern;
    uint64_t chunks; // up, or WIC_OPEN; down as many for each
    uint64_t args[4];
    told_by values;
    uint64_t zero_after, into_one;
};

side walk(const exchange &x, wic_channel *in, wic_channel *out, int *out_rc, char *text)
{
    wic_pattern_params params = {};
    params.parties = 2;
    params.slots = slots;
    params.chunk_bytes = chunk_bytes;
    params.args = x.args;
    params.chunks[1][0] = x.chunks;
    params.chunks[0][1] = x.chunks == WIC_OPEN ? WIC_OPEN : x.chunks * x.into_one;
    side s = {};
    s.in = in;
    s.out = out;
    s.values = x.values;
    s.zero_after = x.zero_after;
    s.into_one = x.into_one;
    wic_replay replay = {};
    replay.move = move;
    replay.tell = tell;
    replay.context = &s;
    wic_schedule schedule;
    int rc = wic_schedule_init(&schedule, x.pattern, &params, text, WIC_TEXT_BYTES);
    rc = rc ? rc : wic_replay_schedule(&schedule, &replay, text, WIC_TEXT_BYTES);
    wic_schedule_fini(&schedule);
    *out_rc = rc;
    return s;
}

// A piece for each block, with memory for what it keeps of it.
void keep_pieces(wic_transfer_plan *plan)
{
    plan->in_piece = plan->out_piece = plan->work_bytes = chunk_bytes / pieces;
    plan->piece_units = plan->in_piece / unit_bytes;
    plan->pieces = plan->blocks = pieces;
    plan->pulls = std::min(plan->pulls, plan->blocks);
    plan->results = WIC_PUSH_STORES;
    plan->user_bytes = sizeof(place);
    plan->engine_backlog = 0;
}

bool run(const exchange &x)
{
    char text[WIC_TEXT_BYTES] = "";
    int rc, device_rc = 0;
    const side wanted = walk(x, nullptr, nullptr, &rc, text);
    if (rc != 0) {
        bench_fail(text, __LINE__);
    }
    bench_channel in(slots, chunk_bytes, BENCH_PINNED), out(slots, chunk_bytes, BENCH_PINNED);
    const wic_tile_shape shape = {chunk_bytes, unit_bytes, unit_bytes};
    wic_device_options options = {};
    wic_gpu gpu;
    wic_device *device;
    wic_device_stats stats;
    options.in = in.get();
    options.out = out.get();
    options.kernel = reinterpret_cast<const void *>(answers);
    options.describe = describe;
    options.idle_ns = limit_ns; // what blocks keep is lost when the kernel leaves
    if (wic_gpu_read(0, &gpu) != 0 ||
        wic_transfer_plan_choose(&gpu, &shape, nullptr, &options.plan) != 0) {
        bench_fail("no transfer plan", __LINE__);
    }
    keep_pieces(&options.plan);
    if (wic_device_open(&options, &device) != 0) {
        bench_fail("no link for an exchange", __LINE__);
    }
    std::thread proxy([&] { device_rc = wic_device_run(device); });
    const double start = bench_seconds();
    const side s = walk(x, in.get(), out.get(), &rc, text);
    const double seconds = bench_seconds() - start;
    if (rc == 0) {
        wic_close(in.get());
    } else {
        wic_abort(in.get());
    }
    proxy.join();
    wic_device_close(device, &stats);
    const bool good = rc == 0 && device_rc == 0 && s.wrong == 0 && s.trace == wanted.trace &&
                      s.down == wanted.down && s.up == wanted.up && stats.tiles == s.down;
    printf("exchange %-36s %s: %llu down, %llu up, %llu wrong, %.2f us each, status %d and %d, "
           "%u launches\n",
           x.name, good ? "ok" : "FAIL", static_cast<unsigned long long>(s.down),
           static_cast<unsigned long long>(s.up), static_cast<unsigned long long>(s.wrong),
           1e6 * seconds / static_cast<double>(std::max<uint64_t>(s.up, 1)), rc, device_rc,
           stats.launches);
    fflush(stdout);
    return good;
}
} // namespace

bool replay_device()
{
    const wic_pattern *turns = &wic_pattern_alternating, *many = &wic_pattern_multiple;
    const exchange exchanges[] = {
        {"alternating", turns, 5000, {}, BY_COUNT, 0, 1},
        {"alternating, 300 rounds", turns, WIC_OPEN, {300, 0}, BY_COUNT, 0, 1},
        {"alternating, until zero", turns, WIC_OPEN, {0, 1}, BY_COUNT, 777, 1},
        {"alternating, until the device says 0", turns, WIC_OPEN, {0, 1}, BY_DEVICE, 0, 1},
        {"multiple, 4 and 4", many, 5000, {4, 4}, BY_COUNT, 0, 1},
        {"multiple, 8 and 8", many, 5001, {8, 8}, BY_COUNT, 0, 1},
        {"multiple, 4 into 1", many, 1200, {4, 1}, BY_COUNT, 0, 4},
        {"multiple, 8 into 1", many, 700, {8, 1}, BY_COUNT, 0, 8},
        {"multiple, 3 into 1, 2 at a time", many, 1001, {6, 2}, BY_COUNT, 0, 3},
        {"probabilistic, by data",
         &wic_pattern_probabilistic,
         5000,
         {8, 8, 1, 0},
         BY_RESULTS,
         0,
         1},
    };
    bool good = true;
    for (const exchange &x : exchanges) {
        good = run(x) && good;
    }
    return good;
}
