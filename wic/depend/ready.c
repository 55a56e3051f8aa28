/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The line, one with the word that stops, one with tickets, then the entries of each ring. */
#include "wic/depend/ready.h"

#include <string.h>

enum { LINE = 128 };

_Static_assert(sizeof(struct wic_ready_line) == LINE, "one load of a warp takes all of it");
_Static_assert(sizeof(struct wic_ready_tickets) <= LINE, "on a line that no thread polls");

static uint32_t entries_of(uint32_t most)
{
    uint32_t entries = LINE / sizeof(uint64_t);
    while (entries < most) {
        entries *= 2;
    }
    return entries;
}

size_t wic_ready_bytes(const uint32_t most[WIC_READY_RINGS])
{
    size_t bytes = 3 * LINE;
    for (uint32_t i = 0; i < WIC_READY_RINGS; i++) {
        bytes += entries_of(most[i]) * sizeof(uint64_t);
    }
    return bytes;
}

void wic_ready_init(const uint32_t most[WIC_READY_RINGS], uint64_t limit_ns, void *image,
                    void *memory, struct wic_ready *out)
{
    unsigned char *at = memory;
    memset(image, 0, wic_ready_bytes(most));
    out->line = memory;
    out->stop = (uint32_t *)(void *)(at + LINE);
    out->limit_ns = limit_ns;
    out->tickets = (struct wic_ready_tickets *)(void *)(at + 2 * LINE);
    at += 3 * LINE;
    for (uint32_t i = 0; i < WIC_READY_RINGS; i++) {
        out->entry[i] = (uint64_t *)(void *)at;
        out->mask[i] = entries_of(most[i]) - 1;
        at += entries_of(most[i]) * sizeof(uint64_t);
    }
}

void wic_ready_list(void *image, const struct wic_ready *ready, uint32_t ring,
                    const uint32_t *tasks, uint32_t n)
{
    const uintptr_t at = (uintptr_t)ready->entry[ring] - (uintptr_t)ready->line;
    uint64_t *const entry = (uint64_t *)(void *)((unsigned char *)image + at);
    for (uint32_t i = 0; i < n; i++) {
        entry[i & ready->mask[ring]] = ((uint64_t)i + 1) << 32 | tasks[i];
    }
}
