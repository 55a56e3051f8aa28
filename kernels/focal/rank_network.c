/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The comparisons are first written down with a name for every value, then from the last one back
 * it is found which values are wanted, and of how many columns, and then the values get rows. */
#include "kernels/focal/rank_network.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define SIDE_MAX   15
#define LIST_MAX   (SIDE_MAX * SIDE_MAX + 1)
#define VALUES_MAX (SIDE_MAX + 2 * PB_RANK_STEPS_MAX)

/* A value of the columns `shift` to the right. */
struct item {
    uint16_t value;
    uint8_t shift;
};

/* Comparison k makes the values side + 2 k, the lesser, and the one behind it. */
struct comparison {
    struct item a, b;
};

struct maker {
    int32_t side;
    uint32_t n;
    struct comparison comparison[PB_RANK_STEPS_MAX];
    uint32_t last_use[VALUES_MAX]; /* the comparison that reads it last */
    uint8_t more[VALUES_MAX];
    bool wanted[VALUES_MAX];
    uint16_t row[VALUES_MAX];
};

/* -- sorting and merging ----------------------------------------------------------------------- */

static void compare(struct maker *m, struct item x, struct item y, struct item *out_low,
                    struct item *out_high)
{
    const uint8_t shift = x.shift < y.shift ? x.shift : y.shift;
    const uint16_t low = (uint16_t)((uint32_t)m->side + 2 * m->n);

    assert(m->n < PB_RANK_STEPS_MAX);
    x.shift = (uint8_t)(x.shift - shift);
    y.shift = (uint8_t)(y.shift - shift);
    m->comparison[m->n++] = (struct comparison){x, y};
    *out_low = (struct item){low, shift};
    *out_high = (struct item){(uint16_t)(low + 1), shift};
}

/* Every step-th item of a list in ascending order. */
struct part {
    const struct item *at;
    int32_t step, n;
};

static struct part every_second(struct part list, int32_t from)
{
    return (struct part){list.at + from * list.step, 2 * list.step, (list.n + 1 - from) / 2};
}

static void merge(struct maker *m, struct part x, struct part y, struct item *out)
{
    struct item odd[LIST_MAX] = {{0}}, even[LIST_MAX] = {{0}}; /* counted from 1 */

    if (x.n == 0 || y.n == 0) {
        const struct part all = x.n ? x : y;

        for (int32_t i = 0; i < all.n; i++)
            out[i] = all.at[i * all.step];
        return;
    }
    if (x.n == 1 && y.n == 1) {
        compare(m, x.at[0], y.at[0], &out[0], &out[1]);
        return;
    }
    const struct part x_odd = every_second(x, 0), y_odd = every_second(y, 0);
    const int32_t n_odd = x_odd.n + y_odd.n, n_even = x.n + y.n - n_odd;

    merge(m, x_odd, y_odd, odd);
    merge(m, every_second(x, 1), every_second(y, 1), even);
    out[0] = odd[0];
    for (int32_t i = 0; i < n_even && i + 1 < n_odd; i++)
        compare(m, even[i], odd[i + 1], &out[2 * i + 1], &out[2 * i + 2]);
    if (n_even == n_odd)
        out[x.n + y.n - 1] = even[n_even - 1];
    else if (n_odd == n_even + 2)
        out[x.n + y.n - 1] = odd[n_odd - 1];
}

static void sort(struct maker *m, const struct item *list, int32_t n, struct item *out)
{
    struct item left[SIDE_MAX] = {{0}}, right[SIDE_MAX] = {{0}};

    if (n == 1) {
        out[0] = list[0];
        return;
    }
    sort(m, list, (n + 1) / 2, left);
    sort(m, list + (n + 1) / 2, n / 2, right);
    merge(m, (struct part){left, 1, (n + 1) / 2}, (struct part){right, 1, n / 2}, out);
}

static void shift_list(const struct item *list, int32_t n, int32_t shift, struct item *out)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (struct item){list[i].value, (uint8_t)(list[i].shift + shift)};
}

/* All comparisons; the values of a window in ascending order. */
static void write_down(struct maker *m, struct item *out)
{
    struct item wide[LIST_MAX] = {{0}}, shifted[LIST_MAX] = {{0}}, found[LIST_MAX] = {{0}};
    int32_t width = 1, held = 0; /* columns of `wide` and of out */

    for (int32_t k = 0; k < m->side; k++)
        found[k] = (struct item){(uint16_t)k, 0};
    sort(m, found, m->side, wide);
    for (;;) {
        if (m->side & width) {
            shift_list(wide, width * m->side, held, shifted);
            merge(m, (struct part){out, 1, held * m->side},
                  (struct part){shifted, 1, width * m->side}, found);
            held += width;
            memcpy(out, found, (size_t)(held * m->side) * sizeof *out);
        }
        if (2 * width > m->side)
            return;
        shift_list(wide, width * m->side, width, shifted);
        merge(m, (struct part){wide, 1, width * m->side},
              (struct part){shifted, 1, width * m->side}, found);
        width *= 2;
        memcpy(wide, found, (size_t)(width * m->side) * sizeof *wide);
    }
}

/* -- what is wanted ---------------------------------------------------------------------------- */

static void want(struct maker *m, struct item item, uint8_t more, uint32_t by)
{
    const uint8_t reach = (uint8_t)(item.shift + more);

    if (!m->wanted[item.value])
        m->last_use[item.value] = by;
    m->wanted[item.value] = true;
    m->more[item.value] = reach > m->more[item.value] ? reach : m->more[item.value];
}

static uint16_t low_of(const struct maker *m, uint32_t k)
{
    return (uint16_t)((uint32_t)m->side + 2 * k);
}

static uint8_t more_of(const struct maker *m, uint32_t k)
{
    const uint16_t low = low_of(m, k);

    return m->more[low] > m->more[low + 1] ? m->more[low] : m->more[low + 1];
}

static void find_wanted(struct maker *m, struct item result)
{
    want(m, result, 0, m->n);
    for (uint32_t k = m->n; k-- > 0;)
        if (m->wanted[low_of(m, k)] || m->wanted[low_of(m, k) + 1]) {
            want(m, m->comparison[k].a, more_of(m, k), k);
            want(m, m->comparison[k].b, more_of(m, k), k);
        }
}

/* -- rows -------------------------------------------------------------------------------------- */

struct rows {
    uint16_t free[PB_RANK_ROWS_MAX];
    uint32_t n_free, n;
};

static uint16_t take_row(struct rows *rows)
{
    if (rows->n_free > 0)
        return rows->free[--rows->n_free];
    assert(rows->n < PB_RANK_ROWS_MAX);
    return (uint16_t)rows->n++;
}

static void end_use(const struct maker *m, struct rows *rows, uint16_t value, uint32_t k)
{
    if (m->last_use[value] == k)
        rows->free[rows->n_free++] = m->row[value];
}

static void give_rows(struct maker *m, struct pb_rank_network *out)
{
    struct rows rows = {.n = (uint32_t)m->side};

    for (int32_t i = 0; i < m->side; i++)
        m->row[i] = (uint16_t)i;
    for (uint32_t k = 0; k < m->n; k++) {
        const struct comparison *const c = &m->comparison[k];
        const uint16_t low = low_of(m, k);
        struct pb_rank_step step = {.low = PB_RANK_NONE, .high = PB_RANK_NONE};

        if (!m->wanted[low] && !m->wanted[low + 1])
            continue;
        step.a = m->row[c->a.value];
        step.b = m->row[c->b.value];
        step.shift_a = c->a.shift;
        step.shift_b = c->b.shift;
        step.more = more_of(m, k);
        end_use(m, &rows, c->a.value, k);
        if (c->b.value != c->a.value)
            end_use(m, &rows, c->b.value, k);
        if (m->wanted[low])
            step.low = m->row[low] = take_row(&rows);
        if (m->wanted[low + 1])
            step.high = m->row[low + 1] = take_row(&rows);
        out->step[out->n_steps++] = step;
    }
    out->n_rows = rows.n;
}

void pb_rank_network_make(int32_t side, int32_t rank, struct pb_rank_network *out)
{
    struct maker m;
    struct item sorted[LIST_MAX] = {{0}};

    assert(side >= 3 && side <= SIDE_MAX && side % 2 == 1 && rank >= 0 && rank < side * side);
    memset(&m, 0, sizeof m);
    m.side = side;
    write_down(&m, sorted);
    find_wanted(&m, sorted[rank]);
    out->n_steps = 0;
    give_rows(&m, out);
    out->result = m.row[sorted[rank].value];
    out->result_shift = sorted[rank].shift;
}
