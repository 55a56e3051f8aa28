// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_H3D_CUH
#define WIC_APP_H3D_CUH
// C_H3D, the cycle of the Comb benchmark: pack six faces of three variables, exchange them, update
// the interior meanwhile, unpack. The device has a cube of cells, the host the layer of cells round
// it, within an edge that never changes. Size: n = cells of the cube's side, m = cycles.
#include "wic/apps/grid.cuh"

// Both parties have arrays of n + 4 cells a side and number cells alike: 0 is the edge, 1 the
// host's layer, 2 .. n + 1 the device's cube.
struct h3d_view {
    uint32_t n, cycles;
    float *of[2]; // for even and odd cycles: three variables, one after the other
};

struct h3d : app_base<h3d_view> {
    using view = h3d_view;
    static constexpr uint32_t vars = 3, faces = 6;
    static constexpr app_facts facts = {"h3d",         "C_H3D",       "multiple",    "adjacent",
                                        APP_EXCHANGES, sizeof(float), sizeof(float), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 4, 5}, {"small", 64, 100}, {"middle", 128, 100}, {"large", 256, 100}};

    static APP_DO size_t side(const view &v)
    {
        return v.n + 4;
    }
    static APP_DO size_t cells(const view &v)
    {
        return side(v) * side(v) * side(v);
    }
    static view lay_out(const app_size &size, int, app_arena &arena)
    {
        view v = {size.n, size.m, {nullptr, nullptr}};
        for (float *&of : v.of) {
            of = arena.take<float>(vars * cells(v));
        }
        return v;
    }
    static app_step most(const app_size &size)
    {
        return {0, 0, faces, faces, vars * size.n * size.n, vars * size.n * size.n};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        step->down = step->up = faces;
        step->down_units = step->up_units = vars * v.n * v.n;
        return step->index < v.cycles;
    }

    // True if the coordinates are in the cube of cells first .. last.
    static APP_DO bool is_within(const size_t at[3], size_t first, size_t last)
    {
        return at[0] >= first && at[0] <= last && at[1] >= first && at[1] <= last &&
               at[2] >= first && at[2] <= last;
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        const size_t n = side(v0);
        for (size_t i = 0; i < vars * cells(v0); i++) {
            const size_t at[3] = {i % n, i / n % n, i / n / n % n};
            const float value = grid_value(seed, i);
            if (is_within(at, 2, n - 3)) {
                v1.of[0][i] = value;
            } else {
                v0.of[0][i] = value;
                if (!is_within(at, 1, n - 2)) {
                    v0.of[1][i] = value;
                }
            }
        }
    }

    // Cell u of a face of the cube first .. last, moved outwards by `out` cells. The faces are
    // x low, x high, y low and so on. *is_first: no lower face has the cell.
    static APP_DO size_t cell_of(const view &v, uint32_t face, uint32_t u, size_t first,
                                 size_t last, uint32_t out, bool *is_first)
    {
        const size_t across = last - first + 1, n = side(v);
        const uint32_t axis = face / 2;
        const size_t a = first + u % across, b = first + u / across % across;
        const size_t at = face % 2 == 0 ? first - out : last + out;
        const size_t inside = axis == 0   ? (b * n + a) * n + at
                              : axis == 1 ? (a * n + at) * n + b
                                          : (at * n + b) * n + a;
        *is_first =
            axis == 0 || (b != first && b != last && (axis == 1 || (a != first && a != last)));
        return u / (across * across) * cells(v) + inside;
    }
    static APP_DO void update(const view &v, const app_step &step, size_t cell)
    {
        app_turn(v.of, step.index + 1)[cell] =
            grid_seven(app_turn(v.of, step.index) + cell, side(v), side(v) * side(v));
    }

    // Faces are numbered by the device's cube; the host's cells are one further out.
    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        bool is_first;
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            static_cast<float *>(to)[u] = app_turn(v.of, step.index)[cell_of(
                v, piece.chunk, piece.first + u, 2, v.n + 1, party == 0, &is_first)];
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        bool is_first;
        for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
            app_turn(v.of, step.index)[cell_of(v, piece.chunk, piece.first + u, 2, v.n + 1,
                                               party == 1, &is_first)] =
                static_cast<const float *>(from)[u];
        }
    }
    template <int party>
    static APP_DO void independent(const view &v, const app_step &step, app_part part)
    {
        if constexpr (party == 0) {
            return; // nearly all cells of the layer have a neighbour in the cube
        }
        const size_t inner = v.n - 2, n = side(v);
        for (size_t i = part.thread; i < vars * inner * inner * inner; i += part.threads) {
            const size_t x = 3 + i % inner, y = 3 + i / inner % inner, z = i / inner / inner;
            update(v, step, z / inner * cells(v) + ((3 + z % inner) * n + y) * n + x);
        }
    }
    // The faces of the own cells.
    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t, app_part part)
    {
        const size_t first = party == 0 ? 1 : 2, last = v.n + (party == 0 ? 2 : 1);
        const uint32_t across = static_cast<uint32_t>(last - first + 1);
        const uint32_t units = vars * across * across;
        for (uint32_t i = part.thread; i < faces * units; i += part.threads) {
            bool is_first;
            const size_t cell = cell_of(v, i / units, i % units, first, last, 0, &is_first);
            if (is_first) {
                update(v, step, cell);
            }
        }
    }
    static APP_DO uint32_t settles(const app_step &)
    {
        return 1;
    }

    // The same cycles over all cells at once.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const size_t n = side(v0), all = vars * cells(v0);
        std::vector<float> now(all);
        for (size_t i = 0; i < all; i++) {
            now[i] = grid_value(seed, i);
        }
        std::vector<float> then(now);
        for (uint32_t cycle = 0; cycle < v0.cycles; cycle++) {
            for (size_t line = 0; line < vars * n * n; line++) {
                const size_t y = line % n, z = line / n % n;
                for (size_t x = 1; x < n - 1 && y > 0 && y < n - 1 && z > 0 && z < n - 1; x++) {
                    then[line * n + x] = grid_seven(&now[line * n + x], n, n * n);
                }
            }
            now.swap(then);
        }
        for (size_t i = 0; i < all; i++) {
            const size_t at[3] = {i % n, i / n % n, i / n / n % n};
            const float *has = (is_within(at, 2, n - 3) ? v1 : v0).of[v0.cycles % 2];
            if (memcmp(&has[i], &now[i], sizeof(float)) != 0) {
                return app_wrong(why, "cell", i);
            }
        }
        return true;
    }
};
#endif
