// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// An ordinary kernel as the worker of a stream: it is launched once, with a grid of its own, and
// its blocks wait for frames. Then one launch for each frame, of a grid that is larger than the
// GPU. Each result is compared with the host's.
#include "wic/guest.hpp"

#include <cstdio>
#include <vector>

constexpr size_t samples = 1000000;
constexpr uint32_t frames = 100;

__host__ __device__ uint32_t square(uint16_t sample)
{
    return uint32_t{sample} * sample;
}

__global__ void square_kernel(wic::guest<uint16_t, uint32_t> g)
{
    while (g.wait()) {
        for (auto i : g) {
            g.out[i] = square(g.in[i]);
        }
        g.done();
    }
}

static void expose(uint32_t number, std::vector<uint16_t> &frame)
{
    for (size_t i = 0; i < samples; i++) {
        frame[i] = static_cast<uint16_t>(i * 7 + number * 31);
    }
}

static bool run(const wic::grid &grid, bool each_frame)
{
    cudaStream_t stream;
    std::vector<uint16_t> frame(samples), wanted(samples);
    uint64_t good = 0;
    uint32_t shown = 0;
    const auto show = [&](const wic::frame<const uint32_t> &result) {
        expose(shown++, wanted);
        for (size_t i = 0; i < result.size(); i++) {
            good += result[i] == square(wanted[i]);
        }
    };
    wic::guests<uint16_t, uint32_t> s(samples, square_kernel, grid);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!each_frame) {
        if (auto g = s.for_all()) {
            square_kernel<<<grid.blocks, grid.threads, 0, stream>>>(*g);
        }
    }
    for (uint32_t n = 0; s && n < frames; n++) {
        if (each_frame) { // before its frame is there
            if (auto g = s.for_frame(n)) {
                square_kernel<<<grid.blocks, grid.threads, 0, stream>>>(*g);
            }
        }
        expose(n, frame);
        s.push(frame.data());
        while (auto result = s.try_pop()) {
            show(*result);
        }
    }
    s.close();
    while (auto result = s.pop()) {
        show(*result);
    }
    cudaStreamSynchronize(stream); // the guests have left
    s.stop();
    cudaStreamDestroy(stream);
    printf("%u blocks, %s: %llu of %llu samples are right %s\n", grid.blocks,
           each_frame ? "a launch for each frame" : "one launch",
           static_cast<unsigned long long>(good), static_cast<unsigned long long>(samples * frames),
           s.error().c_str());
    return good == samples * frames && s.error().empty();
}

int main()
{
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        return 77; // no GPU that this can run on
    }
    const bool first = run({64, 256}, false);
    const bool second = run({4096, 256}, true);
    return first && second ? 0 : 1;
}
