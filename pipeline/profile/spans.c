/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/profile/spans.h"

#include <string.h>

static void close_oldest(struct pb_spans *s)
{
    s->closed_ns += s->open[0].to - s->open[0].from;
    s->until = s->open[0].to;
    s->n--;
    memmove(&s->open[0], &s->open[1], s->n * sizeof s->open[0]);
}

void pb_spans_add(struct pb_spans *s, uint64_t from, uint64_t to)
{
    from = from < s->until ? s->until : from;
    if (to <= from)
        return;
    uint32_t first = 0;
    while (first < s->n && s->open[first].to < from)
        first++;
    uint32_t end = first; /* spans from first to end touch the new one */
    while (end < s->n && s->open[end].from <= to) {
        from = s->open[end].from < from ? s->open[end].from : from;
        to = s->open[end].to > to ? s->open[end].to : to;
        end++;
    }
    if (end == first && s->n == PB_SPANS_OPEN) {
        if (first == 0) { /* older than all: its time is closed */
            s->closed_ns += to - from;
            s->until = to;
            return;
        }
        close_oldest(s);
        first--;
        end--;
    }
    memmove(&s->open[first + 1], &s->open[end], (s->n - end) * sizeof s->open[0]);
    s->n = s->n - (end - first) + 1;
    s->open[first] = (struct pb_span){from, to};
}

uint64_t pb_spans_covered(const struct pb_spans *s)
{
    uint64_t covered = s->closed_ns;
    for (uint32_t i = 0; i < s->n; i++)
        covered += s->open[i].to - s->open[i].from;
    return covered;
}
