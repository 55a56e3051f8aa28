/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/owner_streams.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void expect(struct pb_owner_facts facts, const char *words)
{
    char why[PB_OWNER_WHY_BYTES];
    pb_owner_stream_why(&facts, why);
    ck_assert_str_eq(why, words);
}

#define TURNS " on the GPU, and without MPS they take turns with a kernel that stays"
#define LIMIT "the GPU drives a display and ends kernels that run for seconds"

START_TEST(a_gpu_where_no_kernel_can_stay_has_a_reason)
{
    expect((struct pb_owner_facts){0}, "");
    expect((struct pb_owner_facts){.mps = true}, "");
    expect((struct pb_owner_facts){.time_limited = true}, LIMIT);
    expect((struct pb_owner_facts){.time_limited = true, .mps = true, .others = 2, .full = true},
           LIMIT);
    expect((struct pb_owner_facts){.calls_wait = true, .mps = true},
           "with this driver calls that allocate memory wait for a kernel that stays");
    expect((struct pb_owner_facts){.others = 1, .other_pid = 4711},
           "1 other process computes (PID 4711)" TURNS);
    expect((struct pb_owner_facts){.others = 3}, "3 other processes compute" TURNS);
    expect((struct pb_owner_facts){.others = 3, .mps = true}, "");
    expect((struct pb_owner_facts){.others = 3, .mps = true, .full = true},
           "other programs filled the GPU less than a minute ago");
}
END_TEST

START_TEST(a_reason_is_logged_once_and_so_is_its_end)
{
    struct pb_owner_streams streams = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *log = open_memstream(&text, &bytes);
    for (int i = 0; i < 3; i++)
        pb_owner_streams_say(&streams, "cuda:0", "", log);
    for (int i = 0; i < 3; i++)
        pb_owner_streams_say(&streams, "cuda:0", LIMIT, log);
    for (int i = 0; i < 3; i++)
        pb_owner_streams_say(&streams, "cuda:0", "it is full", log);
    for (int i = 0; i < 3; i++)
        pb_owner_streams_say(&streams, "cuda:0", "", log);
    (void)fclose(log);
    ck_assert_str_eq(text, "cuda:0: jobs use streams: " LIMIT "\n"
                           "cuda:0: jobs use streams: it is full\n"
                           "cuda:0: kernels stay again\n");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("owner_streams");
    TCase *tc = tcase_create("owner_streams");
    tcase_add_test(tc, a_gpu_where_no_kernel_can_stay_has_a_reason);
    tcase_add_test(tc, a_reason_is_logged_once_and_so_is_its_end);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
