/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Thin wrapper round futex(2), which libc does not have. FUTEX_WAIT_BITSET rather than FUTEX_WAIT
 * because its time limit is absolute: a sleeper that is woken for nothing goes back to sleep with
 * the same deadline, and no time is lost to arithmetic between two clock readings. */
#include "wic/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* futex() takes the kernel's own timespec, two longs, which libc's is not on a 32-bit machine with
 * 64-bit time. Seconds since boot fit in a long on either. */
struct kernel_timespec {
    long seconds;
    long nanoseconds;
};

int64_t wic_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Timer slack is 50 us by default, which is longer than most naps. */
#define NAP_SLACK_NS 1000UL

void wic_nap_ns(uint32_t ns)
{
    int saved = errno;
    int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); /* the caller's; < 0: not known */
    if (slack > (int)NAP_SLACK_NS) {
        (void)prctl(PR_SET_TIMERSLACK, NAP_SLACK_NS, 0, 0, 0);
    }
    struct timespec nap = {.tv_nsec = (long)ns};
    nanosleep(&nap, NULL);
    if (slack > (int)NAP_SLACK_NS) {
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
    }
    errno = saved;
}

int wic_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns, bool shared)
{
    int saved = errno;
    int op = FUTEX_WAIT_BITSET | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    struct kernel_timespec until = {(long)(deadline_ns / NS_PER_S), (long)(deadline_ns % NS_PER_S)};
    struct kernel_timespec *limit = deadline_ns == WIC_NO_DEADLINE ? NULL : &until;
    int rc = 0;
    if (syscall(SYS_futex, word, op, expected, limit, NULL, FUTEX_BITSET_MATCH_ANY) != 0) {
        rc = errno == EINTR ? 0 : -errno;
    }
    errno = saved;
    return rc;
}

void wic_futex_wake(_Atomic uint32_t *word, int count, bool shared)
{
    int saved = errno;
    int op = FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG);
    /* Can fail on a bad address only, and the caller has just written to this one. */
    syscall(SYS_futex, word, op, count, NULL, NULL, 0);
    errno = saved;
}
