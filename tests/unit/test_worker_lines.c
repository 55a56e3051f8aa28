/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "service/worker/worker_inputs.h"
#include "service/worker/worker_lines.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB      "20261121-081530-4f2a"
#define HEAD     "\"job\":\"" JOB "\","
#define PROGRESS "{\"event\":\"progress\"," HEAD "\"stage\":\"compute\",\"device\":\"cpu\","
#define SUM      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PRODUCT                                                                                    \
    "{\"type\":\"cog\",\"path\":\"/p/s/veg/s.tif\",\"bytes\":7,\"checksum\":\"sha256:" SUM         \
    "\",\"media_type\":\"image/tiff\"}"
#define REPORT "{\"device\":\"cpu\",\"memory_bytes\":4096,\"elapsed_ms\":50,\"x\":[1.5,null,true]}"
#define DONE(directory, products, report)                                                          \
    "{\"event\":\"done\"," HEAD "\"directory\":\"" directory "\",\"products\":" products           \
    ",\"report\":" report "}"

static struct pb_worker_lines lines;
static struct pb_worker_line line;
static char why[PB_WORKER_WHY_BYTES];

static void begin(void)
{
    struct pb_job job = {.id = JOB, .scene = "s", .pipeline = "veg"};
    pb_worker_lines_reset(&lines);
    pb_worker_lines_begin(&lines, &job, "/p", NULL, true);
}

static int take(const char *text)
{
    pb_worker_line_fini(&line);
    return pb_worker_lines_take(&lines, text, strlen(text), why, &line);
}

static void refused(const char *text, const char *word)
{
    ck_assert_msg(take(text) == -EPROTO, "taken: %s", text);
    ck_assert_msg(strstr(why, word) != NULL, "'%s' lacks '%s'", why, word);
}

static int progress(const char *numbers)
{
    char text[400];
    (void)snprintf(text, sizeof text, PROGRESS "%s}", numbers);
    return take(text);
}

START_TEST(events_become_typed)
{
    begin();
    ck_assert_int_eq(progress("\"tiles_done\":1,\"tiles_total\":9,\"bytes_read\":2,"
                              "\"bytes_written\":3,\"elapsed_ms\":4"),
                     0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_PROGRESS);
    ck_assert_str_eq(line.stage, "compute");
    ck_assert_int_eq(line.numbers.tiles_total, 9);
    ck_assert_int_eq(line.numbers.bytes_written, 3);
    ck_assert_int_eq(take(DONE("/p/s/veg", "[" PRODUCT "]", REPORT)), 0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_DONE);
    ck_assert_str_eq(line.directory, "/p/s/veg");
    ck_assert_str_eq(line.products, "[" PRODUCT "]");
    ck_assert_str_eq(line.report, REPORT);
    ck_assert_int_eq(line.memory_bytes, 4096);
    ck_assert_int_eq(line.epsg, 0);
    ck_assert_int_eq(take(DONE("/p/s/veg", "[" PRODUCT "],\"epsg\":32720", REPORT)), 0);
    ck_assert_int_eq(line.epsg, 32720);
    ck_assert_int_eq(take("{\"event\":\"failed\"," HEAD "\"error\":{\"code\":\"input.damaged\","
                          "\"message\":\"tile\\n7\",\"hint\":\"run this: rm\"}}"),
                     0);
    ck_assert_str_eq(line.error.message, "tile 7");
    ck_assert_str_eq(line.error.hint, pb_code_hint(pb_code_find("input.damaged")));
    ck_assert_int_eq(take("{\"event\":\"device\",\"device\":\"cpu\",\"why\":\"a\\u001b[2Jb\"}"), 0);
    ck_assert_str_eq(line.why, "a [2Jb");
}
END_TEST

/* Takes a line of progress with the member "bbox". */
static const char *bounds(const char *bbox)
{
    char numbers[300];
    (void)snprintf(numbers, sizeof numbers,
                   "\"tiles_done\":1,\"tiles_total\":9,\"bytes_read\":2,\"bytes_written\":3,"
                   "\"elapsed_ms\":4,\"bbox\":%s",
                   bbox);
    ck_assert_int_eq(progress(numbers), 0);
    return line.bbox;
}

START_TEST(test_bounds_are_degrees)
{
    begin();
    ck_assert_str_eq(bounds("[10.5,-53,179.1234567,54]"), "[10.5,-53,179.1234567,54]");
    static const char *const ignored[] = {
        "null",          "5",          "[1,2,3]",      "[1,2,3,4,5]",
        "[1,2,3,\"4\"]", "[1,91,3,4]", "[-181,2,3,4]", "[1e300,2,3,4]",
        "[[1,2],2,3,4]"};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        ck_assert_str_eq(bounds(ignored[i]), "");
    ck_assert_int_eq(take("{\"event\":\"failed\"," HEAD
                          "\"error\":{\"code\":\"input.damaged\",\"message\":\"m\"},"
                          "\"bbox\":[1,2,3,4]}"),
                     0);
    ck_assert_str_eq(line.bbox, "[1,2,3,4]");
}
END_TEST

START_TEST(what_no_worker_says_is_refused)
{
    begin();
    refused("no json", "JSON");
    refused("[1]", "JSON");
    refused("{}", "no event");
    refused("{\"event\":7}", "no event");
    refused("{\"event\":\"shell\"," HEAD "\"x\":1}", "unknown event");
    refused("{\"event\":\"failed\",\"job\":\"20261121-081530-zzzz\"}", "another job");
    refused("{\"event\":\"failed\"," HEAD "\"error\":{\"code\":\"made.up\"}}", "no error code");
    refused("{\"event\":\"failed\"," HEAD "\"error\":null}", "no error code");
    pb_worker_lines_end(&lines);
    refused("{\"event\":\"failed\"," HEAD "\"error\":{\"code\":\"input.damaged\"}}", "no job runs");
    refused(DONE("/p/s/veg", "[" PRODUCT "]", REPORT), "no job runs");
    ck_assert_int_eq(take(PROGRESS "\"tiles_done\":1}"), 1); /* late, ignored */
}
END_TEST

START_TEST(numbers_are_in_range_and_never_fall)
{
    static const char good[] = "\"tiles_done\":5,\"tiles_total\":9,\"bytes_read\":5,"
                               "\"bytes_written\":5,\"elapsed_ms\":5";
    static const char *const bad[] = {
        "\"tiles_done\":4,\"tiles_total\":9,\"bytes_read\":5,\"bytes_written\":5,\"elapsed_ms\":5",
        "\"tiles_done\":5,\"tiles_total\":8,\"bytes_read\":5,\"bytes_written\":5,\"elapsed_ms\":5",
        "\"tiles_done\":5,\"tiles_total\":10,\"bytes_read\":5,\"bytes_written\":5,\"elapsed_ms\":5",
        "\"tiles_done\":10,\"tiles_total\":9,\"bytes_read\":5,\"bytes_written\":5,\"elapsed_ms\":5",
        "\"tiles_done\":5,\"tiles_total\":9,\"bytes_read\":4,\"bytes_written\":5,\"elapsed_ms\":5",
        "\"tiles_done\":5,\"tiles_total\":9,\"bytes_read\":5,\"bytes_written\":-1,\"elapsed_ms\":5",
        "\"tiles_done\":5,\"tiles_total\":9,\"bytes_read\":5,\"bytes_written\":5,\"elapsed_ms\":1",
        "\"tiles_done\":5,\"tiles_total\":9,\"bytes_read\":9e18,\"bytes_written\":5",
        "\"tiles_done\":\"5\",\"tiles_total\":9",
        "\"tiles_done\":5,\"tiles_total\":9,\"bytes_read\":9223372036854775807",
        "\"tiles_done\":5,\"tiles_total\":1e3",
        "\"tiles_total\":9"};
    begin();
    ck_assert_int_eq(progress(good), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(progress(bad[i]) == -EPROTO, "taken: %s", bad[i]);
    ck_assert_int_eq(progress(good), 0); /* the refused ones left no trace */
    refused("{\"event\":\"progress\"," HEAD "\"stage\":\"rm -rf\"}", "no stage");
    begin(); /* another run begins at nothing again */
    ck_assert_int_eq(progress("\"tiles_done\":0,\"tiles_total\":1,\"bytes_read\":0,"
                              "\"bytes_written\":0,\"elapsed_ms\":0"),
                     0);
}
END_TEST

static int take_event(const char *event)
{
    char text[120];
    (void)snprintf(text, sizeof text, "{\"event\":\"%s\"," HEAD "\"x\":1}", event);
    return take(text);
}

/* A child whose directory is known requests place and checksums; a worker that does so breaks the
 * protocol. */
START_TEST(questions_are_for_the_worker_alone)
{
    begin();
    ck_assert_int_eq(take_event("place"), -EPROTO);
    ck_assert_int_eq(take_event("inputs"), -EPROTO);
    (void)snprintf(lines.directory, sizeof lines.directory, "/d");
    ck_assert_int_eq(take_event("place"), 0);
    ck_assert_int_eq(take_event("inputs"), 0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_INPUTS);
}
END_TEST

START_TEST(run_asks_once_for_its_turn)
{
    static const char turn[] = "{\"event\":\"turn\"," HEAD "\"tiles\":4,\"memory_bytes\":4096}";
    begin();
    ck_assert_int_eq(take(turn), 0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_TURN);
    ck_assert_int_eq(line.tiles, 4);
    ck_assert_int_eq(line.memory_bytes, 4096);
    refused(turn, "not expected"); /* a second one */
    begin();
    refused("{\"event\":\"turn\"," HEAD "\"tiles\":-1,\"memory_bytes\":1}", "tiles");
    begin();
    refused("{\"event\":\"turn\"," HEAD "\"tiles\":1}", "memory_bytes");
}
END_TEST

#define ALERT(more)                                                                                \
    "{\"number\":3,\"pixels\":2,\"line\":5,\"sample\":6,\"acquired_ns\":7,\"value\":0.5" more "}"
#define ALERTS(list) "{\"event\":\"alerts\"," HEAD "\"alerts\":[" list "]}"

START_TEST(alerts_are_checked_and_counted)
{
    begin();
    ck_assert_int_eq(
        take(ALERTS(
            ALERT(",\"name\":\"f\\u001bx\",\"band\":\"A\",\"lon\":1,\"lat\":-2") "," ALERT(""))),
        0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_ALERTS);
    ck_assert_uint_eq(line.n_alerts, 2);
    ck_assert_str_eq(line.alerts[0].name, "f x");
    ck_assert(line.alerts[0].has_place && line.alerts[0].lat == -2);
    ck_assert(!line.alerts[1].has_place && line.alerts[1].number == 3);
    ck_assert_int_eq(line.alerts[1].acquired_ns, 7);
    refused(ALERTS(""), "too many");
    refused(ALERTS("7"), "number");
    refused(ALERTS("{\"number\":1,\"pixels\":1,\"line\":0,\"sample\":0,\"acquired_ns\":0}"),
            "value");
    refused(
        ALERTS("{\"number\":0,\"pixels\":1,\"line\":0,\"sample\":0,\"acquired_ns\":0,\"value\":1}"),
        "number");
    begin();
    for (int i = 0; i < PB_JOB_ALERTS_MAX / 2; i++)
        ck_assert_int_eq(take(ALERTS(ALERT("") "," ALERT(""))), 0);
    refused(ALERTS(ALERT("")), "too many");
    pb_worker_line_fini(&line);
}
END_TEST

static int latency(const char *list)
{
    char text[300];
    (void)snprintf(text, sizeof text,
                   "\"tiles_done\":0,\"tiles_total\":0,\"bytes_read\":0,\"bytes_written\":0,"
                   "\"elapsed_ms\":0%s%s",
                   list[0] != '\0' ? ",\"latency\":" : "", list);
    return progress(text);
}

START_TEST(latencies_grow)
{
    begin();
    ck_assert_int_eq(latency("[1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9,5000]"), 0);
    ck_assert_uint_eq(line.numbers.latency.n[1], 2);
    ck_assert_uint_eq(line.numbers.latency.n[16], 9);
    ck_assert_uint_eq(line.numbers.latency.sum_ns, 5000);
    ck_assert_int_eq(latency(""), 0); /* unchanged */
    ck_assert_uint_eq(line.numbers.latency.n[16], 9);
    ck_assert_int_eq(latency("[1,2]"), -EPROTO);
    ck_assert_int_eq(latency("[1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,8,5000]"), -EPROTO);
    ck_assert_int_eq(latency("[1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,\"9\",5000]"), -EPROTO);
    ck_assert_int_eq(latency("[1,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9,1e19]"), -EPROTO);
    ck_assert_int_eq(latency("[2,2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9,5001]"), 0);
}
END_TEST

START_TEST(turn_of_a_run_that_waits_for_none_is_refused)
{
    static const char turn[] = "{\"event\":\"turn\"," HEAD "\"tiles\":4,\"memory_bytes\":4096}";
    const struct pb_job job = {.id = JOB, .scene = "s", .pipeline = "veg"};
    begin();
    pb_worker_lines_begin(&lines, &job, "/p", NULL, false);
    refused(turn, "not expected");
    begin();
    ck_assert_int_eq(take("{\"event\":\"progress\"," HEAD "\"stage\":\"publish\",\"tiles_done\":1,"
                          "\"tiles_total\":1,\"bytes_read\":1,\"bytes_written\":1,"
                          "\"elapsed_ms\":1}"),
                     0);
    refused(turn, "not expected"); /* it computes no more */
}
END_TEST

static void begin_with_permit(bool permit)
{
    const struct pb_job job = {.id = JOB, .scene = "s", .pipeline = "veg", .epoch = 3};
    begin();
    pb_worker_lines_begin(&lines, &job, "/p", NULL, true);
    lines.permit = permit;
}

START_TEST(test_permit_is_requested_once_for_its_epoch)
{
    static const char permit[] = "{\"event\":\"permit\"," HEAD "\"epoch\":3}";
    begin_with_permit(false);
    refused(permit, "not expected");
    begin_with_permit(true);
    ck_assert_int_eq(take(permit), 0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_PERMIT);
    refused("{\"event\":\"turn\"," HEAD "\"tiles\":4,\"memory_bytes\":4096}", "not expected");
    begin_with_permit(true);
    ck_assert_int_eq(take(permit), 0);
    refused(permit, "not expected"); /* a second one */
    begin_with_permit(true);
    refused("{\"event\":\"permit\"," HEAD "\"epoch\":2}", "epoch");
    begin_with_permit(true);
    refused("{\"event\":\"permit\"," HEAD "\"epoch\":null}", "epoch");
}
END_TEST

#define SUM_A   "\"checksum\":\"blake3:" SIXTEEN SIXTEEN SIXTEEN SIXTEEN "\""
#define SIXTEEN "0123456789abcdef"
#define INPUTS_OF(files)                                                                           \
    "{\"cmd\":\"inputs\",\"manifest\":{\"version\":1,\"roots\":[{\"path\":\"/"                     \
    "work\",\"files\":[" files "]}]}}"

START_TEST(inputs_arrive_as_they_were_sent)
{
    static const char *const text = INPUTS_OF(
        "{\"path\":\"S2A.SAFE/a b.tif\",\"bytes\":1099511627776," SUM_A
        ",\"roles\":[[\"band\",1,0]]},"
        "{\"path\":\"S2A.SAFE/dir/m.xml\",\"bytes\":7," SUM_A ",\"roles\":[[\"metadata\",0,0]]},"
        "{\"path\":\"S2A.SAFE\",\"folder\":true}");
    struct pb_scene_manifest got;
    struct pb_json_value *value = NULL;
    ck_assert_int_eq(pb_json_parse(text, strlen(text), 2000, &value), 0);
    ck_assert(pb_worker_inputs_read(value, &got));
    pb_json_release(value);
    struct pb_json *json = pb_worker_inputs_command(&got);
    ck_assert_str_eq(pb_json_text(json, NULL), text);
    pb_json_destroy(json);
    pb_scene_manifest_fini(&got);
    static const char *const bad[] = {
        "{}",
        INPUTS_OF(""),
        INPUTS_OF("{\"path\":\"S2A.SAFE\",\"folder\":true}"),
        INPUTS_OF("{\"path\":\"a\"," SUM_A ",\"roles\":[[\"image\",0,0]]}"),
        INPUTS_OF("{\"path\":\"a\",\"bytes\":1,\"roles\":[[\"image\",0,0]]}"),
        INPUTS_OF("{\"path\":\"a\",\"bytes\":1," SUM_A "}"),
        INPUTS_OF("{\"path\":\"a\",\"bytes\":1," SUM_A ",\"roles\":[[\"unused\",0,0]]}"),
        INPUTS_OF("{\"path\":\"../a\",\"bytes\":1," SUM_A ",\"roles\":[[\"image\",0,0]]}"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(pb_json_parse(bad[i], strlen(bad[i]), 1000, &value), 0);
        ck_assert_msg(!pb_worker_inputs_read(value, &got), "%s", bad[i]);
        pb_json_release(value);
    }
}
END_TEST

START_TEST(places_are_the_jobs_own)
{
    static const char *const good[] = {"/p/s/veg", "/p/s~31/veg"};
    static const char *const bad[] = {"",
                                      "/",
                                      "/p",
                                      "/p/",
                                      "/etc",
                                      "/p/t",
                                      "/p/s2",
                                      "/p/s/",
                                      "/p/s/..",
                                      "/p/s/other",
                                      "/p/../p/s",
                                      "/p/s/veg/",
                                      "/p/s/veg/x",
                                      "/p/s~",
                                      "/p/s~x",
                                      "/ps/s",
                                      "/p/s~2222222222",
                                      "p/s",
                                      "/p//s"};
    begin();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(pb_worker_is_place(&lines, good[i]), "refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!pb_worker_is_place(&lines, bad[i]), "taken: %s", bad[i]);
    (void)strcpy(lines.scene, "..");
    ck_assert(!pb_worker_is_place(&lines, "/p/.."));
    (void)strcpy(lines.products, "/");
    (void)strcpy(lines.scene, "s");
    ck_assert(pb_worker_is_place(&lines, "/s/veg"));
}
END_TEST

static void refused_product(const char *from, const char *to, const char *word)
{
    char text[2000] = "", *at;
    (void)snprintf(text, sizeof text, "%s", DONE("/p/s/veg", "[" PRODUCT "]", REPORT));
    at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
    refused(text, word);
}

START_TEST(results_are_checked_and_written_anew)
{
    begin();
    refused_product("\"cog\"", "\"exe\"", "unknown type");
    refused_product("/p/s/veg/s.tif", "/etc/passwd", "outside");
    refused_product("/p/s/veg/s.tif", "/p/s/veg/../x", "outside");
    refused_product("/p/s/veg/s.tif", "/p/s/veg/.hidden", "outside");
    refused_product("/p/s/veg/s.tif", "/p/s/veg/a\\nb", "outside");
    refused_product("\"bytes\":7", "\"bytes\":-7", "size");
    refused_product("sha256:01", "sha256:xx", "checksum");
    refused_product("sha256:01", "md5:01", "checksum");
    refused_product("\"checksum\":", "\"check\":", "checksum");
    refused_product("image/tiff", "a\\u001bb", "media type");
    refused_product("\"x\":[", "\"x y\":[", "members");
    refused_product("[1.5", "[[[[[[[[1]]]]]]],1.5", "deep");
    refused_product("\"memory_bytes\":4096,", "", "memory_bytes");
    refused(DONE("/p/s/veg", "[" PRODUCT "],\"epsg\":0", REPORT), "epsg");
    refused(DONE("/p/s/veg", "[" PRODUCT "],\"epsg\":100000", REPORT), "epsg");
    refused(DONE("/p/s/veg", "[" PRODUCT "],\"epsg\":\"EPSG:4326\"", REPORT), "epsg");
    refused(DONE("/p/s/veg", "[]", REPORT), "products");
    refused(DONE("/p/s/veg", "7", REPORT), "products");
    refused(DONE("/etc", "[" PRODUCT "]", REPORT), "not where");
    ck_assert_int_eq(take(DONE("/p/s/veg", "[" PRODUCT "]",
                               "{\"device\":\"a\\u0007b\",\"memory_bytes\":1,\"elapsed_ms\":1}")),
                     0);
    ck_assert_str_eq(line.report, "{\"device\":\"a b\",\"memory_bytes\":1,\"elapsed_ms\":1}");
}
END_TEST

#define SCENES(list)                                                                               \
    "{\"event\":\"failed\"," HEAD                                                                  \
    "\"error\":{\"code\":\"input.scenes\",\"message\":\"two\"}," list "}"

#define ARCHIVE(members)                                                                           \
    "\"manifest\":{\"version\":1,\"roots\":[{\"path\":\"/in\",\"files\":[{\"path\":\"x.zip\","     \
    "\"bytes\":5," members "}]}]}"

START_TEST(scenes_of_an_archive_are_names)
{
    begin();
    ck_assert_int_eq(take(SCENES("\"scenes\":[\"a_L2A\",\"b\"]")), 0);
    ck_assert_int_eq(line.event, PB_WORKER_SAYS_FAILED);
    ck_assert_str_eq(line.report, "{\"scenes\":[\"a_L2A\",\"b\"]}");
    ck_assert_int_eq(take(SCENES("\"scenes\":[\"a\"]," ARCHIVE("\"checksum\":\"sha256:" SUM "\""))),
                     0);
    ck_assert_str_eq(line.report,
                     "{\"scenes\":[\"a\"]," ARCHIVE("\"checksum\":\"sha256:" SUM "\"") "}");
    refused(SCENES("\"scenes\":[\"a\"]," ARCHIVE("\"inode\":7")), "not that of an archive");
    refused(SCENES("\"scenes\":[\"a\"]," ARCHIVE("\"checksum\":\"x\"")), "not that of an archive");
    refused(SCENES("\"scenes\":[\"a\"],\"manifest\":7"), "not that of an archive");
    refused(SCENES("\"scenes\":[]"), "no list of names");
    refused(SCENES("\"x\":1"), "no list of names");
    refused(SCENES("\"scenes\":[\"a\",7]"), "no list of names");
    refused(SCENES("\"scenes\":[\"a/b\"]"), "no list of names");
    refused(SCENES("\"scenes\":[\"..\"]"), "no list of names");
    refused(SCENES("\"scenes\":[\"a\\u0007\"]"), "no list of names");
}
END_TEST

START_TEST(a_flood_is_not_admitted)
{
    int64_t now = 5000;
    begin();
    for (int i = 0; i < PB_WORKER_LINES_BURST; i++)
        ck_assert(pb_worker_lines_admit(&lines, 100, now));
    ck_assert(!pb_worker_lines_admit(&lines, 100, now));
    ck_assert(pb_worker_lines_admit(&lines, 100, now += 1000 / PB_WORKER_LINES_RATE));
    ck_assert(!pb_worker_lines_admit(&lines, 100, now));
    now += INT64_C(1) << 50; /* a long silence earns no more than a full burst */
    int lines_of_1_mib = 0;
    while (pb_worker_lines_admit(&lines, PB_WORKER_LINE_MAX, now))
        lines_of_1_mib++;
    ck_assert_int_eq(lines_of_1_mib, PB_WORKER_LINES_BURST / (PB_WORKER_LINE_MAX / 4096 + 1));
    begin(); /* real rate of a worker: 5 lines a second, for an hour */
    for (int i = 0; i < 5 * 3600; i++)
        ck_assert(pb_worker_lines_admit(&lines, 300, 1 + i * 200));
}
END_TEST

START_TEST(many_short_jobs_are_no_flood)
{
    struct pb_job job = {.id = JOB, .scene = "s", .pipeline = "veg"};
    begin();
    for (int i = 0; i < 5000; i++) { /* 500 jobs a second */
        pb_worker_lines_begin(&lines, &job, "/p", NULL, true);
        for (int said = 0; said < 3; said++)
            ck_assert(pb_worker_lines_admit(&lines, 2000, 1 + i * 2));
    }
    for (int i = 0; i < PB_WORKER_LINES_BURST; i++) /* jobs earn no more than a full burst */
        pb_worker_lines_begin(&lines, &job, "/p", NULL, true);
    int admitted = 0;
    while (pb_worker_lines_admit(&lines, 100, 10000))
        admitted++;
    ck_assert_int_eq(admitted, PB_WORKER_LINES_BURST);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_lines");
    TCase *all = tcase_create("all");
    tcase_add_test(all, events_become_typed);
    tcase_add_test(all, test_bounds_are_degrees);
    tcase_add_test(all, what_no_worker_says_is_refused);
    tcase_add_test(all, numbers_are_in_range_and_never_fall);
    tcase_add_test(all, questions_are_for_the_worker_alone);
    tcase_add_test(all, run_asks_once_for_its_turn);
    tcase_add_test(all, turn_of_a_run_that_waits_for_none_is_refused);
    tcase_add_test(all, alerts_are_checked_and_counted);
    tcase_add_test(all, latencies_grow);
    tcase_add_test(all, test_permit_is_requested_once_for_its_epoch);
    tcase_add_test(all, inputs_arrive_as_they_were_sent);
    tcase_add_test(all, places_are_the_jobs_own);
    tcase_add_test(all, results_are_checked_and_written_anew);
    tcase_add_test(all, scenes_of_an_archive_are_names);
    tcase_add_test(all, a_flood_is_not_admitted);
    tcase_add_test(all, many_short_jobs_are_no_flood);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
