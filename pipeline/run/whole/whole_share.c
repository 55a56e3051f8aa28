/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/whole/whole_share.h"

#define NEW_WEIGHT  0.5 /* weight of a new measurement in a speed */
#define FASTER_MOST 16  /* limit of a new measurement, as a multiple of the speed before */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t takes_ns(uint64_t bytes, double rate)
{
    return (uint64_t)((double)bytes / rate * 1e9);
}

static void measure(double *rate, uint64_t bytes, uint64_t ns)
{
    double now = ns > 0 ? (double)bytes * 1e9 / (double)ns : 0;
    if (now <= 0)
        return;
    now = now < *rate * FASTER_MOST ? now : *rate * FASTER_MOST;
    now = now > *rate / FASTER_MOST ? now : *rate / FASTER_MOST;
    *rate += NEW_WEIGHT * (now - *rate);
}

void pb_whole_share_init(struct pb_whole_share *s, double core, double device, double link)
{
    *s = (struct pb_whole_share){.core = core, .device = device, .link = link};
}

bool pb_whole_share_is_cores(struct pb_whole_share *s, uint64_t now_ns, uint64_t stored,
                             uint64_t decoded)
{
    uint64_t link = later(s->link_free_ns, now_ns);
    uint64_t sent = link + takes_ns(stored, s->link);
    uint64_t by_device = later(sent, s->device_free_ns) + takes_ns(decoded, s->device);
    uint64_t on_link = takes_ns(decoded, s->link);
    uint64_t by_core = later(now_ns + takes_ns(decoded, s->core), link) + on_link;
    if (by_core >= by_device)
        return false;
    s->link_free_ns = link + on_link;
    return true;
}

void pb_whole_share_give(struct pb_whole_share *s, uint64_t now_ns, uint64_t stored,
                         uint64_t decoded)
{
    s->link_free_ns = later(s->link_free_ns, now_ns) + takes_ns(stored, s->link);
    s->device_free_ns = later(s->link_free_ns, s->device_free_ns) + takes_ns(decoded, s->device);
    s->given += decoded;
}

void pb_whole_share_core_did(struct pb_whole_share *s, uint64_t decoded, uint64_t ns)
{
    measure(&s->core, decoded, ns);
}

void pb_whole_share_device_did(struct pb_whole_share *s, uint64_t at_ns, uint64_t done,
                               uint64_t busy_ns, uint64_t waiting)
{
    if (at_ns <= s->done_ns || done <= s->done || done > s->given || busy_ns < s->busy_ns)
        return;
    measure(&s->device, done - s->done, busy_ns - s->busy_ns);
    s->done = done;
    s->done_ns = at_ns;
    s->busy_ns = busy_ns;
    s->device_free_ns = later(s->device_free_ns, at_ns + takes_ns(waiting, s->device));
}
