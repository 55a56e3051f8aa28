/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MUTATE_H
#define PB_MUTATE_H
/* Deterministic damage: the same seed makes the same bytes. */
#include <stdint.h>
#include <string.h>

struct mutate {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t mutate_next(struct mutate *m)
{
    uint64_t z = m->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline size_t mutate_below(struct mutate *m, size_t n)
{
    return n > 0 ? (size_t)(mutate_next(m) % n) : 0;
}

/* One change of the `bytes` bytes at p: bits, bytes, numbers, runs of zeros, copies. */
static inline void mutate_once(struct mutate *m, uint8_t *p, size_t bytes)
{
    static const uint8_t odd[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xfe};
    if (bytes == 0)
        return;
    size_t at = mutate_below(m, bytes), left = bytes - at;
    size_t n = 1 + mutate_below(m, left < 64 ? left : 64);
    switch (mutate_below(m, 8)) {
    case 0:
    case 1:
        p[at] ^= (uint8_t)(1u << mutate_below(m, 8));
        break;
    case 2:
    case 3:
        p[at] = (uint8_t)mutate_next(m);
        break;
    case 4:
        p[at] = odd[mutate_below(m, sizeof odd)];
        break;
    case 5:
        p[at] = (uint8_t)(p[at] + 1 - 2 * (int)mutate_below(m, 2));
        break;
    case 6:
        memset(p + at, odd[mutate_below(m, 2)], mutate_below(m, 4) == 0 ? left : n);
        break;
    default:
        memmove(p + at, p + mutate_below(m, bytes - n + 1), n);
        break;
    }
}
#endif
