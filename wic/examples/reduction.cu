// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Count, sum and extremes of the samples of frames of different sizes. Each result is compared with
// the host's.
#include "wic/reduction.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

constexpr size_t samples = 3000001;
constexpr uint32_t frames = 100;

struct facts {
    uint64_t count, sum;
    uint32_t least, most;
};

constexpr facts nothing = {0, 0, UINT32_MAX, 0};

struct together {
    __host__ __device__ facts operator()(const facts &a, const facts &b) const
    {
        return {a.count + b.count, a.sum + b.sum, a.least < b.least ? a.least : b.least,
                a.most > b.most ? a.most : b.most};
    }
};

__host__ __device__ facts with(const facts &a, uint32_t sample)
{
    return together()(a, {1, sample, sample, sample});
}

static size_t size_of(uint64_t number)
{
    return number % 7 == 3 ? 1 : samples - number * 1009;
}

static std::vector<uint16_t> expose(uint64_t number)
{
    std::vector<uint16_t> frame(size_of(number));
    for (size_t i = 0; i < frame.size(); i++) {
        frame[i] = static_cast<uint16_t>((i * 40503 + number * 977) >> 3);
    }
    return frame;
}

static bool is_right(const wic::frame<const facts> &result)
{
    facts want = nothing, have = nothing;
    for (const uint16_t sample : expose(result.number())) {
        want = with(want, sample);
    }
    for (const facts &part : result) { // one of each piece
        have = together()(have, part);
    }
    return have.count == want.count && have.sum == want.sum && have.least == want.least &&
           have.most == want.most;
}

int main()
{
    wic::reduction<uint16_t, facts> s(
        samples, {},
        [] __device__(auto piece) {
            facts mine = nothing;
            for (auto i : piece) {
                mine = with(mine, piece.in[i]);
            }
            return mine;
        },
        together());
    if (!s) {
        fprintf(stderr, "%s\n", s.error().c_str());
        return 77; // no GPU that this can run on
    }
    uint32_t good = 0;
    for (uint64_t n = 0; n < frames; n++) {
        const std::vector<uint16_t> frame = expose(n);
        if (!s.push(frame.data(), frame.size())) {
            break;
        }
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
