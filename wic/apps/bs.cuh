// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_BS_CUH
#define WIC_APP_BS_CUH
// G_BS: bitonic sort of 16 sorted blocks, of which party 0 has the even and party 1 the odd ones. A
// comparator of the network merges two blocks and keeps one half of them. Neighbours exchange their
// blocks in a step, all other comparators have both blocks of one party. Size: n = log2 of all
// keys.
#include "wic/apps/app.cuh"

#include <algorithm>
#include <vector>

struct bs_view {
    uint32_t keys;   // keys in a block
    uint32_t *of[2]; // own blocks, before and after a stage
    uint32_t *from;  // blocks of the other party, of each step
};

struct bs : app_base<bs_view> {
    using view = bs_view;
    static constexpr uint32_t blocks = 16, own = blocks / 2, steps = 4, units_most = 16384;
    static constexpr app_facts facts = {
        "bs",          "G_BS",           "multiple",       "scatter-gather",
        APP_EXCHANGES, sizeof(uint32_t), sizeof(uint32_t), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 10, 0}, {"small", 18, 0}, {"middle", 22, 0}, {"large", 24, 0}};

    static view lay_out(const app_size &size, int, app_arena &arena)
    {
        view v = {(1u << size.n) / blocks, {nullptr, nullptr}, nullptr};
        for (uint32_t **of : {&v.of[0], &v.of[1]}) {
            *of = arena.take<uint32_t>(size_t(own) * v.keys);
        }
        v.from = arena.take<uint32_t>(size_t(own) * steps * v.keys);
        return v;
    }
    static APP_DO uint32_t units(const view &v)
    {
        return v.keys / 2 < units_most ? v.keys / 2 : units_most;
    }
    static app_step most(const app_size &size)
    {
        app_step step = {};
        next(app_view<bs>(size, 0, nullptr), &step);
        return step;
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        step->down = step->up = own * (v.keys / units(v));
        step->down_units = step->up_units = units(v);
        return step->index < steps;
    }

    // A sorted block: sums of random gaps.
    static void fill(uint64_t seed, uint32_t block, uint32_t keys, uint32_t *to)
    {
        const auto gap = [&](uint32_t i) {
            return static_cast<double>(app_random(seed, uint64_t(block) * keys + i) >> 44);
        };
        double all = 1.0, sum = 0.0;
        for (uint32_t i = 0; i < keys; i++) {
            all += gap(i);
        }
        for (uint32_t i = 0; i < keys; i++) {
            sum += gap(i);
            to[i] = static_cast<uint32_t>(sum / all * 0x1p32);
        }
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        for (uint32_t block = 0; block < blocks; block++) {
            fill(seed, block, v0.keys,
                 (block % 2 == 0 ? v0 : v1).of[0] + size_t(block / 2) * v0.keys);
        }
    }

    // Stages before step t: it has one with the other party, and t + 1 of its own before the next.
    static APP_DO uint32_t stages(uint32_t t)
    {
        return t * (t + 3) / 2;
    }
    // The blocks take turns with their chunks.
    static APP_DO size_t place(const view &v, const app_piece &piece)
    {
        return size_t(piece.chunk % own) * v.keys + piece.chunk / own * units(v) + piece.first;
    }
    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        const uint32_t *from = app_turn(v.of, stages(step.index)) + place(v, piece);
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            static_cast<uint32_t *>(to)[u] = from[u];
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        uint32_t *to = v.from + size_t(step.index) * own * v.keys + place(v, piece);
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            to[u] = static_cast<const uint32_t *>(from)[u];
        }
    }

    // Key number d of the merge of two blocks; of equal ones those of x are first.
    static APP_DO uint32_t merged(const uint32_t *x, const uint32_t *y, uint32_t keys, uint32_t d)
    {
        uint32_t low = d > keys ? d - keys : 0, high = d < keys ? d : keys; // keys of x before it
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (x[middle] <= y[d - 1 - middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        const bool is_x = low < keys && (d - low >= keys || x[low] <= y[d - low]);
        return is_x ? x[low] : y[d - low];
    }
    // A stage of the bitonic network: comparators of blocks i and i ^ j within groups of k.
    static APP_DO bool keeps_low(uint32_t block, uint32_t k, uint32_t j)
    {
        return ((block & j) == 0) == ((block & k) == 0);
    }
    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t phase, app_part part)
    {
        const uint32_t t = step.index, stage = stages(t) + phase;
        const uint32_t k = (phase == 0 ? 2u : 4u) << t, j = phase == 0 ? 1 : (4u << t) >> phase;
        const uint32_t *now = app_turn(v.of, stage), *from = v.from + size_t(t) * own * v.keys;
        for (size_t i = part.thread; i < size_t(own) * v.keys; i += part.threads) {
            const uint32_t block = static_cast<uint32_t>(i / v.keys) * 2 + party, other = block ^ j;
            const uint32_t *mine = now + size_t(block / 2) * v.keys;
            const uint32_t *its = (phase == 0 ? from : now) + size_t(other / 2) * v.keys;
            const uint32_t d =
                static_cast<uint32_t>(i % v.keys) + (keeps_low(block, k, j) ? 0 : v.keys);
            app_turn(v.of, stage + 1)[i] =
                merged(block < other ? mine : its, block < other ? its : mine, v.keys, d);
        }
    }
    static APP_DO uint32_t settles(const app_step &step)
    {
        return step.index < steps - 1 ? step.index + 2 : 1;
    }

    // The network over all blocks by std::merge, for what the parties exchanged; then std::sort.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const uint32_t keys = v0.keys;
        std::vector<std::vector<uint32_t>> block(blocks, std::vector<uint32_t>(keys));
        std::vector<uint32_t> sorted, both(2 * size_t(keys));
        for (uint32_t i = 0; i < blocks; i++) {
            fill(seed, i, keys, block[i].data());
            sorted.insert(sorted.end(), block[i].begin(), block[i].end());
        }
        uint32_t step = 0;
        for (uint32_t k = 2; k <= blocks; k *= 2) {
            for (uint32_t j = k / 2; j > 0; j /= 2) {
                for (uint32_t i = 0; i < blocks && j == 1; i++) {
                    const uint32_t *has =
                        (i % 2 == 0 ? v1 : v0).from + (size_t(step) * own + i / 2) * keys;
                    if (!std::equal(block[i].begin(), block[i].end(), has)) {
                        return app_wrong(why, "block in step", step);
                    }
                }
                step += j == 1;
                for (uint32_t i = 0; i < blocks; i++) {
                    std::vector<uint32_t> &x = block[i], &y = block[i ^ j];
                    if ((i & j) == 0) {
                        std::merge(x.begin(), x.end(), y.begin(), y.end(), both.begin());
                        const bool is_low = (i & k) == 0;
                        std::copy_n(both.begin(), keys, (is_low ? x : y).begin());
                        std::copy_n(both.begin() + keys, keys, (is_low ? y : x).begin());
                    }
                }
            }
        }
        std::sort(sorted.begin(), sorted.end());
        for (size_t i = 0; i < sorted.size(); i++) {
            const size_t of = i / keys;
            if ((of % 2 == 0 ? v0 : v1).of[0][of / 2 * keys + i % keys] != sorted[i]) {
                return app_wrong(why, "key", i);
            }
        }
        return true;
    }
};
#endif
