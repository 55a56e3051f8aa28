/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_MARK_ONCE_H
#define PB_TEST_MARK_ONCE_H
/* Included before every unit test. Each assertion that holds makes Check write its place to a file,
 * for the report of a test that crashes; in a loop of a million assertions that is nearly all the
 * time they take. With this an assertion is written when it holds for the first time in its test's
 * process. Thread: any. */
#include <check.h>

static inline void mark_once(const char *file, int line)
{
    static unsigned char marked[8192]; /* index: line; a header's line may hide the test's */
    unsigned char *mark = &marked[(unsigned)line % sizeof marked];
    if (__atomic_load_n(mark, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(mark, 1, __ATOMIC_RELAXED);
    _mark_point(file, line);
}
#define _mark_point(file, line) mark_once(file, line)
#endif
