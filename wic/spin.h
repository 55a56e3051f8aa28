/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_SPIN_H
#define WIC_SPIN_H
/* How long a waiting thread polls before it parks: an adaptive budget of rounds. Pure arithmetic on
 * the budget of one side of a channel, always within 0 .. limit.
 *
 * A budget that has grown to the limit stays there as long as parks are short, also where spinning
 * never succeeds (two threads that answer each other on two cores: 4 us more a round trip, which
 * the small limit for two cores bounds). Rejected: to stop spinning after eight vain spins, with a
 * new try every 64 parks. It removed those 4 us on one machine and cost streams 40 % of their
 * tickets on two cores of another; on 16 cores it made no difference. */
#include <stdint.h>

/* A park shorter than this would have been cheaper as a spin: about what sleep and wake cost. */
#define WIC_SHORT_PARK_NS 20000

static inline void wic_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/* The cache line is about to be written. (__builtin_prefetch would fetch it to read only, where the
 * compiler does not know that all these processors have the instruction.) */
static inline void wic_cpu_fetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* The ticket came after `rounds`: the budget moves a quarter of the way towards twice that
 * number. */
static inline uint32_t wic_spin_after_success(uint32_t budget, uint32_t rounds, uint32_t limit)
{
    int64_t aim = 2 * (int64_t)rounds + 16;
    int64_t next = budget + (aim - (int64_t)budget) / 4;
    return next > limit ? limit : (uint32_t)next;
}

/* The ticket did not come and the thread parked: the budget is halved, down to 0, unless the park
 * was so short that a longer spin would have been cheaper. That is also how the budget grows from
 * 0. */
static inline uint32_t wic_spin_after_park(uint32_t budget, int64_t parked_ns, uint32_t limit)
{
    uint64_t next = parked_ns < WIC_SHORT_PARK_NS ? 2 * (uint64_t)budget + 16 : budget / 2;
    return next > limit ? limit : (uint32_t)next;
}

#endif
