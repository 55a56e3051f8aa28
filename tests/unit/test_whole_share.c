/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Distribution of blocks to decoders, with a simulation of cores, a link and a device that decodes
 * groups of blocks, with any speeds: both sides are busy until the end. */
#include "pipeline/run/whole/whole_share.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>

#define DECODED UINT64_C(2000000)
#define STORED  UINT64_C(1200000)
#define READ    3e9 /* bytes/s of a core that reads */

enum { BLOCKS = 484, CORES_MAX = 16, GROUP = 16, GROUPS = (BLOCKS + GROUP - 1) / GROUP };

/* Speeds as they are, in decoded bytes/s, and of the link in bytes/s as sent. */
struct machine {
    int cores;
    double core, device, link;
};

struct outcome {
    double end_s;
    int by_cores;
};

/* Facts about the device at the end of a group. */
struct note {
    double at_s, busy_s;
    uint64_t done;
};

/* Times in s. A group is decoded when its last block is there, decoded by either side. */
struct state {
    double core_free[CORES_MAX], link_free, device_free, busy;
    uint64_t given[GROUPS], done;
    struct note note[GROUPS];
    int told;
};

static uint64_t ns(double s)
{
    return (uint64_t)(s * 1e9) + 1;
}

static int first_free(const struct machine *m, const struct state *s)
{
    int best = 0;
    for (int c = 1; c < m->cores; c++)
        if (s->core_free[c] < s->core_free[best])
            best = c;
    return best;
}

static double send(const struct machine *m, struct state *s, double from, uint64_t bytes)
{
    s->link_free = fmax(s->link_free, from) + (double)bytes / m->link;
    return s->link_free;
}

static void decode_group(const struct machine *m, struct state *s, int group, double ready)
{
    double takes = (double)s->given[group] / m->device;
    s->device_free = fmax(s->device_free, ready) + takes;
    s->busy += takes;
    s->done += s->given[group];
    s->note[group] = (struct note){s->device_free, s->busy, s->done};
}

/* Gives a reader the notes before it takes a block of that group. */
static void hear(struct state *s, struct pb_whole_share *share, double now, int group)
{
    for (; s->told < group && s->note[s->told].at_s <= now; s->told++) {
        const struct note *note = &s->note[s->told];
        uint64_t waiting = 0;
        for (int g = s->told + 1; g + 1 < group; g++)
            waiting += s->given[g];
        pb_whole_share_device_did(share, ns(note->at_s), note->done, ns(note->busy_s), waiting);
    }
}

static struct outcome simulate(const struct machine *m, struct pb_whole_share *share, bool shares)
{
    struct state s = {.link_free = 0};
    struct outcome out = {.end_s = 0};
    double ready = 0; /* the last block of the group so far */
    for (int block = 0; block < BLOCKS; block++) {
        int core = first_free(m, &s), group = block / GROUP;
        double now = s.core_free[core];
        hear(&s, share, now, group);
        if (shares && pb_whole_share_is_cores(share, ns(now), STORED, DECODED)) {
            double takes = (double)DECODED / m->core;
            s.core_free[core] += takes;
            ready = fmax(ready, send(m, &s, s.core_free[core], DECODED));
            pb_whole_share_core_did(share, DECODED, ns(takes));
            out.by_cores++;
        } else {
            pb_whole_share_give(share, ns(now), STORED, DECODED);
            s.core_free[core] += (double)STORED / READ;
            ready = fmax(ready, send(m, &s, s.core_free[core], STORED));
            s.given[group] += DECODED;
        }
        if (block % GROUP == GROUP - 1 || block == BLOCKS - 1)
            decode_group(m, &s, group, ready);
    }
    out.end_s = s.device_free;
    return out;
}

static struct outcome run(const struct machine *m, double wrong_core, double wrong_device)
{
    struct pb_whole_share share;
    pb_whole_share_init(&share, m->core * wrong_core, m->device * wrong_device, m->link);
    return simulate(m, &share, true);
}

static double alone(const struct machine *m)
{
    struct pb_whole_share share;
    pb_whole_share_init(&share, m->core, m->device, m->link);
    return simulate(m, &share, false).end_s;
}

START_TEST(both_sides_are_busy_until_the_end)
{
    static const double device[] = {0.3e9, 1e9, 3e9, 6e9};
    static const int cores[] = {2, 4, 8, 16};
    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 4; c++) {
            struct machine m = {cores[c], 0.25e9, device[d], 40e9};
            struct outcome got = run(&m, 1, 1);
            double ideal = BLOCKS * (double)DECODED / (m.device + m.cores * m.core);
            ck_assert_msg(got.end_s < 1.2 * ideal + 0.03,
                          "%d cores, device %.1f GB/s: %.3f s, ideal %.3f s", m.cores,
                          m.device / 1e9, got.end_s, ideal);
        }
}
END_TEST

START_TEST(wrong_estimates_are_measured_away)
{
    static const double wrong[] = {0.3, 0.5, 2, 3};
    for (int core = 0; core < 4; core++)
        for (int device = 0; device < 4; device++) {
            struct machine m = {8, 0.25e9, 3e9, 40e9};
            struct outcome got = run(&m, wrong[core], wrong[device]);
            double ideal = BLOCKS * (double)DECODED / (m.device + m.cores * m.core);
            ck_assert_msg(got.end_s < 1.5 * ideal, "core x %.1f, device x %.1f: %.3f s, not %.3f",
                          wrong[core], wrong[device], got.end_s, ideal);
        }
}
END_TEST

START_TEST(a_fast_device_gets_nearly_all)
{
    struct machine m = {16, 0.25e9, 45e9, 50e9};
    struct outcome got = run(&m, 1, 1);
    ck_assert_int_lt(got.by_cores, BLOCKS / 5);
    ck_assert_double_lt(got.end_s, 1.05 * alone(&m));
}
END_TEST

START_TEST(slow_link_carries_blocks_as_stored)
{
    struct machine m = {16, 0.25e9, 3e9, 0.5e9};
    struct outcome got = run(&m, 1, 1);
    ck_assert_int_lt(got.by_cores, BLOCKS / 20);
    ck_assert_double_lt(got.end_s, 1.05 * alone(&m));
}
END_TEST

START_TEST(notes_that_cannot_be_are_left_out)
{
    struct pb_whole_share share, before;
    pb_whole_share_init(&share, 1e9, 1e9, 1e9);
    pb_whole_share_give(&share, 1000, STORED, DECODED);
    pb_whole_share_give(&share, 1000, STORED, DECODED);
    pb_whole_share_device_did(&share, 5000000, DECODED, 2000000, 0);
    before = share;
    pb_whole_share_device_did(&share, 4000000, 2 * DECODED, 3000000, 0); /* older */
    pb_whole_share_device_did(&share, 6000000, 3 * DECODED, 3000000, 0); /* more than was given */
    pb_whole_share_device_did(&share, 6000000, 0, 3000000, 0);           /* less than before */
    pb_whole_share_device_did(&share, 6000000, 2 * DECODED, 1000000, 0); /* less time */
    pb_whole_share_core_did(&share, DECODED, 0);
    ck_assert_mem_eq(&share, &before, sizeof share);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_share");
    TCase *tests = tcase_create("whole_share");
    tcase_add_test(tests, both_sides_are_busy_until_the_end);
    tcase_add_test(tests, wrong_estimates_are_measured_away);
    tcase_add_test(tests, a_fast_device_gets_nearly_all);
    tcase_add_test(tests, slow_link_carries_blocks_as_stored);
    tcase_add_test(tests, notes_that_cannot_be_are_left_out);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
