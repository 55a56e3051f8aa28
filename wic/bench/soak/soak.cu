// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A long run through all parts, by each transport that the machine supports: a producer thread, a
// channel, the resident kernel, a channel, a consumer thread. Tiles of random sizes (also empty
// ones, and ones that are no multiple of anything) from random places of a table. Every element of
// every result is checked, that the user bytes travel along, and on the device that they are those
// of the tile: transports that do not pull know the number of pixels from nowhere else. Now and
// then the producer rests for longer than the kernel stays without tiles. (SIGSTOP for 6 s from
// outside makes the kernel leave; nothing must be lost or come twice then, either.)
#include "wic/bench/soak/soak.cuh"
#include "wic/device/wic_device.cuh"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <thread>

namespace
{
constexpr long rest_ns = 60000000;

struct argument {
    unsigned long long *mismatches; // pieces whose letter says something else than the ready board
};

// The letter of the piece's tile; `pieces` units of the plan make `units` pixels.
__device__ letter read_letter(const wic_view &view, const wic_piece &piece, uint32_t unit_pixels,
                              const argument &a)
{
    const letter l = *static_cast<const letter *>(piece.user);
    const uint64_t units = (l.units + unit_pixels - 1) / unit_pixels;
    const uint64_t behind = units > piece.first ? units - piece.first : 0;
    const uint64_t expected = min(behind, static_cast<uint64_t>(view.plan.piece_units));
    const bool good = l.number == view.in_first + piece.tile && expected == piece.units;
    if (piece.thread == 0 && !good) {
        atomicAdd(a.mismatches, 1ull);
    }
    return l;
}

__global__ void __launch_bounds__(1024)
    soak_pulled(const __grid_constant__ wic_view view, const argument a)
{
    wic_resident(view, [&](const wic_piece &piece) {
        read_letter(view, piece, 1, a);
        ndvi_piece(piece.in, piece.out, piece.units, piece.thread, piece.threads);
    });
}

// A unit of the plan is up to whole_piece pixels; how many, the letter says.
__global__ void __launch_bounds__(1024)
    soak_whole(const __grid_constant__ wic_view view, const argument a)
{
    wic_resident(view, [&](const wic_piece &piece) {
        soak_work_whole(piece, read_letter(view, piece, whole_piece, a));
    });
}

// A unit of the plan is a line of up to line_max pixels; of how many in this tile, the letter says.
__global__ void __launch_bounds__(1024)
    soak_lines(const __grid_constant__ wic_view view, const argument a)
{
    wic_resident(view, [&](const wic_piece &piece) {
        const uint32_t line = static_cast<uint32_t>(static_cast<const letter *>(piece.user)->line);
        soak_work_lines(piece, read_letter(view, piece, line, a));
    });
}

int describe_lines(void *, const wic_slot *in, const wic_slot *, wic_device_tile *out_tile)
{
    letter l;
    memcpy(&l, in->user, sizeof l);
    out_tile->units = static_cast<uint32_t>(l.units / l.line);
    out_tile->unit_bytes = static_cast<uint32_t>(l.line * in_unit);
    out_tile->out_bytes = l.units * out_unit;
    return l.units * in_unit == in->bytes ? 0 : -EINVAL;
}

int describe_whole(void *, const wic_slot *in, const wic_slot *, wic_device_tile *out_tile)
{
    letter l;
    memcpy(&l, in->user, sizeof l);
    out_tile->units = static_cast<uint32_t>((l.units + whole_piece - 1) / whole_piece);
    out_tile->unit_bytes = 0;
    out_tile->out_bytes = l.units * out_unit;
    return l.units * in_unit == in->bytes ? 0 : -EINVAL;
}

uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 8;
}

} // namespace

soak_table soak_make_table()
{
    soak_table t{std::vector<uint16_t>(table_units), std::vector<uint16_t>(table_units),
                 std::vector<int16_t>(table_units)};
    uint64_t random = 2463534242;
    for (size_t i = 0; i < table_units; i++) {
        t.red[i] = static_cast<uint16_t>(next_random(&random));
        t.nir[i] = i % 89 ? static_cast<uint16_t>(next_random(&random)) : t.red[i];
        t.ndvi[i] = ndvi_pixel(t.red[i], t.nir[i]);
    }
    return t;
}

namespace
{
bool rests(uint64_t tile)
{
    return tile == first_rest || (tile > 0 && tile % rest_every == 0);
}

// Of how many pixels a tile is made. Many small, some full, in all alignments.
size_t random_units(uint64_t random)
{
    return random % 64 == 0 ? tile_units : (random >> 8) % (random % 4 ? 3000 : tile_units + 1);
}

} // namespace

void soak_produce(const soak_table &t, wic_channel *in, uint64_t tiles, size_t piece_units,
                  uint64_t first)
{
    uint64_t random = 88172645463325252u;
    for (uint64_t i = 0; i < tiles; i++) {
        if (rests(i)) {
            const timespec rest = {0, rest_ns};
            nanosleep(&rest, nullptr);
        }
        wic_slot slot;
        if (wic_acquire(in, WIC_FOREVER, &slot) != 0) {
            return; // aborted; the consumer says so
        }
        const uint64_t r = next_random(&random);
        const size_t line = piece_units == 0 ? 8 * (1 + (r >> 40) % (line_max / 8)) : 0;
        const size_t lines =
            line > 0 ? std::min<size_t>(random_units(r) / line, tile_units / line_max) : 0;
        const size_t units = line > 0 ? lines * line : random_units(r);
        const size_t step = line > 0 ? line : piece_units;
        const size_t place = next_random(&random) % (table_units - tile_units);
        uint16_t *to = static_cast<uint16_t *>(slot.data);
        for (size_t at = 0; at < units; at += step) {
            const size_t n = std::min(units - at, step);
            memcpy(to + 2 * at, &t.red[place + at], 2 * n);
            memcpy(to + 2 * at + n, &t.nir[place + at], 2 * n);
        }
        const letter l = {first + i, place, units, line};
        memcpy(slot.user, &l, sizeof l);
        if (wic_publish(in, &slot, units * in_unit) != 0) {
            return;
        }
    }
    wic_close(in);
}

uint64_t soak_consume(const soak_table &t, wic_channel *out, uint64_t *tiles, uint64_t *elements,
                      uint64_t first)
{
    uint64_t wrong = 0;
    wic_slot slot;
    while (wic_wait(out, WIC_FOREVER, &slot) == 0) {
        letter l;
        memcpy(&l, slot.user, sizeof l);
        const int16_t *got = static_cast<const int16_t *>(slot.data);
        if (l.number != first + *tiles || slot.bytes != l.units * out_unit) {
            wrong += l.units + 1;
        } else if (memcmp(got, &t.ndvi[l.place], slot.bytes) != 0) {
            for (size_t i = 0; i < l.units; i++) {
                wrong += got[i] != t.ndvi[l.place + i];
            }
        }
        memset(slot.data, 0xa5, slot.bytes);
        *elements += l.units;
        ++*tiles;
        wic_release(out, &slot);
    }
    return wrong;
}

namespace
{
const soak_way ways[] = {
    {"pull", WIC_PULL_BULK, BENCH_PINNED, 0, false}, // or what else this GPU has
    {"lines", WIC_PULL_BULK, BENCH_PINNED, 3 * tile_units, true},
    {"mixed", WIC_PULL_BULK, BENCH_PINNED, 3 * tile_units, false},
    {"managed", WIC_PULL_BULK, BENCH_MANAGED, 0, false},
    {"copy", WIC_COPY, BENCH_PINNED, 0, false},
    {"place", WIC_IN_PLACE, BENCH_PINNED, 0, false},
    {"resident", WIC_IN_PLACE, BENCH_MANAGED, 0, false}};

} // namespace

int soak_plan(const soak_way &way, wic_device_options *options)
{
    wic_gpu gpu;
    int rc = wic_gpu_read(0, &gpu);
    wic_work work = {};
    work.user_bytes = letter_bytes;
    if (rc == 0 && way.transport >= WIC_COPY) {
        options->kernel = reinterpret_cast<const void *>(soak_whole);
        options->describe = describe_whole;
        return wic_transfer_plan_whole(&gpu, way.transport, tile_units / whole_piece, &work,
                                       &options->plan);
    }
    wic_tile_shape shape = {tile_units * in_unit, in_unit, out_unit};
    options->kernel = reinterpret_cast<const void *>(soak_pulled);
    if (way.lines) {
        shape = {tile_units * in_unit, line_max * in_unit, 0};
        options->kernel = reinterpret_cast<const void *>(soak_lines);
        options->describe = describe_lines;
    }
    rc = rc ? rc : wic_transfer_plan_choose(&gpu, &shape, &work, &options->plan);
    options->plan.engine_backlog = way.engine_backlog;
    return rc;
}

namespace
{
bool can_share_managed()
{
    int can = 0;
    CUDA_MUST(cudaDeviceGetAttribute(&can, cudaDevAttrConcurrentManagedAccess, 0));
    return can != 0;
}

struct outcome {
    int rc;
    uint64_t tiles, elements, wrong;
    unsigned long long mismatches;
    double seconds;
    wic_device_stats stats;
};

} // namespace

size_t soak_pixels_together(const soak_way &way, const wic_transfer_plan &plan)
{
    return way.lines ? 0 : plan.in_piece > 0 ? plan.piece_units : whole_piece;
}

namespace
{
outcome flow(const soak_table &t, wic_device *device, const wic_device_options &options,
             uint64_t tiles, size_t piece)
{
    outcome o = {};
    const double start = bench_seconds();
    std::thread proxy([&] { o.rc = wic_device_run(device); });
    std::thread producer([&] { soak_produce(t, options.in, tiles, piece, 0); });
    o.wrong = soak_consume(t, options.out, &o.tiles, &o.elements, 0);
    producer.join();
    proxy.join();
    o.seconds = bench_seconds() - start;
    wic_device_close(device, &o.stats);
    return o;
}

void print(const char *name, uint64_t tiles, const outcome &o, bool good)
{
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    printf("soak %-8s %s: %llu of %llu tiles, %llu elements, %llu wrong, %llu letters wrong, "
           "%.1f s, %.2f us a tile, status %d, %u launches, %u heartbeat timeouts, left after %.2f "
           "ms\n",
           name, good ? "ok" : "FAIL", number(o.tiles), number(tiles), number(o.elements),
           number(o.wrong), o.mismatches, o.seconds, 1e6 * o.seconds / static_cast<double>(tiles),
           o.rc, o.stats.launches, o.stats.timeouts, 1e-6 * static_cast<double>(o.stats.leave_ns));
    fflush(stdout);
}

bool soak_one(const soak_table &t, const soak_way &way, uint64_t tiles)
{
    if (way.memory == BENCH_MANAGED && !can_share_managed()) {
        printf("soak %-8s skipped: no managed memory that both sides use at a time\n", way.name);
        return true;
    }
    bench_channel in(soak_slots, tile_units * in_unit, way.memory);
    bench_channel out(soak_slots, tile_units * out_unit, way.memory);
    argument a;
    CUDA_MUST(cudaMalloc(&a.mismatches, sizeof *a.mismatches));
    CUDA_MUST(cudaMemset(a.mismatches, 0, sizeof *a.mismatches));
    CUDA_MUST(cudaDeviceSynchronize());
    wic_device_options options = {};
    options.in = in.get();
    options.out = out.get();
    options.argument = &a;
    wic_device *device;
    int rc = soak_plan(way, &options);
    rc = rc ? rc : wic_device_open(&options, &device);
    bool good = rc == -EOPNOTSUPP;
    if (rc != 0) {
        printf("soak %-8s %s: the device cannot be opened: %d\n", way.name,
               good ? "skipped" : "FAIL", rc);
    } else {
        outcome o = flow(t, device, options, tiles, soak_pixels_together(way, options.plan));
        const cudaError_t error =
            cudaMemcpy(&o.mismatches, a.mismatches, sizeof o.mismatches, cudaMemcpyDeviceToHost);
        good = !error && o.rc == 0 && o.wrong == 0 && o.mismatches == 0 && o.tiles == tiles &&
               (tiles <= first_rest || o.stats.launches > 1);
        print(way.name, tiles, o, good);
    }
    cudaFree(a.mismatches);
    return good;
}
} // namespace

bool soak(uint64_t tiles, const std::string &transport)
{
    const soak_table t = soak_make_table();
    bool good = true, known = false;
    for (const soak_way &way : ways) {
        if (transport.empty() || transport == way.name) {
            known = true;
            good = soak_one(t, way, tiles) && good;
        }
    }
    if (!known) {
        bench_fail("--transport is pull, lines, mixed, managed, copy, place or resident", __LINE__);
    }
    return good;
}

// A kernel without tiles and without a heartbeat, which leaves after `ms`. For counting
// instructions with a profiler: `warps` parked warps in each of 132 blocks.
void park_for(double ms, const bench_pool &pool, wic_transfer_plan plan)
{
    wic_link_options options = bench_link_options(WAIT_PARKED, pool, plan);
    options.beat_ns = static_cast<uint64_t>(1e6 * ms);
    wic_link *link;
    if (wic_link_create(&options, &link) != 0 || wic_link_start(link, 0, 0) != 0) {
        bench_fail("the kernel does not start", __LINE__);
    }
    const double start = bench_seconds();
    const int rc = wic_link_join(link, WIC_LINK_BEAT_NS);
    printf("parked %u warps in each of %u blocks: left %d, %.2f ms after start\n", plan.warps,
           plan.blocks, rc, 1e3 * (bench_seconds() - start));
    wic_link_destroy(link);
}
