// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_PATTERNS_CUH
#define WIC_BENCH_PATTERNS_CUH
// The uses of the patterns of wic/patterns, each with wic's resident kernel, which gets what the
// pattern's schedule says next, and by streams. An item is what is waited for as a whole: a round
// of k-means, the composite of several observations, a chunk behind its mask.
#include "wic/bench/base/bench.cuh"
#include "wic/bench/replay/replay.cuh"

// A way to get items done; `slots` are under way at most, and poll returns how many are done, in
// any order.
class pattern_way : public strategy
{
  public:
    using strategy::strategy;
    // Mistakes in the results of the items so far that are still there to be seen; none is under
    // way.
    virtual uint64_t wrong() = 0;
};

struct pattern_shape {
    uint32_t lanes;     // items at a time
    uint32_t piece_kib; // of wic's; 0: by its plan
};

template <class Way> std::unique_ptr<pattern_way> make_pattern_way(const pattern_shape &shape)
{
    return std::make_unique<Way>(shape);
}

struct pattern_rival {
    const char *name;
    std::unique_ptr<pattern_way> (*make)(const pattern_shape &shape);
    std::vector<pattern_shape> shapes; // to choose from
};

struct pattern_use {
    const char *name;
    std::vector<size_t> sizes; // of what, says `size_name`
    const char *size_name;
    double (*item_bytes)(size_t size); // over the link to the device, or read there
    void (*set_up)(size_t size);       // memory and what is expected, for all rivals
    void (*take_down)();
    std::vector<pattern_rival> rivals; // wic's first
};

struct bench_options;
bool measure_patterns(const bench_options &opt); // true: every result was right

pattern_use classify_use();  // alternating: centres down, sums up
pattern_use composite_use(); // multiple: n chunks down, one up, state on the device
pattern_use gate_use();      // probabilistic: the mask down, and what it says then
#endif
