/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_FUTEX_H
#define WIC_FUTEX_H
/* The kernel's wait queue on a 32-bit word, and the clock its deadlines are on. Linux only.
 * Stateless; every function may be called from any thread and from a signal handler. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WIC_NO_DEADLINE INT64_MAX

/* CLOCK_MONOTONIC in ns. */
int64_t wic_now_ns(void);

/* Sleeps for so long, of which the thread's timer slack is no part. */
void wic_nap_ns(uint32_t ns);

/* Sleeps while *word == expected, until woken or until deadline_ns (absolute, on wic_now_ns).
 * `shared`: the waker may be another process. Returns 0 after a sleep that ended (woken, a signal,
 * or for no reason at all), -EAGAIN without sleep because the word had another value, -ETIMEDOUT,
 * or another negative errno if the kernel refuses to wait. */
int wic_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns, bool shared);

/* Wakes at most `count` threads that sleep on the word. Leaves errno alone. */
void wic_futex_wake(_Atomic uint32_t *word, int count, bool shared);

#endif
