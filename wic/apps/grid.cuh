// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_GRID_CUH
#define WIC_APP_GRID_CUH
// Stencils on regular grids of floats: the points of a cell (h3d, stn), and an application of two
// parties that have half of the slices each and exchange those at the border (c2d, stn).
#include "wic/apps/app.cuh"

#include <vector>

// A random float in 0 .. 1.
inline float grid_value(uint64_t seed, uint64_t place)
{
    return static_cast<float>(app_random(seed, place) >> 40) * 0x1p-24f;
}

// The mean of a cell and its six neighbours in space.
APP_DO float grid_seven(const float *cell, size_t row, size_t plane)
{
    return 0.4f * cell[0] + 0.1f * (cell[-1] + cell[1]) + 0.11f * (*(cell - row) + cell[row]) +
           0.09f * (*(cell - plane) + cell[plane]);
}

// Party 0 has slices 0 .. n / 2 - 1 of a grid, party 1 the others. Each has two arrays of n / 2 + 2
// slices, for even and odd passes: its own, from index 1 on, between a slice of the other party and
// one of zeros.
struct grid_halves {
    uint32_t n, passes;
    float *of[2];
};

// The stencil S has slice(n), cells of a slice; is_edge(n, u), true if cell u of a slice never
// changes; point(n, cell), the next value; chunks, of a slice.
template <class S> struct grid_app : app_base<grid_halves> {
    using view = grid_halves;

    static view lay_out(const app_size &size, int, app_arena &arena)
    {
        view v = {size.n, size.m, {nullptr, nullptr}};
        for (float *&of : v.of) {
            of = arena.take<float>((size.n / 2 + 2) * S::slice(size.n));
        }
        return v;
    }
    static app_step most(const app_size &size)
    {
        const uint32_t units = static_cast<uint32_t>(S::slice(size.n)) / S::chunks;
        return {0, 0, S::chunks, S::chunks, units, units};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        step->down = step->up = S::chunks;
        step->down_units = step->up_units = static_cast<uint32_t>(S::slice(v.n)) / S::chunks;
        return step->index < v.passes;
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        const size_t slice = S::slice(v0.n), cells = v0.n / 2 * slice;
        for (size_t i = 0; i < cells; i++) {
            v0.of[0][slice + i] = grid_value(seed, i);
            v1.of[0][slice + i] = grid_value(seed, cells + i);
        }
        for (int pass = 0; pass < 2; pass++) {
            memset(v0.of[pass], 0, slice * sizeof(float));
            memset(v1.of[pass] + slice + cells, 0, slice * sizeof(float));
        }
    }

    // The own slice at the border, and the other party's next to it.
    template <int party> static APP_DO size_t border(const view &v)
    {
        return (party == 0 ? v.n / 2 : 1) * S::slice(v.n);
    }
    template <int party> static APP_DO size_t ghost(const view &v)
    {
        return (party == 0 ? v.n / 2 + 1 : 0) * S::slice(v.n);
    }
    static APP_DO void update(const view &v, const app_step &step, size_t cell)
    {
        const float *now = app_turn(v.of, step.index) + cell;
        app_turn(v.of, step.index + 1)[cell] =
            S::is_edge(v.n, cell % S::slice(v.n)) ? *now : S::point(v.n, now);
    }

    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        const float *from = app_turn(v.of, step.index) + border<party>(v) +
                            size_t(piece.chunk) * step.down_units + piece.first;
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            static_cast<float *>(to)[u] = from[u];
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        float *to = app_turn(v.of, step.index) + ghost<party>(v) +
                    size_t(piece.chunk) * step.down_units + piece.first;
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            to[u] = static_cast<const float *>(from)[u];
        }
    }
    template <int party>
    static APP_DO void independent(const view &v, const app_step &step, app_part part)
    {
        const size_t slice = S::slice(v.n), first = party == 0 ? slice : 2 * slice;
        for (size_t i = part.thread; i < (v.n / 2 - 1) * slice; i += part.threads) {
            update(v, step, first + i);
        }
    }
    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t, app_part part)
    {
        for (size_t i = part.thread; i < S::slice(v.n); i += part.threads) {
            update(v, step, border<party>(v) + i);
        }
    }
    static APP_DO uint32_t settles(const app_step &)
    {
        return 1;
    }

    // The same passes over a grid that was not divided.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const size_t slice = S::slice(v0.n), cells = v0.n * slice;
        std::vector<float> now(cells + 2 * slice, 0.0f), then(now);
        for (size_t i = 0; i < cells; i++) {
            now[slice + i] = grid_value(seed, i);
        }
        for (uint32_t pass = 0; pass < v0.passes; pass++) {
            for (size_t at = slice; at < slice + cells; at += slice) {
                for (size_t u = 0; u < slice; u++) {
                    then[at + u] = S::is_edge(v0.n, u) ? now[at + u] : S::point(v0.n, &now[at + u]);
                }
            }
            now.swap(then);
        }
        for (size_t i = 0; i < cells; i++) {
            const float *has = (i < cells / 2 ? v0 : v1).of[v0.passes % 2];
            if (memcmp(&has[slice + i % (cells / 2)], &now[slice + i], sizeof(float)) != 0) {
                return app_wrong(why, "cell", i);
            }
        }
        return true;
    }
};
#endif
