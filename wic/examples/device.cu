// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A resident kernel between two channels, which scales 16-bit samples.
#include "wic/device/wic_device.cuh"
#include "wic/device/wic_device.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

constexpr uint32_t tiles = 2000, tile_samples = 100000, slots = 8, unit_bytes = 16; // 8 samples
constexpr size_t tile_bytes = tile_samples * sizeof(uint16_t);

struct gain {
    uint32_t times, over;
};

__host__ __device__ uint32_t scaled(uint32_t sample, gain g)
{
    return min(sample * g.times / g.over, 65535u);
}

__device__ uint32_t scaled_two(uint32_t samples, gain g)
{
    return scaled(samples & 0xffff, g) | scaled(samples >> 16, g) << 16;
}

__global__ void __launch_bounds__(1024) scale(const __grid_constant__ wic_view view, const gain g)
{
    wic_resident(view, [&](const wic_piece &piece) {
        const uint4 *in = static_cast<const uint4 *>(piece.in);
        uint4 *out = static_cast<uint4 *>(piece.out);
        for (uint32_t i = piece.thread; i < piece.units; i += piece.threads) {
            const uint4 v = in[i];
            out[i] = make_uint4(scaled_two(v.x, g), scaled_two(v.y, g), scaled_two(v.z, g),
                                scaled_two(v.w, g));
        }
    });
}

static wic_channel *make_channel()
{
    wic_options options = {};
    options.slots = slots;
    options.slot_bytes = tile_bytes;
    wic_channel *channel = nullptr;
    void *memory = aligned_alloc(4096, (wic_channel_bytes(&options) + 4095) / 4096 * 4096);
    return memory && wic_channel_init(memory, &options, &channel) == 0 ? channel : nullptr;
}

static void produce(wic_channel *in)
{
    wic_slot slot;
    for (uint32_t tile = 0; tile < tiles && wic_acquire(in, WIC_FOREVER, &slot) == 0; tile++) {
        for (uint32_t i = 0; i < tile_samples; i++) {
            static_cast<uint16_t *>(slot.data)[i] = static_cast<uint16_t>(tile * 7 + i);
        }
        wic_publish(in, &slot, tile_bytes);
    }
    wic_close(in);
}

int main()
{
    const gain g = {3, 2};
    wic_gpu gpu;
    const wic_tile_shape shape = {tile_bytes, unit_bytes, unit_bytes};
    wic_device_options options = {};
    wic_device *device;
    options.in = make_channel();
    options.out = make_channel();
    options.kernel = reinterpret_cast<const void *>(scale);
    options.argument = &g;
    if (wic_gpu_read(0, &gpu) != 0 || !options.in || !options.out ||
        wic_transfer_plan_choose(&gpu, &shape, nullptr, &options.plan) != 0 ||
        wic_device_open(&options, &device) != 0) {
        fprintf(stderr, "no GPU that this can run on\n");
        return 77;
    }
    int rc = 0;
    std::thread proxy([&] { rc = wic_device_run(device); }); // the device proxy
    std::thread producer([&] { produce(options.in); });
    uint64_t good = 0;
    for (wic_slot slot; wic_wait(options.out, WIC_FOREVER, &slot) == 0;) {
        for (uint32_t i = 0; i < tile_samples; i++) {
            const uint16_t sample = static_cast<uint16_t>(slot.ticket * 7 + i);
            good += static_cast<uint16_t *>(slot.data)[i] == scaled(sample, g);
        }
        wic_release(options.out, &slot);
    }
    producer.join();
    proxy.join();
    wic_device_close(device, nullptr);
    free(options.in);
    free(options.out);
    printf("%llu samples scaled, status %d\n", static_cast<unsigned long long>(good), rc);
    return rc == 0 && good == uint64_t{tiles} * tile_samples ? 0 : 1;
}
