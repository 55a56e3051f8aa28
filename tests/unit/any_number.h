/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_ANY_NUMBER_H
#define PB_TEST_ANY_NUMBER_H
/* Pseudo-random numbers for a test in one thread: xorshift (Marsaglia 2003), the same in every
 * run. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t any_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline uint32_t any_number(void)
{
    return (uint32_t)(any_bits() >> 16);
}

/* Any finite float, all exponents alike. */
static inline float any_finite(void)
{
    float x;
    do {
        const uint32_t bits = (uint32_t)any_bits();
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return x;
}
#endif
