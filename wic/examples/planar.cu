// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Planar frames of three bands, whose rows have a pitch, through a 3 x 3 filter. Each result is
// compared with the host's.
#include "wic/rows.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

constexpr int32_t width = 1000, height = 701;
constexpr uint32_t bands = 3, frames = 40;
constexpr size_t row = 1024; // pixels, with the gap after them

__host__ __device__ uint16_t weighted(uint32_t corners, uint32_t sides, uint32_t middle)
{
    return static_cast<uint16_t>((corners + 2 * sides + 4 * middle + 8) / 16);
}

// In place of a sensor.
static void expose(uint32_t number, uint16_t *frame)
{
    for (size_t i = 0; i < bands * height * row; i++) {
        frame[i] = static_cast<uint16_t>((i * 2654435761u >> 7) + number * 977);
    }
}

static uint16_t smooth(const uint16_t *frame, uint32_t band, int32_t x, int32_t y)
{
    const auto at = [&](int32_t dx, int32_t dy) {
        const size_t column = static_cast<size_t>(std::clamp(x + dx, 0, width - 1));
        const size_t line = static_cast<size_t>(std::clamp(y + dy, 0, height - 1));
        return uint32_t{frame[(band * height + line) * row + column]};
    };
    return weighted(at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1),
                    at(0, -1) + at(-1, 0) + at(1, 0) + at(0, 1), at(0, 0));
}

static bool is_right(const wic::frame<const uint16_t> &result)
{
    static std::vector<uint16_t> frame(bands * height * row);
    expose(static_cast<uint32_t>(result.number()), frame.data());
    bool good = result.size() == size_t{bands} * height * width;
    const uint16_t *next = result.begin();
    for (uint32_t band = 0; good && band < bands; band++) {
        for (int32_t y = 0; y < height; y++) {
            for (int32_t x = 0; x < width; x++) {
                good = *next++ == smooth(frame.data(), band, x, y) && good;
            }
        }
    }
    return good;
}

int main()
{
    const wic::image image = {width, height, bands, row * sizeof(uint16_t)};
    wic::rows<uint16_t, uint16_t> s(image, bands, {}, [] __device__(auto piece) {
        for (auto [x, y] : piece) {
            for (uint32_t b = 0; b < piece.bands; b++) {
                piece.out(b, x, y) =
                    weighted(piece.in(b, x - 1, y - 1) + piece.in(b, x + 1, y - 1) +
                                 piece.in(b, x - 1, y + 1) + piece.in(b, x + 1, y + 1),
                             piece.in(b, x, y - 1) + piece.in(b, x - 1, y) + piece.in(b, x + 1, y) +
                                 piece.in(b, x, y + 1),
                             piece.in(b, x, y));
            }
        }
    });
    if (!s) {
        fprintf(stderr, "%s\n", s.error().c_str());
        return 77; // no GPU that this can run on
    }
    uint32_t good = 0;
    for (uint32_t n = 0; n < frames; n++) {
        auto frame = s.acquire(); // a pinned slot, filled without a copy
        if (!frame) {
            break;
        }
        expose(n, frame->data());
        s.publish(*frame);
        while (auto result = s.try_pop()) {
            good += is_right(*result);
        }
    }
    s.close();
    while (auto result = s.pop()) {
        good += is_right(*result);
    }
    printf("%u of %u frames are right %s\n", good, frames, s.error().c_str());
    return good == frames && s.error().empty() ? 0 : 1;
}
