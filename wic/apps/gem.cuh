// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_GEM_CUH
#define WIC_APP_GEM_CUH
// G_GEM: C = A B of square matrices of floats. Party 1 has A and C. For each quarter of the columns
// party 0 sends B in panels of rows; party 1 adds the product of the panel before while it waits,
// and sends the quarter of C in a step of its own. Elements of A and B are small integers, whose
// sums are exact in every order. Size: n = side, m = rows of a panel.
#include "wic/apps/app.cuh"

#include <vector>

struct gem_view {
    uint32_t n, panel;
    float *a; // party 1
    float *b; // party 0: B; party 1: two panels
    float *c; // [quarter][row][column]
};

struct gem : app_base<gem_view> {
    using view = gem_view;
    static constexpr uint32_t quarters = 4, parts = 2, tile = 4; // parts: chunks of a panel
    static constexpr app_facts facts = {"gem",       "G_GEM",       "multiple",    "streaming",
                                        APP_ANSWERS, sizeof(float), sizeof(float), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 16, 4}, {"small", 1024, 64}, {"middle", 2048, 128}, {"large", 4096, 256}};

    static view lay_out(const app_size &size, int party, app_arena &arena)
    {
        view v = {size.n, size.m, nullptr, nullptr, nullptr};
        const size_t all = size_t(size.n) * size.n;
        v.c = arena.take<float>(all);
        if (party == 0) {
            v.b = arena.take<float>(all);
        } else {
            v.a = arena.take<float>(all);
            v.b = arena.take<float>(2 * size_t(size.m) * columns(v));
        }
        return v;
    }
    static APP_DO uint32_t columns(const view &v) // in a quarter
    {
        return v.n / quarters;
    }
    static APP_DO uint32_t steps(const view &v) // a quarter has one for each panel and one for C
    {
        return v.n / v.panel + 1;
    }
    static app_step most(const app_size &size)
    {
        const uint32_t units = size.m * (size.n / quarters) / parts;
        return {0, 0, parts, size.n / size.m * parts, units, units};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        const bool is_last = step->index % steps(v) == steps(v) - 1;
        step->down = is_last ? 0 : parts;
        step->up = is_last ? v.n / v.panel * parts : 0;
        step->down_units = step->up_units = v.panel * columns(v) / parts;
        return step->index < quarters * steps(v);
    }

    static float element_of(uint64_t seed, size_t i) // -4 .. 4
    {
        return static_cast<float>(app_random(seed, i) % 9) - 4.0f;
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        for (size_t i = 0; i < size_t(v0.n) * v0.n; i++) {
            v1.a[i] = element_of(seed, i);
            v0.b[i] = element_of(seed + 1, i);
            v1.c[i] = 0.0f;
        }
    }

    static APP_DO size_t quarter_of(const view &v, const app_step &step) // its first element in C
    {
        return step.index / steps(v) * columns(v) * size_t(v.n);
    }
    static APP_DO float *panel_of(const view &v, uint32_t index) // memory of party 1
    {
        return v.b + index % steps(v) % 2 * v.panel * columns(v);
    }
    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        const size_t first = size_t(piece.chunk) * step.down_units + piece.first;
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            if constexpr (party == 0) {
                const size_t row = step.index % steps(v) * v.panel + (first + u) / columns(v);
                const size_t column = step.index / steps(v) * columns(v) + (first + u) % columns(v);
                static_cast<float *>(to)[u] = v.b[row * v.n + column];
            } else {
                static_cast<float *>(to)[u] = v.c[quarter_of(v, step) + first + u];
            }
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        const size_t first = size_t(piece.chunk) * step.down_units + piece.first;
        float *to = party == 0 ? v.c + quarter_of(v, step) : panel_of(v, step.index);
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            to[first + u] = static_cast<const float *>(from)[u];
        }
    }
    // Tiles of 4 x 4 elements of C.
    template <int party>
    static APP_DO void independent(const view &v, const app_step &step, app_part part)
    {
        if (party == 0 || step.index % steps(v) == 0) {
            return;
        }
        const uint32_t across = columns(v) / tile, before = step.index - 1;
        const float *a = v.a + size_t(before % steps(v)) * v.panel, *b = panel_of(v, before);
        for (uint32_t t = part.thread; t < v.n / tile * across; t += part.threads) {
            const size_t row = t / across * tile, column = t % across * tile;
            float sum[tile][tile] = {};
            for (uint32_t k = 0; k < v.panel; k++) {
                for (uint32_t i = 0; i < tile; i++) {
                    for (uint32_t j = 0; j < tile; j++) {
                        sum[i][j] += a[(row + i) * v.n + k] * b[k * columns(v) + column + j];
                    }
                }
            }
            float *c = v.c + quarter_of(v, step) + row * columns(v) + column;
            for (uint32_t i = 0; i < tile * tile; i++) {
                c[i / tile * columns(v) + i % tile] += sum[i / tile][i % tile];
            }
        }
    }

    // Freivalds: C r = A (B r) for four vectors of 20 random bits, in integers. A wrong row passes
    // with a probability of 2^-80.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const size_t n = v0.n, width = columns(v0);
        for (uint64_t vector = 0; vector < 4; vector++) {
            std::vector<int64_t> r(n), br(n, 0);
            for (size_t i = 0; i < n; i++) {
                r[i] = static_cast<int64_t>(app_random(seed + 2, vector * n + i) >> 44);
            }
            for (size_t i = 0; i < n * n; i++) {
                br[i / n] += static_cast<int64_t>(element_of(seed + 1, i)) * r[i % n];
            }
            for (size_t row = 0; row < n; row++) {
                int64_t wanted = 0, has = 0;
                for (size_t i = 0; i < n; i++) {
                    const float c = v0.c[(i / width * n + row) * width + i % width];
                    if (!(std::abs(c) < 1e6f) || c != static_cast<float>(static_cast<int64_t>(c))) {
                        return app_wrong(why, "element of C", row * n + i);
                    }
                    wanted += static_cast<int64_t>(element_of(seed, row * n + i)) * br[i];
                    has += static_cast<int64_t>(c) * r[i];
                }
                if (wanted != has) {
                    return app_wrong(why, "row of C", row);
                }
            }
        }
        return memcmp(v0.c, v1.c, n * n * sizeof *v0.c) == 0 || app_wrong(why, "C of party", 1);
    }
};
#endif
