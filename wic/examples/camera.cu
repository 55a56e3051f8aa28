// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A camera with two interleaved bands, red and near infrared, and the NDVI of each pixel, in ten
// lines (main). Each result is compared with the host's.
#include "wic/stream.hpp"

#include <cstdio>
#include <vector>

constexpr size_t pixels = 1024 * 1024;
constexpr uint32_t frames = 200;

__host__ __device__ short ndvi(ushort2 p)
{
    return static_cast<short>(1e4f * static_cast<float>(p.y - p.x) /
                              (static_cast<float>(p.y + p.x) + 1e-6f));
}

// In place of a camera's driver.
static bool grab(uint32_t number, std::vector<ushort2> &frame)
{
    for (size_t i = 0; i < pixels; i++) {
        frame[i] = {static_cast<unsigned short>(i * 7 + number),
                    static_cast<unsigned short>(i * 13 + number * 31)};
    }
    return number < frames;
}

// In place of a display.
static uint64_t good, shown;
static void show(const wic::frame<const short> &result)
{
    static std::vector<ushort2> frame(pixels);
    (void)grab(static_cast<uint32_t>(shown++), frame);
    for (size_t i = 0; i < result.size(); i++) {
        good += result[i] == ndvi(frame[i]);
    }
}

int main()
{
    std::vector<ushort2> frame(pixels);
    wic::stream<ushort2, short> s(pixels, {}, [] __device__(auto piece) {
        for (auto i : piece) {
            piece.out[i] = ndvi(piece.in[i]);
        }
    });
    if (!s) {
        fprintf(stderr, "%s\n", s.error().c_str());
        return 77; // no GPU that this can run on
    }
    for (uint32_t n = 0; grab(n, frame) && s.push(frame.data()); n++) {
        while (auto result = s.try_pop()) {
            show(*result);
        }
    }
    s.close();
    while (auto result = s.pop()) {
        show(*result);
    }
    printf("%llu of %llu pixels are right %s\n", static_cast<unsigned long long>(good),
           static_cast<unsigned long long>(pixels * frames), s.error().c_str());
    return good == pixels * frames && s.error().empty() ? 0 : 1;
}
