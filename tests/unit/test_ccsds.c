/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ctest: arm64 */
#include "config/downlink.h"
#include "config/yaml/report.h"
#include "service/ccsds/frames.h"
#include "service/ccsds/lines.h"
#include "service/ccsds/reorder.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t n_allocations;
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    n_allocations++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    n_allocations++;
    return __real_calloc(n, bytes);
}

/* --- the description -------------------------------------------------------------------------- */

#define LINES "lines: {bands: {R: 100}, samples: 8, counter_at: 12, pixels_at: 16}\n"
#define FRAME "frames: {length: 64}\n"

static const struct {
    const char *text, *mistake;
} mistakes[] = {
    {"", "must be a map"},
    {FRAME, "needs 'bands'"},
    {LINES, "frames.length is missing"},
    {FRAME LINES "tim: {}\n", "unknown key 'tim'"},
    {"frames: {length: 64, kind: tc}\n" LINES, "'tc' is not known"},
    {"frames: {length: 64, kind: none}\n" LINES, "no meaning with kind: none"},
    {"frames: {length: 64, insert_zone: 60}\n" LINES, "leaves no room"},
    {"frames: {length: 64, kind: tm, ocf: true}\n" LINES, "must be aos"},
    {"frames: {length: 64, channels: [1.5]}\n" LINES, "not whole"},
    {"frames: {length: 64, channels: [63]}\n" LINES, "out of range"},
    {FRAME LINES "time: {leap_seconds: 37}\n", "time.epoch is missing"},
    {FRAME LINES "time: {epoch: yesterday, leap_seconds: 37}\n", "is not a time"},
    {FRAME LINES "time: {epoch: '1200-01-01T00:00:00Z', leap_seconds: 37}\n", "between 1850"},
    {FRAME LINES "time: {epoch: '1958-01-01T00:00:00Z'}\n", "leap_seconds is missing"},
    {FRAME LINES "time: {code: cds, epoch: '1958-01-01T00:00:00Z', leap_seconds: 1}\n",
     "no meaning with cds"},
    {FRAME LINES "time: {code: cds, epoch: '1958-01-01T12:00:00Z'}\n", "must be midnight"},
    {FRAME LINES "time: {code: cds, epoch: '1958-01-01T00:00:00Z', submilliseconds: 3}\n",
     "must be 0, 2 or 4"},
    {FRAME "lines: {bands: {R: 2047}, samples: 8, counter_at: 12, pixels_at: 16}\n",
     "out of range"},
    {FRAME "lines: {bands: {R: 1}, samples: 8, counter_at: 12, pixels_at: 16, counter_bits: 9}\n",
     "must be 8, 16, 24 or 32"},
    {FRAME "lines: {bands: {R: 1}, samples: 8, counter_at: 12, pixels_at: 16, bits: 12, type: "
           "uint8}\n",
     "an unsigned type that holds them"},
    {FRAME "lines: {bands: {R: 1, G: 2, B: 3}, samples: 1048576, counter_at: 12, pixels_at: 16, "
           "type: float64}\n",
     "more than 16 MiB"},
};

START_TEST(test_downlink_names_mistakes)
{
    static struct pb_err_list errors;
    struct pb_downlink *downlink = NULL;
    const char *text = mistakes[_i].text;
    ck_assert_int_lt(pb_downlink_parse(text, strlen(text), "d.yaml", &errors, &downlink), 0);
    ck_assert_uint_ge(errors.n, 1);
    ck_assert_msg(strstr(errors.err[0].msg, mistakes[_i].mistake) != NULL, "%s: %s", text,
                  errors.err[0].msg);
}
END_TEST

START_TEST(test_downlink_example_is_valid)
{
    static struct pb_err_list errors;
    struct pb_downlink *downlink = NULL;
    char *text = pb_downlink_example();
    ck_assert_ptr_nonnull(text);
    const int rc = pb_downlink_parse(text, strlen(text), "example", &errors, &downlink);
    ck_assert_msg(rc == 0, "%s\n%s", errors.err[0].msg, text);
    ck_assert_int_eq(downlink->frames.length, 1115);
    ck_assert_uint_eq(downlink->lines.bands.n, 2);
    pb_downlink_destroy(downlink);
    free(text);
}
END_TEST

/* --- order ------------------------------------------------------------------------------------ */

static char order[256];

static void note(void *user, const uint8_t *data, size_t bytes, bool continues)
{
    (void)user;
    const size_t n = strlen(order);
    ck_assert_uint_eq(bytes, 1);
    (void)snprintf(order + n, sizeof order - n, "%s%c", continues ? "" : " ", *data);
}

/* Numbers of pieces as they arrive (letters: a = number 250 of 256), and their delivery: a space
 * where pieces do not continue. */
static const struct {
    const char *arrival, *delivery;
    uint64_t lost, duplicate, late, jumps;
} orders[] = {
    {"abcdefghij", " abcdefghij", 0, 0, 0, 0},
    {"abdcfe", " abcdef", 0, 0, 0, 0},
    {"abdefghi", " ab defghi", 1, 0, 0, 0},
    {"abdec", " abcde", 0, 0, 0, 0},
    {"abdefgc", " ab defg", 1, 0, 1, 0},
    {"abbdbdc", " abcd", 0, 3, 0, 0},
    {"abz", " ab z", 23, 0, 0, 0},
    {"adg", " a d g", 4, 0, 0, 0},
    {"ba", " b", 0, 0, 1, 0},
    {"", "", 0, 0, 0, 0},
};

START_TEST(test_reorder_delivers_in_order)
{
    uint64_t counts[4] = {0};
    struct pb_reorder reorder = {.modulus = 256,
                                 .window = 3,
                                 .most_bytes = 1,
                                 .deliver = note,
                                 .lost = &counts[0],
                                 .duplicate = &counts[1],
                                 .late = &counts[2],
                                 .jumps = &counts[3]};
    ck_assert_int_eq(pb_reorder_init(&reorder), 0);
    order[0] = '\0';
    for (const char *at = orders[_i].arrival; *at != '\0'; at++)
        pb_reorder_push(&reorder, (uint32_t)(250 + *at - 'a') % 256, (const uint8_t *)at, 1);
    pb_reorder_flush(&reorder);
    ck_assert_str_eq(order, orders[_i].delivery);
    ck_assert_uint_eq(counts[0], orders[_i].lost);
    ck_assert_uint_eq(counts[1], orders[_i].duplicate);
    ck_assert_uint_eq(counts[2], orders[_i].late);
    ck_assert_uint_eq(counts[3], orders[_i].jumps);
    pb_reorder_fini(&reorder);
}
END_TEST

START_TEST(test_reorder_begins_again_after_a_jump_back)
{
    uint64_t counts[4] = {0};
    struct pb_reorder reorder = {.modulus = 16384,
                                 .window = 16,
                                 .most_bytes = 1,
                                 .deliver = note,
                                 .lost = &counts[0],
                                 .duplicate = &counts[1],
                                 .late = &counts[2],
                                 .jumps = &counts[3]};
    ck_assert_int_eq(pb_reorder_init(&reorder), 0);
    order[0] = '\0';
    pb_reorder_push(&reorder, 5000, (const uint8_t *)"a", 1);
    pb_reorder_push(&reorder, 5002, (const uint8_t *)"c", 1);
    pb_reorder_push(&reorder, 0, (const uint8_t *)"x", 1);
    pb_reorder_push(&reorder, 1, (const uint8_t *)"y", 1);
    ck_assert_str_eq(order, " a c xy");
    ck_assert_uint_eq(counts[0], 1);
    ck_assert_uint_eq(counts[3], 1);
    pb_reorder_fini(&reorder);
}
END_TEST

/* --- checksums and times ---------------------------------------------------------------------- */

START_TEST(test_crc_and_sequence_are_those_of_the_standards)
{
    static const uint8_t first[8] = {0xFF, 0x48, 0x0E, 0xC0, 0x9A, 0x0D, 0x70, 0xBC};
    ck_assert_uint_eq(pb_ccsds_crc((const uint8_t *)"123456789", 9), 0x29B1);
    ck_assert_uint_eq(pb_ccsds_crc((const uint8_t *)"123456789\x29\xB1", 11), 0);
    for (size_t i = 0; i < 8; i++)
        ck_assert_uint_eq(pb_ccsds_random(i), first[i]);
    ck_assert_uint_eq(pb_ccsds_random(255), 0xFF);
}
END_TEST

START_TEST(test_time_codes_become_nanoseconds)
{
    struct pb_downlink_time cuc = {
        .code = PB_TIME_CUC, .coarse = 4, .fine = 3, .epoch_s = -378691200, .leap_seconds = 37};
    /* 2017-01-01T00:00:00 UTC is 1861920037 s of TAI since 1958. */
    const uint8_t code[] = {0x6E, 0xFA, 0xA5, 0x25, 0x80, 0, 0};
    ck_assert_int_eq(pb_ccsds_time(&cuc, code), 1483228800500000000);
    struct pb_downlink_time cds = {.code = PB_TIME_CDS, .days = 2, .submilliseconds = 2};
    const uint8_t day[] = {0, 1, 0, 0, 0, 7, 0x03, 0xE7};
    ck_assert_int_eq(pb_ccsds_time(&cds, day), 86400007999000);
    const uint8_t after[] = {0, 1, 0x05, 0x26, 0x5F, 0xE8, 0, 0}; /* 86401000 ms */
    ck_assert_int_eq(pb_ccsds_time(&cds, after), PB_LINES_NO_TIME);
    const uint8_t micro[] = {0, 1, 0, 0, 0, 7, 0x03, 0xE8};
    ck_assert_int_eq(pb_ccsds_time(&cds, micro), PB_LINES_NO_TIME);
    cds.submilliseconds = 4;
    const uint8_t pico[] = {0, 0, 0, 0, 0, 0, 0x3B, 0x9A, 0xC9, 0xFF};
    ck_assert_int_eq(pb_ccsds_time(&cds, pico), 999999);
}
END_TEST

/* --- memory ----------------------------------------------------------------------------------- */

static size_t n_lines;

static void count_line(void *user, uint64_t line, const void *pixels, int64_t time_ns)
{
    (void)user;
    (void)line;
    (void)pixels;
    n_lines += time_ns == PB_LINES_NO_TIME;
}

/* A packet of APID 100 with line n; every 50th one is left out. */
static void feed_line(struct pb_frames *frames, uint32_t n)
{
    uint8_t packet[32] = {0x08, 100, (uint8_t)(0xC0 | (n >> 8 & 0x3F)), (uint8_t)n, 0, 25};
    packet[12] = (uint8_t)(n >> 24);
    packet[13] = (uint8_t)(n >> 16);
    packet[14] = (uint8_t)(n >> 8);
    packet[15] = (uint8_t)n;
    if (n % 50 != 49)
        pb_frames_feed(frames, packet, sizeof packet);
}

START_TEST(test_receiving_allocates_nothing)
{
    static const char text[] = "frames: {kind: none}\n" LINES;
    static struct pb_err_list errors;
    struct pb_downlink *downlink = NULL;
    struct pb_ccsds_counts counts = {0};
    struct pb_lines *lines = NULL;
    struct pb_frames *frames = NULL;
    ck_assert_int_eq(pb_downlink_parse(text, sizeof text - 1, "d", &errors, &downlink), 0);
    ck_assert_int_eq(pb_lines_create(downlink, count_line, NULL, &counts, &lines), 0);
    const struct pb_frames_options options = {.format = &downlink->frames,
                                              .packet_bytes = pb_lines_packet_bytes(lines),
                                              .wanted = pb_lines_wanted(lines),
                                              .deliver = pb_lines_packet,
                                              .user = lines,
                                              .counts = &counts};
    ck_assert_int_eq(pb_frames_create(&options, &frames), 0);
    const size_t before = n_allocations;
    for (uint32_t n = 0; n < 20000; n++)
        feed_line(frames, n);
    pb_frames_flush(frames);
    pb_lines_flush(lines);
    ck_assert_uint_eq(n_allocations, before);
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_eq(n_lines, 19600);
    ck_assert_uint_eq(counts.lines_lost, 399);
    pb_frames_destroy(frames);
    pb_lines_destroy(lines);
    pb_downlink_destroy(downlink);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ccsds");
    TCase *tests = tcase_create("ccsds");
    const int n_mistakes = (int)(sizeof mistakes / sizeof *mistakes);
    const int n_orders = (int)(sizeof orders / sizeof *orders);
    tcase_add_loop_test(tests, test_downlink_names_mistakes, 0, n_mistakes);
    tcase_add_test(tests, test_downlink_example_is_valid);
    tcase_add_loop_test(tests, test_reorder_delivers_in_order, 0, n_orders);
    tcase_add_test(tests, test_reorder_begins_again_after_a_jump_back);
    tcase_add_test(tests, test_crc_and_sequence_are_those_of_the_standards);
    tcase_add_test(tests, test_time_codes_become_nanoseconds);
    tcase_add_test(tests, test_receiving_allocates_nothing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
