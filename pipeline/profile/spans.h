/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPANS_H
#define PB_SPANS_H
/* Total time covered by spans, with overlaps counted once. Spans may be added in nearly the
 * order of their beginnings: the oldest of more than PB_SPANS_OPEN separate spans is closed, and
 * later spans count as covered up to its end. A zeroed object is empty. Thread: one at a time. */
#include <stdint.h>

enum { PB_SPANS_OPEN = 64 };

struct pb_span {
    uint64_t from, to; /* ns of one clock */
};

struct pb_spans {
    uint64_t closed_ns, until; /* time covered by closed spans; end of the last of them */
    uint32_t n;
    struct pb_span open[PB_SPANS_OPEN]; /* disjoint, by time */
};

void pb_spans_add(struct pb_spans *spans, uint64_t from, uint64_t to);
uint64_t pb_spans_covered(const struct pb_spans *spans);
#endif
