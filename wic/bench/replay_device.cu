// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Exchanges in both directions with the resident kernel of wic/device, by the patterns of
// wic/patterns: this thread is D0 and walks the schedule, D1 is the device with its proxy. A chunk
// down is a tile, a chunk up its result. What goes down depends on the last result that came up,
// and values that are told depend on the results, so an order other than the schedule's, or a
// result before its time, gives other data. The same exchange without a device says what has to
// come of it.
#include "wic/bench/channel.cuh"
#include "wic/bench/replay.cuh"
#include "wic/device/wic_device.cuh"
#include "wic/pattern/replay.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace
{
constexpr uint32_t slots = 8, unit_bytes = 16;
constexpr size_t chunk_bytes = 16384, words = chunk_bytes / sizeof(uint64_t);
constexpr int64_t limit_ns = 2000000000; // of a wait

__host__ __device__ uint64_t answer(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return word ^ (word >> 27);
}

__global__ void __launch_bounds__(1024) answers(const __grid_constant__ wic_view view)
{
    wic_resident(view, [&](const wic_piece &piece) {
        const ulonglong2 *in = static_cast<const ulonglong2 *>(piece.in);
        ulonglong2 *out = static_cast<ulonglong2 *>(piece.out);
        for (uint32_t i = piece.thread; i < piece.units; i += piece.threads) {
            const ulonglong2 v = in[i];
            out[i] = make_ulonglong2(answer(v.x), answer(v.y));
        }
    });
}

// --- D0 ---

struct side {
    wic_channel *in, *out; // NULL: no device, the answers are made here
    uint64_t sent[slots];  // first word of chunk n, at n % slots
    uint64_t down, up;     // chunks moved
    uint64_t got;          // the last answer's first word
    uint64_t wrong;        // words
    uint64_t trace;        // of all that came up, in order
    bool by_data;          // the values that are told say what the next step is
    uint64_t zero_after;   // of until_zero: the value is 0 from this chunk up on
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
    return wic_publish(s->in, &slot, chunk_bytes);
}

int receive(side *s, uint64_t chunk)
{
    const uint64_t first = s->sent[chunk % slots];
    s->got = answer(first);
    if (s->out != nullptr) {
        wic_slot slot;
        const int rc = wic_wait(s->out, limit_ns, &slot);
        if (rc != 0) {
            return rc;
        }
        const uint64_t *result = static_cast<uint64_t *>(slot.data);
        for (size_t i = 0; i < words; i++) {
            s->wrong += result[i] != answer(first ^ i);
        }
        s->got = result[0];
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
    outcome->value = s->by_data ? next_by_data(s) : step->from == 1 && s->up < s->zero_after;
    return 0;
}

// --- an exchange ---

struct exchange {
    const char *name;
    const wic_pattern *pattern;
    uint64_t chunks; // each way, or WIC_OPEN
    uint64_t args[4];
    bool by_data;
    uint64_t zero_after;
};

side walk(const exchange &x, wic_channel *in, wic_channel *out, int *out_rc, char *text)
{
    wic_pattern_params params = {};
    params.parties = 2;
    params.slots = slots;
    params.chunk_bytes = chunk_bytes;
    params.args = x.args;
    params.chunks[0][1] = params.chunks[1][0] = x.chunks;
    side s = {};
    s.in = in;
    s.out = out;
    s.by_data = x.by_data;
    s.zero_after = x.zero_after;
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
    if (wic_gpu_read(0, &gpu) != 0 ||
        wic_transfer_plan_choose(&gpu, &shape, nullptr, &options.plan) != 0 ||
        wic_device_open(&options, &device) != 0) {
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
    const exchange exchanges[] = {
        {"alternating", &wic_pattern_alternating, 5000, {}, false, 0},
        {"alternating, 300 rounds", &wic_pattern_alternating, WIC_OPEN, {300, 0}, false, 0},
        {"alternating, until zero", &wic_pattern_alternating, WIC_OPEN, {0, 1}, false, 777},
        {"multiple, 4 and 4", &wic_pattern_multiple, 5000, {4, 4}, false, 0},
        {"multiple, 8 and 8", &wic_pattern_multiple, 5001, {8, 8}, false, 0},
        {"probabilistic, by data", &wic_pattern_probabilistic, 5000, {8, 8, 1, 0}, true, 0},
    };
    bool good = true;
    for (const exchange &x : exchanges) {
        good = run(x) && good;
    }
    return good;
}
