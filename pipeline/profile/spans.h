/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPANS_H
#define PB_SPANS_H
/* How much time spans cover, those that overlap counted once. They may come in any order that is
 * nearly that of their beginnings: the oldest of more than PB_SPANS_OPEN spans that do not touch is
 * closed, and what comes later for the time before its end counts as covered. A zeroed one has
 * none. Thread: one at a time. */
#include <stdint.h>

enum { PB_SPANS_OPEN = 64 };

struct pb_span {
    uint64_t from, to; /* ns of one clock */
};

struct pb_spans {
    uint64_t closed_ns, until; /* covered by spans that are closed; where the last of them ends */
    uint32_t n;
    struct pb_span open[PB_SPANS_OPEN]; /* apart from each other, by time */
};

void pb_spans_add(struct pb_spans *spans, uint64_t from, uint64_t to);
uint64_t pb_spans_covered(const struct pb_spans *spans);
#endif
