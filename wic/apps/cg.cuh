// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_CG_CUH
#define WIC_APP_CG_CUH
// C_CG, the loop of the HPCCG benchmark: conjugate gradients with a matrix of 27 points, 27 on its
// diagonal and -1 elsewhere. Size: n = points of the cube's side, m = iterations.
#include "wic/apps/sparse.cuh"

struct cg : app_base<sparse_view> {
    using view = sparse_view;
    static constexpr app_facts facts = {"cg",        "C_CG",         "alternating",  "random",
                                        APP_ANSWERS, sizeof(double), sizeof(double), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 8, 5}, {"small", 32, 150}, {"middle", 64, 150}, {"large", 128, 150}};

    static view lay_out(const app_size &size, int party, app_arena &arena)
    {
        view v = {};
        sparse_lay_out(size.n, size.m, party, arena, &v);
        return v;
    }
    static app_step most(const app_size &size)
    {
        const view v = app_view<cg>(size, 0, nullptr);
        return {0, 0, 1, 1, sparse_border(v, 0), sparse_border(v, 1)};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        return sparse_next(v, step->index, step);
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        for (const view *v : {&v0, &v1}) {
            sparse_begin(*v, seed);
            for (size_t at = 0; at < size_t(sparse_slots) * v->own; at++) {
                const uint32_t slot = static_cast<uint32_t>(at / v->own);
                const uint32_t row = v->first + static_cast<uint32_t>(at % v->own);
                v->value[at] = slot == sparse_slots / 2 ? 27.0 : v->column[at] == row ? 0.0 : -1.0;
            }
        }
    }

    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        sparse_make<party>(v, step.index, piece, to, part);
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        sparse_dependent<party>(v, step.index, piece, from, part);
    }
    template <int party>
    static APP_DO void independent(const view &v, const app_step &step, app_part part)
    {
        sparse_independent<party>(v, step.index, part);
    }
    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t phase, app_part part)
    {
        sparse_settle<party>(v, step.index, phase, part);
    }
    static APP_DO uint32_t settles(const app_step &step)
    {
        return sparse_settles(step.index);
    }

    // The matrix as loops over neighbours.
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        const auto multiply = [&](const std::vector<double> &p, std::vector<double> &ap) {
            const int n = static_cast<int>(v0.side);
            const auto is_inside = [n](int at) { return at >= 0 && at < n; };
            for (int row = 0; row < n * n * n; row++) {
                double sum = 0.0;
                for (int z = row / n / n - 1, last_z = z + 2; z <= last_z; z++) {
                    for (int y = row / n % n - 1, last_y = y + 2; y <= last_y; y++) {
                        for (int x = row % n - 1, last_x = x + 2; x <= last_x; x++) {
                            const int other = (z * n + y) * n + x;
                            if (is_inside(x) && is_inside(y) && is_inside(z)) {
                                sum += other == row ? 27.0 * p[other] : -p[other];
                            }
                        }
                    }
                }
                ap[row] = sum;
            }
        };
        return sparse_verify(v0, v1, seed, multiply, why);
    }
};
#endif
