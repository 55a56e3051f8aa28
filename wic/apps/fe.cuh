// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_FE_CUH
#define WIC_APP_FE_CUH
// C_FE, finite elements as in miniFE: the host makes the matrices of bricks with 8 nodes, in random
// order and in batches; the device adds each to the matrix of all nodes while the next batch is
// made; then both solve by conjugate gradients. Entries are fixed-point numbers, whose sums do not
// depend on their order. Size: n = elements of the cube's side, m = iterations.
#include "wic/apps/sparse.cuh"
#include "wic/pattern/step.h"

#include <cmath>

struct fe_view : sparse_view {
    uint32_t elements;                       // along a side
    unsigned long long *fixed;               // the matrix, as `value`
    uint32_t *order;                         // party 0: elements in the order of batches
    double *sides, *conductivity, *received; // party 0: along x, y, z; by element; first answer
};

struct fe : app_base<fe_view> {
    using view = fe_view;
    static constexpr uint32_t corners = 8, batch_most = 1024, doubles = 20;
    static constexpr double fixed_one = 1 << 20;
    // The element's number and the lower triangle of its matrix. In the solver: `doubles` numbers.
    struct alignas(16) unit {
        uint32_t element;
        int32_t entry[corners * (corners + 1) / 2];
    };
    static_assert(sizeof(unit) == doubles * sizeof(double), "");
    static constexpr app_facts facts = {"fe",        "C_FE",       "alternating",  "random",
                                        APP_ANSWERS, sizeof(unit), sizeof(double), false};
    static constexpr app_size sizes[app_sizes] = {
        {"tiny", 5, 4}, {"small", 24, 100}, {"middle", 48, 100}, {"large", 96, 100}};

    static view lay_out(const app_size &size, int party, app_arena &arena)
    {
        view v = {};
        sparse_lay_out(size.n + 1, size.m, party, arena, &v);
        v.elements = size.n;
        v.fixed = arena.take<unsigned long long>(size_t(sparse_slots) * v.own);
        if (party == 0) {
            v.order = arena.take<uint32_t>(all(v));
            v.conductivity = arena.take<double>(all(v));
            v.sides = arena.take<double>(3 * size.n);
            v.received = arena.take<double>(1);
        }
        return v;
    }
    static APP_DO uint32_t all(const view &v)
    {
        return v.elements * v.elements * v.elements;
    }
    static APP_DO uint32_t batch(const view &v) // divides the elements of each size
    {
        return v.elements * v.elements < batch_most ? v.elements * v.elements : batch_most;
    }
    static app_step most(const app_size &size)
    {
        const view v = app_view<fe>(size, 0, nullptr);
        const uint32_t border = (sparse_border(v, 0) + doubles - 1) / doubles;
        return {
            0, 0, all(v) / batch(v), 1, border > batch(v) ? border : batch(v), sparse_border(v, 1)};
    }
    static APP_DO bool next(const view &v, app_step *step)
    {
        if (step->index > 0) {
            const bool is_step = sparse_next(v, step->index - 1, step);
            step->down_units = (step->down_units + doubles - 1) / doubles;
            return is_step;
        }
        step->down = all(v) / batch(v);
        step->down_units = batch(v);
        step->up = step->up_units = 1; // the last entry of the device's diagonal
        return true;
    }
    static void begin(const view &v0, const view &v1, uint64_t seed)
    {
        for (const view *v : {&v0, &v1}) {
            sparse_begin(*v, seed);
            memset(v->fixed, 0, size_t(sparse_slots) * v->own * sizeof *v->fixed);
        }
        for (uint32_t i = 0; i < all(v0); i++) {
            v0.order[i] = static_cast<uint32_t>(wic_step_shuffle(seed, all(v0), i));
            v0.conductivity[i] = 1.5 + 0.5 * sparse_right(seed + 1, i);
        }
        for (uint32_t i = 0; i < 3 * v0.elements; i++) {
            v0.sides[i] = 1.0 + 0.4 * sparse_right(seed + 2, i);
        }
    }

    // The matrix of an element: conductivity times the product of gradients, plus that of values.
    static APP_DO unit matrix_of(const view &v, uint32_t element)
    {
        const uint32_t n = v.elements;
        const double h[3] = {v.sides[element % n], v.sides[n + element / n % n],
                             v.sides[2 * n + element / n / n]};
        unit made = {element, {}};
        for (uint32_t a = 0; a < corners; a++) {
            for (uint32_t b = 0; b <= a; b++) {
                double mass[3], stiff[3]; // along one axis
                for (uint32_t k = 0; k < 3; k++) {
                    const bool is_same = ((a ^ b) >> k & 1) == 0;
                    mass[k] = h[k] / (is_same ? 3.0 : 6.0);
                    stiff[k] = (is_same ? 1.0 : -1.0) / h[k];
                }
                const double sum = stiff[0] * mass[1] * mass[2] + mass[0] * stiff[1] * mass[2] +
                                   mass[0] * mass[1] * stiff[2];
                const double value = v.conductivity[element] * sum + mass[0] * mass[1] * mass[2];
                made.entry[a * (a + 1) / 2 + b] =
                    static_cast<int32_t>(floor(value * fixed_one + 0.5));
            }
        }
        return made;
    }
    static APP_DO uint32_t row_of(const view &v, uint32_t element, uint32_t corner)
    {
        const uint32_t n = v.elements, x = element % n + (corner & 1);
        const uint32_t y = element / n % n + (corner >> 1 & 1), z = element / n / n + (corner >> 2);
        return (z * v.side + y) * v.side + x;
    }
    static APP_DO uint32_t slot_of(uint32_t a, uint32_t b) // column b in the row of a
    {
        return 13 + (b & 1) - (a & 1) + 3 * ((b >> 1 & 1) - (a >> 1 & 1)) +
               9 * ((b >> 2) - (a >> 2));
    }
    // Adds the row of corner a.
    static APP_DO void add(const view &v, const unit &given, uint32_t a)
    {
        const uint32_t own = given.element < all(v) ? row_of(v, given.element, a) - v.first : v.own;
        for (uint32_t b = 0; b < corners && own < v.own; b++) {
            const uint32_t high = a > b ? a : b, low = a > b ? b : a;
            const int64_t entry = given.entry[high * (high + 1) / 2 + low];
            app_add(&v.fixed[size_t(slot_of(a, b)) * v.own + own],
                    static_cast<unsigned long long>(entry));
        }
    }

    // A piece in doubles, without the rest of the last unit.
    static APP_DO app_piece in_doubles(const view &v, const app_step &step, const app_piece &piece)
    {
        const uint32_t count = (step.index - 1) % 3 == SPARSE_PRODUCT ? sparse_border(v, 0) : 1;
        const uint32_t first = piece.first * doubles, units = piece.units * doubles;
        return {piece.chunk, first,
                first >= count          ? 0
                : first + units > count ? count - first
                                        : units};
    }
    template <int party>
    static APP_DO void make(const view &v, const app_step &step, const app_piece &piece, void *to,
                            app_part part)
    {
        if (step.index > 0) {
            sparse_make<party>(v, step.index - 1, party == 0 ? in_doubles(v, step, piece) : piece,
                               to, part);
        } else if constexpr (party == 0) {
            const uint32_t first = piece.chunk * step.down_units + piece.first;
            for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
                static_cast<unit *>(to)[u] = matrix_of(v, v.order[first + u]);
            }
        } else if (part.thread == 0 && piece.units > 0) {
            *static_cast<double *>(to) = v.value[size_t(13) * v.own + v.own - 1];
        }
    }
    template <int party>
    static APP_DO void dependent(const view &v, const app_step &step, const app_piece &piece,
                                 const void *from, app_part part)
    {
        if (step.index > 0) {
            sparse_dependent<party>(v, step.index - 1,
                                    party == 1 ? in_doubles(v, step, piece) : piece, from, part);
        } else if constexpr (party == 1) {
            for (uint32_t i = part.thread; i < piece.units * corners; i += part.threads) {
                add(v, static_cast<const unit *>(from)[i / corners], i % corners);
            }
        } else if (part.thread == 0 && piece.units > 0) {
            *v.received = *static_cast<const double *>(from);
        }
    }
    template <int party>
    static APP_DO void independent(const view &v, const app_step &step, app_part part)
    {
        if (step.index > 0) {
            sparse_independent<party>(v, step.index - 1, part);
        }
    }
    template <int party>
    static APP_DO void settle(const view &v, const app_step &step, uint32_t phase, app_part part)
    {
        if (step.index > 0) {
            sparse_settle<party>(v, step.index - 1, phase, part);
        } else if (phase == 1) {
            for (size_t at = part.thread; at < size_t(sparse_slots) * v.own; at += part.threads) {
                v.value[at] = static_cast<double>(static_cast<int64_t>(v.fixed[at])) / fixed_one;
            }
        } else if constexpr (party == 0) { // the host adds what its own rows need
            const uint32_t layer = v.elements * v.elements,
                           first = (v.split / v.side / v.side - 1) * layer;
            for (uint32_t i = part.thread; i < (all(v) - first) * corners; i += part.threads) {
                add(v, matrix_of(v, first + i / corners), i % corners);
            }
        }
    }
    static APP_DO uint32_t settles(const app_step &step)
    {
        return step.index > 0 ? sparse_settles(step.index - 1) : 2;
    }

    // Adds the matrix of an element by Gaussian quadrature with 8 points.
    static void integrate(const view &v, uint32_t element, std::vector<double> *matrix)
    {
        const uint32_t n = v.elements;
        const double h[3] = {v.sides[element % n], v.sides[n + element / n % n],
                             v.sides[2 * n + element / n / n]};
        for (uint32_t point = 0; point < 8; point++) {
            double at[corners][4]; // value and gradient of each corner's function
            for (uint32_t a = 0; a < corners; a++) {
                double value[3], slope[3];
                for (uint32_t k = 0; k < 3; k++) {
                    const double x = 0.5 + ((point >> k & 1) != 0 ? 0.5 : -0.5) / std::sqrt(3.0);
                    value[k] = (a >> k & 1) != 0 ? x : 1.0 - x;
                    slope[k] = ((a >> k & 1) != 0 ? 1.0 : -1.0) / h[k];
                }
                at[a][0] = value[0] * value[1] * value[2];
                at[a][1] = slope[0] * value[1] * value[2];
                at[a][2] = value[0] * slope[1] * value[2];
                at[a][3] = value[0] * value[1] * slope[2];
            }
            const double weight = h[0] * h[1] * h[2] / 8.0;
            for (uint32_t a = 0; a < corners; a++) {
                for (uint32_t b = 0; b < corners; b++) {
                    const double gradients =
                        at[a][1] * at[b][1] + at[a][2] * at[b][2] + at[a][3] * at[b][3];
                    (*matrix)[size_t(row_of(v, element, a)) * sparse_slots + slot_of(a, b)] +=
                        weight * (v.conductivity[element] * gradients + at[a][0] * at[b][0]);
                }
            }
        }
    }
    static bool verify(const view &v0, const view &v1, uint64_t seed, std::string *why)
    {
        std::vector<double> wanted(size_t(v0.rows) * sparse_slots, 0.0);
        for (uint32_t element = 0; element < all(v0); element++) {
            integrate(v0, element, &wanted);
        }
        // Eight entries, each rounded once, are in an entry of the sum.
        const double most = 4.01 / fixed_one;
        std::vector<double> value(wanted.size());
        for (size_t i = 0; i < value.size(); i++) {
            const uint32_t row = static_cast<uint32_t>(i / sparse_slots);
            const view &v = row < v0.split ? v1 : v0;
            value[i] = v.value[i % sparse_slots * v.own + row - v.first];
            if (!(std::abs(value[i] - wanted[i]) < most)) {
                return app_wrong(why, "entry of the matrix", i);
            }
        }
        if (!sparse_is(*v0.received, value[size_t(v0.split - 1) * sparse_slots + 13])) {
            return app_wrong(why, "answer", 0);
        }
        const auto multiply = [&](const std::vector<double> &p, std::vector<double> &ap) {
            for (uint32_t row = 0; row < v0.rows; row++) {
                double sum = 0.0;
                for (uint32_t slot = 0; slot < sparse_slots; slot++) {
                    const uint32_t column = sparse_column(v0, row, slot);
                    sum += column == v0.rows ? 0.0
                                             : value[size_t(row) * sparse_slots + slot] * p[column];
                }
                ap[row] = sum;
            }
        };
        return sparse_verify(v0, v1, seed, multiply, why);
    }
};
#endif
