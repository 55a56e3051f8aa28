// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole way, for long: a producer thread, a channel, the resident kernel, a channel, a consumer
// thread. Tiles of random sizes (also empty ones, and ones that are no multiple of anything) from
// random places of a table; every element of every result is checked, and that the user bytes
// travel along.
#include "wic/bench/bench.cuh"
#include "wic/wic_device.h"

#include <cstring>
#include <thread>
#include <vector>

namespace
{
constexpr uint32_t slots = 64;
constexpr size_t table_units = 1 << 20, tile_units = 16384;

struct letter { // user bytes
    uint64_t number, place, units;
};

struct table {
    std::vector<uint16_t> red, nir;
    std::vector<int16_t> ndvi;
};

uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 8;
}

table make_table()
{
    table t{std::vector<uint16_t>(table_units), std::vector<uint16_t>(table_units),
            std::vector<int16_t>(table_units)};
    uint64_t random = 2463534242;
    for (size_t i = 0; i < table_units; i++) {
        t.red[i] = static_cast<uint16_t>(next_random(&random));
        t.nir[i] = i % 89 ? static_cast<uint16_t>(next_random(&random)) : t.red[i];
        t.ndvi[i] = ndvi_pixel(t.red[i], t.nir[i]);
    }
    return t;
}

wic_channel *make_channel(size_t slot_bytes, void **out_payload)
{
    wic_options options = {};
    options.slots = slots;
    options.slot_bytes = slot_bytes;
    CUDA_MUST(cudaHostAlloc(out_payload, slots * wic_slot_stride(slot_bytes),
                            cudaHostAllocPortable | cudaHostAllocMapped));
    options.payload = *out_payload;
    wic_channel *channel;
    void *memory = aligned_alloc(4096, (wic_channel_bytes(&options) + 4095) / 4096 * 4096);
    if (!memory || wic_channel_init(memory, &options, &channel) != 0) {
        bench_fail("a channel cannot be made", __LINE__);
    }
    return channel;
}

void produce(const table &t, wic_channel *in, uint64_t tiles, size_t piece_units)
{
    uint64_t random = 88172645463325252u;
    for (uint64_t i = 0; i < tiles; i++) {
        wic_slot slot;
        if (wic_acquire(in, WIC_FOREVER, &slot) != 0) {
            return; // aborted; the consumer says so
        }
        // Many small, some full, in all alignments.
        const uint64_t r = next_random(&random);
        const size_t units = r % 64 == 0 ? tile_units : (r >> 8) % (r % 4 ? 3000 : tile_units + 1);
        const size_t place = next_random(&random) % (table_units - tile_units);
        uint16_t *to = static_cast<uint16_t *>(slot.data);
        for (size_t at = 0; at < units; at += piece_units) {
            const size_t n = units - at < piece_units ? units - at : piece_units;
            memcpy(to + 2 * at, &t.red[place + at], 2 * n);
            memcpy(to + 2 * at + n, &t.nir[place + at], 2 * n);
        }
        const letter l = {i, place, units};
        memcpy(slot.user, &l, sizeof l);
        if (wic_publish(in, &slot, units * in_unit) != 0) {
            return;
        }
    }
    wic_close(in);
}

// Wrong elements; a tile that is not the next one counts as wholly wrong.
uint64_t consume(const table &t, wic_channel *out, uint64_t *tiles, uint64_t *elements)
{
    uint64_t wrong = 0;
    wic_slot slot;
    while (wic_wait(out, WIC_FOREVER, &slot) == 0) {
        letter l;
        memcpy(&l, slot.user, sizeof l);
        const int16_t *got = static_cast<const int16_t *>(slot.data);
        if (l.number != *tiles || slot.bytes != l.units * out_unit) {
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
} // namespace

bool soak(uint64_t tiles)
{
    const table t = make_table();
    void *in_payload, *out_payload;
    wic_device_options options = {};
    options.in = make_channel(tile_units * in_unit, &in_payload);
    options.out = make_channel(tile_units * out_unit, &out_payload);
    options.kernel = resident_kernel(WAIT_PARKED);
    wic_gpu gpu;
    const wic_tile_shape shape = {tile_units * in_unit, in_unit, out_unit};
    wic_device *device;
    if (wic_gpu_read(0, &gpu) != 0 ||
        wic_chunk_plan_choose(&gpu, &shape, nullptr, &options.plan) != 0 ||
        wic_device_open(&options, &device) != 0) {
        bench_fail("the device cannot be opened", __LINE__);
    }
    const double start = bench_seconds();
    int rc = 0;
    std::thread relay([&] { rc = wic_device_run(device); });
    std::thread producer([&] { produce(t, options.in, tiles, options.plan.piece_units); });
    uint64_t seen = 0, elements = 0;
    const uint64_t wrong = consume(t, options.out, &seen, &elements);
    producer.join();
    relay.join();
    const double seconds = bench_seconds() - start;
    wic_device_stats stats;
    wic_device_close(device, &stats);
    printf("soak: %llu of %llu tiles, %llu elements, %llu wrong, %.1f s, %.2f us a tile, status "
           "%d, left after %.2f ms\n",
           static_cast<unsigned long long>(seen), static_cast<unsigned long long>(tiles),
           static_cast<unsigned long long>(elements), static_cast<unsigned long long>(wrong),
           seconds, 1e6 * seconds / static_cast<double>(tiles), rc,
           1e-6 * static_cast<double>(stats.leave_ns));
    cudaFreeHost(in_payload);
    cudaFreeHost(out_payload);
    free(options.in);
    free(options.out);
    return rc == 0 && wrong == 0 && seen == tiles;
}

// A kernel that nobody posts to, and whose host is silent: leaves after `ms`. To be counted under a
// profiler: `warps` parked warps in each of 132 blocks.
void park_for(double ms, const bench_pool &pool, wic_chunk_plan plan)
{
    wic_link_options options = {};
    options.in = pool.in;
    options.out = pool.out;
    options.in_stride = pool.in_stride;
    options.out_stride = pool.out_stride;
    options.in_slots = options.out_slots = pool.slots;
    options.plan = plan;
    options.kernel = resident_kernel(WAIT_PARKED);
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
