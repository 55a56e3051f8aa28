/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_ANY_NUMBER_H
#define PB_TEST_ANY_NUMBER_H
/* Pseudo-random numbers for a test in one thread: xorshift (Marsaglia 2003), the same in every
 * run. */
#include <stdint.h>

static inline uint32_t any_number(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}
#endif
