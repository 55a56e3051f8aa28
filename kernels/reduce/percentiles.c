/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/percentiles.h"
#include "kernels/pixel.h"

enum { HALF_BITS = 16, COUNTS = 1 << HALF_BITS };
enum { CHUNK = 256 };

/* The two ranks that a percentile lies between. */
struct wanted {
    double p;
    uint64_t rank;      /* of the lower one */
    double fraction;    /* of the way to the upper one */
    uint32_t key[2];    /* of both, as far as known: the upper halves after the first round */
    uint64_t below;     /* values below the upper half of key[0] */
    bool next_is_apart; /* the upper rank is the first value of another upper half */
};

/* In the second round: what is done with values of an upper half. */
enum { LEFT_OUT, COUNTED /* .. COUNTED + n - 1: in counts[i - COUNTED] */ };

struct pb_percentiles {
    struct pb_samples samples;
    uint32_t n;
    bool second; /* round */
    uint64_t values;
    struct wanted wanted[PB_PERCENTILES_MAX];
    uint32_t n_halves; /* second round: distinct upper halves that are counted */
    uint32_t half[PB_PERCENTILES_MAX];
    /* Second round: upper halves of which the least key is wanted, and that. */
    uint32_t n_apart, apart[PB_PERCENTILES_MAX], least[PB_PERCENTILES_MAX];
    uint8_t role[COUNTS];      /* second round, by upper half; LEFT_OUT, COUNTED + i, or
                                  COUNTED + PB_PERCENTILES_MAX + i for apart[i] */
    uint64_t counts[][COUNTS]; /* first round: counts[0]; second: by half */
};

size_t pb_percentiles_bytes(uint32_t n)
{
    return sizeof(struct pb_percentiles) + n * sizeof(uint64_t[COUNTS]);
}

/* Keys order as the values do: negative numbers are inverted, the others above them. */
static inline uint32_t key_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | UINT32_C(0x80000000));
}

static float value_of(uint32_t key)
{
    const uint32_t bits = key & UINT32_C(0x80000000) ? key ^ UINT32_C(0x80000000) : ~key;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* --- samples --------------------------------------------------------------------------------- */

static float value_of_sample(const struct pb_samples *samples, uint32_t i)
{
    const float v = (float)(samples->first + (int32_t)i);

    return samples->scaled ? v * samples->scale + samples->offset : v;
}

static inline uint32_t sample_of(const struct pb_samples *samples, float value)
{
    const double v = (double)value;
    const double sample =
        samples->scaled ? (v - (double)samples->offset) / (double)samples->scale : v;

    return (uint32_t)((int32_t)rint(sample) - samples->first) % COUNTS;
}

/* Whether sample_of() stays within what an int32 holds. */
static bool is_near(const struct pb_samples *samples, float value)
{
    const double steps = samples->scaled
                             ? ((double)value - (double)samples->offset) / (double)samples->scale
                             : (double)value;

    return fabs(steps) < 1e9;
}

bool pb_samples_are_distinct(const struct pb_samples *samples)
{
    if (samples->n == 0 || samples->n > COUNTS)
        return false;
    for (uint32_t i = 0; i < samples->n; i++) {
        const float v = value_of_sample(samples, i);

        if (!is_near(samples, v) || sample_of(samples, v) != i)
            return false;
    }
    return true;
}

int pb_percentiles_rounds(const struct pb_samples *samples)
{
    return samples->n > 0 ? 1 : 2;
}

/* --- counting -------------------------------------------------------------------------------- */

void pb_percentiles_begin(struct pb_percentiles *p, const double *percentile, uint32_t n,
                          const struct pb_samples *samples)
{
    memset(p, 0, pb_percentiles_bytes(n));
    p->n = n;
    p->samples = *samples;
    for (uint32_t i = 0; i < n; i++)
        p->wanted[i].p = percentile[i];
}

void pb_percentiles_again(struct pb_percentiles *p, const struct pb_percentiles *ended)
{
    memcpy(p, ended, sizeof *p);
    memset(p->counts, 0, p->n * sizeof p->counts[0]);
}

static void add_samples(struct pb_percentiles *p, const float *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fabsf(value[i]) <= FLT_MAX) {
            p->counts[0][sample_of(&p->samples, value[i])]++;
            p->values++;
        }
}

static void add_first(struct pb_percentiles *p, const float *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fabsf(value[i]) <= FLT_MAX) {
            p->counts[0][key_of(value[i]) >> HALF_BITS]++;
            p->values++;
        }
}

static void add_wanted(struct pb_percentiles *p, uint32_t role, uint32_t key)
{
    if (role < COUNTED + PB_PERCENTILES_MAX) {
        p->counts[role - COUNTED][key % COUNTS]++;
        return;
    }
    uint32_t *const least = &p->least[role - COUNTED - PB_PERCENTILES_MAX];
    *least = key < *least ? key : *least;
}

static void add_second(struct pb_percentiles *p, const float *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t key = key_of(value[i]);
        const uint32_t role = p->role[key >> HALF_BITS]; /* LEFT_OUT of what is not finite */

        if (role != LEFT_OUT)
            add_wanted(p, role, key);
    }
}

void pb_percentiles_add(struct pb_percentiles *p, const float *value, size_t count)
{
    if (p->second)
        add_second(p, value, count);
    else if (p->samples.n > 0)
        add_samples(p, value, count);
    else
        add_first(p, value, count);
}

void pb_percentiles_merge(struct pb_percentiles *into, const struct pb_percentiles *from)
{
    const uint32_t n = into->second ? into->n_halves : 1;

    if (!into->second)
        into->values += from->values;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < COUNTS; k++)
            into->counts[i][k] += from->counts[i][k];
    for (uint32_t i = 0; i < into->n_apart; i++)
        into->least[i] = from->least[i] < into->least[i] ? from->least[i] : into->least[i];
}

/* --- results --------------------------------------------------------------------------------- */

/* The count that holds a rank, and how many values are in those before it. */
static uint32_t find_rank(const uint64_t *counts, uint64_t rank, uint64_t *out_before)
{
    uint64_t before = 0;
    uint32_t i = 0;

    while (before + counts[i] <= rank)
        before += counts[i++];
    *out_before = before;
    return i;
}

static void find_ranks(struct pb_percentiles *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct wanted *const w = &p->wanted[i];
        const double rank = (double)(p->values - 1) * (w->p / 100.0);

        w->rank = (uint64_t)rank;
        w->fraction = rank - (double)w->rank;
        if (w->rank + 1 >= p->values) {
            w->rank = p->values - 1;
            w->fraction = 0.0;
        }
    }
}

static double between(const struct wanted *w, double low, double high)
{
    const double t = w->fraction;

    return t < 0.5 ? low + (high - low) * t : high - (high - low) * (1 - t);
}

/* The rank above, or the same one at the end. */
static uint64_t rank_above(const struct pb_percentiles *p, const struct wanted *w)
{
    return w->rank + 1 < p->values ? w->rank + 1 : w->rank;
}

static double sample_at(const struct pb_percentiles *p, const uint64_t *counts, uint64_t rank)
{
    const bool falls = p->samples.scaled && p->samples.scale < 0.0f;
    uint64_t before;

    return (double)value_of_sample(&p->samples,
                                   find_rank(counts, falls ? p->values - 1 - rank : rank, &before));
}

static void end_samples(const struct pb_percentiles *p, double *out)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct wanted *const w = &p->wanted[i];

        out[i] = between(w, sample_at(p, p->counts[0], w->rank),
                         sample_at(p, p->counts[0], rank_above(p, w)));
    }
}

/* The number of an upper half in a list, which it joins. */
static uint32_t number_of(uint32_t *list, uint32_t *n, uint32_t half)
{
    uint32_t i = 0;

    while (i < *n && list[i] != half)
        i++;
    if (i == *n)
        list[(*n)++] = half;
    return i;
}

/* Which upper halves the second round looks at. */
static void prepare_second(struct pb_percentiles *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct wanted *const w = &p->wanted[i];
        uint64_t before;

        w->key[0] = find_rank(p->counts[0], w->rank, &w->below);
        w->key[1] = find_rank(p->counts[0], rank_above(p, w), &before);
        w->next_is_apart = w->key[1] != w->key[0];
        (void)number_of(p->half, &p->n_halves, w->key[0]);
    }
    for (uint32_t i = 0; i < p->n_halves; i++)
        p->role[p->half[i]] = (uint8_t)(COUNTED + i);
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t half = p->wanted[i].key[1];

        if (p->wanted[i].next_is_apart && p->role[half] == LEFT_OUT) {
            const uint32_t k = number_of(p->apart, &p->n_apart, half);

            p->role[half] = (uint8_t)(COUNTED + PB_PERCENTILES_MAX + k);
            p->least[k] = UINT32_MAX;
        }
    }
    p->second = true;
    memset(p->counts, 0, p->n * sizeof p->counts[0]);
}

/* The value of a rank in an upper half of which `below` values are below. */
static double value_at(const struct pb_percentiles *p, uint32_t half, uint64_t rank_in_half)
{
    const uint32_t role = p->role[half];
    uint64_t before;

    if (role >= COUNTED + PB_PERCENTILES_MAX)
        return (double)value_of(p->least[role - COUNTED - PB_PERCENTILES_MAX]);
    return (double)value_of(half << HALF_BITS |
                            find_rank(p->counts[role - COUNTED], rank_in_half, &before));
}

static void end_second(const struct pb_percentiles *p, double *out)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct wanted *const w = &p->wanted[i];
        const uint64_t rank = w->rank - w->below;
        const uint64_t above = rank_above(p, w) - w->below;

        out[i] = between(w, value_at(p, w->key[0], rank),
                         value_at(p, w->key[1], w->next_is_apart ? 0 : above));
    }
}

bool pb_percentiles_end(struct pb_percentiles *p, double *out)
{
    if (p->values == 0) {
        for (uint32_t i = 0; i < p->n; i++)
            out[i] = (double)NAN;
        return true;
    }
    if (p->second) {
        end_second(p, out);
        return true;
    }
    find_ranks(p);
    if (p->samples.n > 0)
        end_samples(p, out);
    else
        prepare_second(p);
    return p->samples.n > 0;
}
