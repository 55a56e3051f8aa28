/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Columns are sorted once, LANES of them at a time, and the windows that share them take what they
 * need of their rows. When the rows of a window of sorted columns are sorted as well, its columns
 * stay sorted, so that every place has a number of pixels that are not greater and of some that are
 * not less. The median is in none of the places where one of both is more than half of the window.
 *
 * 3 x 3: the greatest of row 0, the middle of row 1 and the least of row 2 are left.
 * 5 x 5: thirteen are, on three lines that cross the window: four of M - 1, five of M, four of
 * M + 1, where M is the line from the greatest of row 0 to the least of row 4. Each pixel of M - 1
 * is not greater than two of M, each of M + 1 not less than two, whatever the order on the line, so
 * of thirteen the seventh is the median of the greatest of M - 1, the median of M and the least of
 * M + 1. */
#include "kernels/focal/focal_median.h"
#include "kernels/pixel.h"

#define LANES 128
#define MORE  16 /* columns beside those of the left pixels, and whole vectors */

#define INLINE __attribute__((always_inline)) static inline

/* Whatever happens to NaN: `invalid` tells. */
INLINE float least(float a, float b)
{
    return a < b ? a : b;
}

INLINE float greatest(float a, float b)
{
    return b < a ? a : b;
}

INLINE float middle(float a, float b, float c)
{
    return greatest(least(a, b), least(greatest(a, b), c));
}

INLINE void order(float *a, float *b)
{
    const float low = least(*a, *b), high = greatest(*a, *b);

    *a = low;
    *b = high;
}

/* Nine comparisons; the compiler drops what leads to none of those that are read afterwards. */
INLINE void sort_five(float *a, float *b, float *c, float *d, float *e)
{
    order(a, b);
    order(d, e);
    order(c, e);
    order(c, d);
    order(b, e);
    order(a, d);
    order(a, c);
    order(b, d);
    order(b, c);
}

/* NaN of NaN, else 0. */
INLINE float none_of(float a)
{
    return a - a;
}

/* row[k]: the pixels of sorted columns that are number k from the least. */
struct columns {
    float row[5][LANES + MORE];
    float invalid[LANES + MORE]; /* NaN where a pixel of the column is, else 0 */
};

/* -- 3 x 3 ------------------------------------------------------------------------------------- */

PB_CLONES static void sort_columns_3(const float *restrict window, int32_t stride, int32_t n,
                                     struct columns *restrict to)
{
    for (int32_t i = 0; i < n; i++) {
        float a = window[i], b = window[i + stride], c = window[i + 2 * stride];

        to->invalid[i] = none_of(a) + none_of(b) + none_of(c);
        order(&a, &b);
        order(&b, &c);
        order(&a, &b);
        to->row[0][i] = a;
        to->row[1][i] = b;
        to->row[2][i] = c;
    }
}

PB_CLONES static void medians_3(const struct columns *restrict of, int32_t n, float *restrict out)
{
    const float *const a = of->row[0], *const b = of->row[1], *const c = of->row[2];

    for (int32_t i = 0; i < n; i++) {
        const float low = greatest(a[i], greatest(a[i + 1], a[i + 2]));
        const float mid = middle(b[i], b[i + 1], b[i + 2]);
        const float high = least(c[i], least(c[i + 1], c[i + 2]));
        const float invalid = of->invalid[i] + of->invalid[i + 1] + of->invalid[i + 2];

        out[i] = pb_pixel_result(middle(low, mid, high) + invalid); /* -0 becomes +0 */
    }
}

/* -- 5 x 5 ------------------------------------------------------------------------------------- */

PB_CLONES static void sort_columns_5(const float *restrict window, int32_t stride, int32_t n,
                                     struct columns *restrict to)
{
    for (int32_t i = 0; i < n; i++) {
        const float *const at = window + i;
        float a = at[0], b = at[stride], c = at[2 * stride], d = at[3 * stride];
        float e = at[4 * stride];

        to->invalid[i] = none_of(a) + none_of(b) + none_of(c) + none_of(d) + none_of(e);
        sort_five(&a, &b, &c, &d, &e);
        to->row[0][i] = a;
        to->row[1][i] = b;
        to->row[2][i] = c;
        to->row[3][i] = d;
        to->row[4][i] = e;
    }
}

/* In ascending order: five pixels of a row from i on. */
#define FIVE_OF(name, from)                                                                        \
    float name##0 = (from)[i], name##1 = (from)[i + 1], name##2 = (from)[i + 2],                   \
          name##3 = (from)[i + 3], name##4 = (from)[i + 4];                                        \
    sort_five(&name##0, &name##1, &name##2, &name##3, &name##4)

PB_CLONES static void medians_5(const struct columns *restrict of, int32_t n, float *restrict out)
{
    const float *const none = of->invalid;

    for (int32_t i = 0; i < n; i++) {
        FIVE_OF(a, of->row[0]);
        FIVE_OF(b, of->row[1]);
        FIVE_OF(c, of->row[2]);
        FIVE_OF(d, of->row[3]);
        FIVE_OF(e, of->row[4]);
        const float low = greatest(greatest(a3, b2), greatest(c1, d0));
        const float high = least(least(b4, c3), least(d2, e1));
        float v = a4, w = b3, x = c2, y = d1, z = e0;
        sort_five(&v, &w, &x, &y, &z);
        const float invalid = none[i] + none[i + 1] + none[i + 2] + none[i + 3] + none[i + 4];

        out[i] = pb_pixel_result(middle(low, x, high) + invalid); /* -0 becomes +0 */
    }
}

/* ---------------------------------------------------------------------------------------------- */

bool pb_focal_is_small_median(const struct pb_focal *focal)
{
    const int32_t side = 2 * focal->radius + 1;

    return focal->radius <= 2 && focal->choice == side * side / 2;
}

void pb_focal_small_median_row(int32_t side, const float *window, int32_t stride, int32_t w,
                               float *out)
{
    struct columns columns;

    for (int32_t x = 0; x < w; x += LANES) {
        const int32_t n = w - x < LANES ? w - x : LANES;

        if (side == 3) {
            sort_columns_3(window + x, stride, n + 2, &columns);
            medians_3(&columns, n, out + x);
        } else {
            sort_columns_5(window + x, stride, n + 4, &columns);
            medians_5(&columns, n, out + x);
        }
    }
}
