// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_SPARSE_CUH
#define WIC_APP_SPARSE_CUH
// Conjugate gradients over the rows of two parties (cg, fe): the host has the last planes of a cube
// of points, the device the others. Step i of the solver, of iteration k = i / 3:
//
//   i % 3      host sends      device computes                         device sends
//   residual   alpha           r -= alpha Ap; r.r                      its part of r.r
//   direction  beta            x += alpha p (C1); p = r + beta p       p next to the host's rows
//   product    p of its rows   Ap of inner rows (C1), of the others    its part of p.Ap
//
// Sums are made in an order that does not depend on the number of threads: 16384 lanes, of which
// lane l has elements l, l + 16384 and so on, then 128 sums of 128 lanes, then one.
#include "wic/apps/app.cuh"

#include <vector>

constexpr uint32_t sparse_slots = 27, sparse_lanes = 16384, sparse_sums = 128;
enum sparse_kind { SPARSE_RESIDUAL, SPARSE_DIRECTION, SPARSE_PRODUCT };

struct sparse_view {
    uint32_t side, iterations;
    uint32_t rows, split; // rows of the matrix; the first row of party 0
    uint32_t first, own;  // rows of this party
    uint32_t *column;     // [slot][own row]; a slot that is not used has its row and value 0
    double *value;
    double *x, *r, *ap;     // own rows
    double *p;              // all rows
    double *lanes;          // and then the sums
    double *alpha, *beta;   // party 1: by iteration, as received
    double *rr[2], *pap[2]; // parts of both parties by iteration
};

// The column of a slot in a row of the cube of points; `rows` outside the cube.
APP_DO uint32_t sparse_column(const sparse_view &v, uint32_t row, uint32_t slot)
{
    const uint32_t n = v.side;
    const uint32_t x = row % n + slot % 3, y = row / n % n + slot / 3 % 3,
                   z = row / n / n + slot / 9;
    const bool is_inside = x > 0 && x <= n && y > 0 && y <= n && z > 0 && z <= n;
    return is_inside ? ((z - 1) * n + y - 1) * n + x - 1 : v.rows;
}

APP_DO uint32_t sparse_reach(const sparse_view &v)
{
    return v.side * v.side + v.side + 1; // farthest column of a row
}
// Rows of `party` that the other one reads; those of party 0 are its first, of party 1 its last.
APP_DO uint32_t sparse_border(const sparse_view &v, int party)
{
    const uint32_t rows = party == 0 ? v.rows - v.split : v.split, reach = sparse_reach(v);
    return rows < reach ? rows : reach;
}

inline void sparse_lay_out(uint32_t side, uint32_t iterations, int party, app_arena &arena,
                           sparse_view *v)
{
    const uint32_t plane = side * side, planes = side < 64 ? 1 : side / 64;
    v->side = side;
    v->iterations = iterations;
    v->rows = plane * side;
    v->split = v->rows - planes * plane;
    v->first = party == 0 ? v->split : 0;
    v->own = party == 0 ? v->rows - v->split : v->split;
    v->column = arena.take<uint32_t>(size_t(sparse_slots) * v->own);
    v->value = arena.take<double>(size_t(sparse_slots) * v->own);
    v->p = arena.take<double>(v->rows);
    v->lanes = arena.take<double>(sparse_lanes + sparse_sums);
    for (double **of : {&v->x, &v->r, &v->ap}) {
        *of = arena.take<double>(v->own);
    }
    for (double **of : {&v->alpha, &v->beta, &v->rr[0], &v->rr[1], &v->pap[0], &v->pap[1]}) {
        *of = arena.take<double>(iterations + 1);
    }
}

// The right side of a row.
inline double sparse_right(uint64_t seed, uint32_t row)
{
    return static_cast<double>(app_random(seed, row) >> 11) * 0x1p-52 - 1.0;
}

// All but the values.
inline void sparse_begin(const sparse_view &v, uint64_t seed)
{
    for (uint32_t i = 0; i < v.own; i++) {
        for (uint32_t slot = 0; slot < sparse_slots; slot++) {
            const uint32_t column = sparse_column(v, v.first + i, slot);
            v.column[size_t(slot) * v.own + i] = column == v.rows ? v.first + i : column;
        }
        v.x[i] = v.ap[i] = v.p[v.first + i] = 0.0;
        v.r[i] = sparse_right(seed, v.first + i);
    }
}

APP_DO bool sparse_next(const sparse_view &v, uint32_t i, app_step *step)
{
    step->down = step->up = 1;
    step->down_units = i % 3 == SPARSE_PRODUCT ? sparse_border(v, 0) : 1;
    step->up_units = i % 3 == SPARSE_DIRECTION ? sparse_border(v, 1) : 1;
    return i < 3 * v.iterations + 2; // the last direction has the last step of x
}
APP_DO uint32_t sparse_settles(uint32_t i)
{
    return i % 3 == SPARSE_RESIDUAL ? 3 : i % 3 == SPARSE_DIRECTION ? 1 : 4;
}

template <int party> APP_DO double sparse_alpha(const sparse_view &v, uint32_t k)
{
    if constexpr (party == 1) {
        return v.alpha[k];
    }
    return k == 0 ? 0.0 : (v.rr[0][k - 1] + v.rr[1][k - 1]) / (v.pap[0][k - 1] + v.pap[1][k - 1]);
}
// The first one multiplies zeros. It is no alpha, so that a stale chunk differs.
template <int party> APP_DO double sparse_beta(const sparse_view &v, uint32_t k)
{
    if constexpr (party == 1) {
        return v.beta[k];
    }
    return k == 0 ? 1.0 : (v.rr[0][k] + v.rr[1][k]) / (v.rr[0][k - 1] + v.rr[1][k - 1]);
}

// The part of p, or the number, that `party` sends in step i.
template <int party> APP_DO double *sparse_sent(const sparse_view &v, uint32_t i)
{
    const uint32_t k = i / 3, kind = i % 3;
    if constexpr (party == 0) {
        return kind == SPARSE_PRODUCT     ? v.p + v.split
               : kind == SPARSE_DIRECTION ? v.beta + k
                                          : v.alpha + k;
    }
    return kind == SPARSE_PRODUCT     ? v.pap[1] + k
           : kind == SPARSE_DIRECTION ? v.p + v.split - sparse_border(v, 1)
                                      : v.rr[1] + k;
}

template <int party>
APP_DO void sparse_make(const sparse_view &v, uint32_t i, const app_piece &piece, void *to,
                        app_part part)
{
    double *out = static_cast<double *>(to);
    if (party == 0 && i % 3 != SPARSE_PRODUCT) {
        if (part.thread == 0 && piece.units > 0) {
            out[0] =
                i % 3 == SPARSE_RESIDUAL ? sparse_alpha<0>(v, i / 3) : sparse_beta<0>(v, i / 3);
        }
        return;
    }
    for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
        out[u] = sparse_sent<party>(v, i)[piece.first + u];
    }
}
template <int party>
APP_DO void sparse_dependent(const sparse_view &v, uint32_t i, const app_piece &piece,
                             const void *from, app_part part)
{
    for (uint32_t u = part.thread; u < piece.units; u += part.threads) {
        sparse_sent<1 - party>(v, i)[piece.first + u] = static_cast<const double *>(from)[u];
    }
}

APP_DO void sparse_multiply(const sparse_view &v, uint32_t first, uint32_t end, app_part part)
{
    for (uint32_t i = first + part.thread; i < end; i += part.threads) {
        double sum = 0.0;
        for (uint32_t slot = 0; slot < sparse_slots; slot++) {
            const size_t at = size_t(slot) * v.own + i;
            sum += v.value[at] * v.p[v.column[at]];
        }
        v.ap[i] = sum;
    }
}
// The rows before need nothing of the other party. All of party 0 wait, because it has few.
template <int party> APP_DO uint32_t sparse_inner(const sparse_view &v)
{
    return party == 1 && v.own > sparse_reach(v) ? v.own - sparse_reach(v) : 0;
}

template <int party> APP_DO void sparse_independent(const sparse_view &v, uint32_t i, app_part part)
{
    const uint32_t k = i / 3;
    if (i % 3 == SPARSE_PRODUCT) {
        sparse_multiply(v, 0, sparse_inner<party>(v), part);
    } else if (i % 3 == SPARSE_DIRECTION && k > 0) {
        const double alpha = sparse_alpha<party>(v, k);
        for (uint32_t j = part.thread; j < v.own; j += part.threads) {
            v.x[j] += alpha * v.p[v.first + j];
        }
    }
}

// Lanes to sums (phase 0), sums to `to`.
APP_DO void sparse_reduce(const sparse_view &v, uint32_t phase, double *to, app_part part)
{
    double *sums = v.lanes + sparse_lanes;
    for (uint32_t s = part.thread; phase == 0 && s < sparse_sums; s += part.threads) {
        double sum = 0.0;
        for (uint32_t l = s; l < sparse_lanes; l += sparse_sums) {
            sum += v.lanes[l];
        }
        sums[s] = sum;
    }
    if (phase == 1 && part.thread == 0) {
        double sum = 0.0;
        for (uint32_t s = 0; s < sparse_sums; s++) {
            sum += sums[s];
        }
        *to = sum;
    }
}

template <int party>
APP_DO void sparse_settle(const sparse_view &v, uint32_t i, uint32_t phase, app_part part)
{
    const uint32_t k = i / 3, kind = i % 3;
    if (kind == SPARSE_DIRECTION) {
        const double beta = sparse_beta<party>(v, k);
        for (uint32_t j = part.thread; j < v.own; j += part.threads) {
            v.p[v.first + j] = v.r[j] + beta * v.p[v.first + j];
        }
    } else if (kind == SPARSE_PRODUCT && phase == 0) {
        sparse_multiply(v, sparse_inner<party>(v), v.own, part);
    } else if (phase == (kind == SPARSE_PRODUCT)) {
        const double alpha = kind == SPARSE_RESIDUAL ? sparse_alpha<party>(v, k) : 0.0;
        for (uint32_t l = part.thread; l < sparse_lanes; l += part.threads) {
            double sum = 0.0;
            for (uint32_t j = l; j < v.own; j += sparse_lanes) {
                if (kind == SPARSE_PRODUCT) {
                    sum += v.p[v.first + j] * v.ap[j];
                } else {
                    v.r[j] -= alpha * v.ap[j];
                    sum += v.r[j] * v.r[j];
                }
            }
            v.lanes[l] = sum;
        }
    } else if (kind == SPARSE_PRODUCT) {
        sparse_reduce(v, phase - 2, v.pap[party] + k, part);
    } else {
        sparse_reduce(v, phase - 1, v.rr[party] + k, part);
    }
}

// --- verification -----------------------------------------------------------------------------

// Of elements first .. end - 1.
inline double sparse_dot(const std::vector<double> &a, const std::vector<double> &b, size_t first,
                         size_t end)
{
    std::vector<double> lanes(sparse_lanes, 0.0), sums(sparse_sums, 0.0);
    for (size_t i = first; i < end; i++) {
        lanes[(i - first) % sparse_lanes] += a[i] * b[i];
    }
    for (size_t l = 0; l < sparse_lanes; l++) {
        sums[l % sparse_sums] += lanes[l];
    }
    double sum = 0.0;
    for (const double s : sums) {
        sum += s;
    }
    return sum;
}

// True if `has` has the bits of `wanted`.
inline bool sparse_is(double has, double wanted)
{
    return memcmp(&has, &wanted, sizeof has) == 0;
}

// The same solver in one piece over all rows. multiply(p, ap) has the matrix in another form.
template <class Multiply>
bool sparse_verify(const sparse_view &v0, const sparse_view &v1, uint64_t seed, Multiply multiply,
                   std::string *why)
{
    const size_t n = v0.rows, split = v0.split;
    std::vector<double> x(n, 0.0), r(n), p(n, 0.0), ap(n, 0.0);
    double before = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        r[i] = sparse_right(seed, static_cast<uint32_t>(i));
    }
    for (uint32_t k = 0; k <= v0.iterations; k++) {
        const double product =
            k == 0 ? 1.0 : sparse_dot(p, ap, split, n) + sparse_dot(p, ap, 0, split);
        const double alpha = k == 0 ? 0.0 : before / product;
        for (size_t i = 0; i < n; i++) {
            r[i] -= alpha * ap[i];
            x[i] += alpha * p[i];
        }
        const double of1 = sparse_dot(r, r, 0, split);
        squares = sparse_dot(r, r, split, n) + of1;
        const double beta = k == 0 ? 1.0 : squares / before;
        if (!sparse_is(v1.alpha[k], alpha) || !sparse_is(v1.beta[k], beta) ||
            !sparse_is(v0.rr[1][k], of1)) {
            return app_wrong(why, "iteration", k);
        }
        for (size_t i = 0; i < n; i++) {
            p[i] = r[i] + beta * p[i];
        }
        before = squares;
        if (k < v0.iterations) {
            multiply(p, ap);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const sparse_view &v = i < split ? v1 : v0;
        const size_t own = i - v.first;
        const bool is_seen = i >= split - sparse_border(v0, 1); // a column of party 0's rows
        if (!sparse_is(v.x[own], x[i]) || !sparse_is(v.r[own], r[i]) || !sparse_is(v.p[i], p[i]) ||
            (is_seen && !sparse_is(v0.p[i], p[i]))) {
            return app_wrong(why, "row", i);
        }
    }
    // Without any part of the solver: r is the residual of x.
    multiply(x, ap);
    for (size_t i = 0; i < n; i++) {
        const double residual = sparse_right(seed, static_cast<uint32_t>(i)) - ap[i];
        if (!(std::abs(residual - r[i]) < 1e-9)) {
            return app_wrong(why, "residual of row", i);
        }
    }
    return true;
}
#endif
