/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The library of writers against a service that this test plays on a socket: the words of the
 * handshake are part of its contract. */
#include "service/stream/writer.h"

#include "run_suite.h"
#include "wic/wic.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 4u

static const struct pb_stream_format format = {
    .type = PB_STREAM_UINT16, .bands = 2, .samples = 5, .group_lines = 3};

static char directory[64], path[96];

static void set_up(void)
{
    (void)strcpy(directory, "/tmp/pb-stream-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/s", directory);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)rmdir(directory);
}

/* A service for one writer. */
struct service {
    int listener, connection;
    const char *answer; /* NULL: gives a channel */
    bool ends;          /* closes the connection after the answer */
    char request[4096];
    struct pb_stream_room room;
};

static void send_room(struct service *service)
{
    const size_t bytes = pb_stream_room_bytes(SLOTS, pb_stream_slot_bytes(&format));
    const int fd = memfd_create("test", MFD_CLOEXEC);
    char text[100];
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    ck_assert_int_eq(pb_stream_room_open(fd, SLOTS, pb_stream_slot_bytes(&format), true, NULL, NULL,
                                         &service->room),
                     0);
    const int n = snprintf(text, sizeof text, "{\"slots\": %u, \"slot_bytes\": %zu}\n", SLOTS,
                           pb_stream_slot_bytes(&format));
    union {
        char bytes[CMSG_SPACE(sizeof fd)];
        struct cmsghdr header;
    } control = {.bytes = {0}};
    struct iovec part = {text, (size_t)n};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof fd)};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof fd);
    (void)memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    ck_assert_int_eq(sendmsg(service->connection, &message, 0), n);
    (void)close(fd);
}

static void *serve(void *user)
{
    struct service *service = user;
    size_t n = 0;
    service->connection = accept(service->listener, NULL, NULL);
    while (n == 0 || service->request[n - 1] != '\n') {
        const ssize_t got =
            recv(service->connection, service->request + n, sizeof service->request - 1 - n, 0);
        ck_assert_int_gt(got, 0);
        n += (size_t)got;
    }
    if (service->answer == NULL)
        send_room(service);
    else
        (void)send(service->connection, service->answer, strlen(service->answer), MSG_NOSIGNAL);
    if (service->ends)
        (void)close(service->connection);
    return NULL;
}

static int open_writer(struct service *service, const struct pb_stream_options *options,
                       char *error, struct pb_stream_writer **out)
{
    pthread_t thread;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)strcpy(address.sun_path, path);
    service->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(service->listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(service->listener, 1), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, service), 0);
    const int rc = pb_stream_open(options, error, out);
    (void)pthread_join(thread, NULL);
    (void)close(service->listener);
    return rc;
}

static struct pb_stream_options options_of(void)
{
    return (struct pb_stream_options){.socket = path, .stream = "swir", .format = format};
}

START_TEST(slots_hold_header_times_and_pixels)
{
    ck_assert_uint_eq(pb_stream_line_bytes(&format), 2 * 5 * 2);
    ck_assert_uint_eq(sizeof(struct pb_stream_group), 64);
    ck_assert_uint_eq(pb_stream_times_offset(), 64);
    ck_assert_uint_eq(pb_stream_pixels_offset(&format), 128);
    ck_assert_uint_eq(pb_stream_slot_bytes(&format), 128 + 3 * 20);
    for (int t = 0; t < PB_STREAM_TYPES; t++)
        ck_assert_ptr_nonnull(pb_stream_type_word((enum pb_stream_type)t));
    ck_assert_ptr_null(pb_stream_type_word(PB_STREAM_TYPES));
}
END_TEST

START_TEST(formats_beyond_the_limits_have_no_slots)
{
    const struct pb_stream_format wrong[] = {
        {PB_STREAM_TYPES, 1, 1, 1},
        {PB_STREAM_UINT8, 0, 1, 1},
        {PB_STREAM_UINT8, PB_STREAM_BANDS_MAX + 1, 1, 1},
        {PB_STREAM_UINT8, 1, 0, 1},
        {PB_STREAM_UINT8, 1, PB_STREAM_SAMPLES_MAX + 1, 1},
        {PB_STREAM_UINT8, 1, 1, 0},
        {PB_STREAM_UINT8, 1, 1, PB_STREAM_GROUP_LINES_MAX + 1},
        {PB_STREAM_FLOAT64, PB_STREAM_BANDS_MAX, PB_STREAM_SAMPLES_MAX, 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_uint_eq(pb_stream_slot_bytes(&wrong[i]), 0);
}
END_TEST

START_TEST(groups_arrive_with_lines_times_and_pixels)
{
    struct service service = {.listener = -1};
    struct pb_stream_options options = options_of();
    struct pb_stream_writer *writer = NULL;
    char error[PB_STREAM_ERROR_BYTES] = "";
    const int64_t times[2] = {1000, PB_STREAM_NO_TIME};
    uint16_t pixels[20];
    struct wic_slot slot;
    options.epsg = 32633;
    options.token = "a\"b\\c\n";
    options.has_transform = true;
    options.transform[1] = 0.5;
    for (size_t i = 0; i < 20; i++)
        pixels[i] = (uint16_t)(i * 7);
    ck_assert_msg(open_writer(&service, &options, error, &writer) == 0, "%s", error);
    ck_assert_str_eq(service.request,
                     "{\"version\": 1, \"stream\": \"swir\", \"type\": \"uint16\", \"bands\": 2, "
                     "\"samples\": 5, \"group_lines\": 3, \"transform\": [0, 0.5, 0, 0, 0, 0], "
                     "\"epsg\": 32633, \"token\": \"a\\\"b\\\\c\\u000a\"}\n");
    ck_assert_int_eq(pb_stream_copy(writer, 0, 77, 2, pixels, times), 0);
    ck_assert_int_eq(wic_wait(service.room.channel, 0, &slot), 0);
    const struct pb_stream_group *group = slot.data;
    ck_assert_uint_eq(group->line, 77);
    ck_assert_uint_eq(group->lines, 2);
    ck_assert_uint_eq(group->has_times, 1);
    ck_assert_mem_eq((char *)slot.data + pb_stream_times_offset(), times, sizeof times);
    ck_assert_mem_eq((char *)slot.data + pb_stream_pixels_offset(&format), pixels, sizeof pixels);
    ck_assert_int_eq(wic_release(service.room.channel, &slot), 0);
    ck_assert_int_eq(send(service.connection, "{}\n", 3, 0), 3);
    ck_assert_int_eq(pb_stream_close(writer, 1000), 0);
    ck_assert_int_eq(wic_wait(service.room.channel, 0, &slot), -EPIPE);
    pb_stream_room_close(&service.room);
    (void)close(service.connection);
}
END_TEST

START_TEST(full_channel_times_out_and_lost_service_ends)
{
    struct service service = {.listener = -1};
    const struct pb_stream_options options = options_of();
    struct pb_stream_writer *writer = NULL;
    char error[PB_STREAM_ERROR_BYTES] = "";
    void *pixels, *again;
    ck_assert_msg(open_writer(&service, &options, error, &writer) == 0, "%s", error);
    for (uint32_t i = 0; i < SLOTS; i++) {
        ck_assert_int_eq(pb_stream_acquire(writer, 0, &pixels), 0);
        ck_assert_int_eq(pb_stream_acquire(writer, 0, &again), 0);
        ck_assert_ptr_eq(again, pixels);
        ck_assert_int_eq(pb_stream_publish(writer, i, 4, NULL), -EINVAL);
        ck_assert_int_eq(pb_stream_publish(writer, i, 1, NULL), 0);
        ck_assert_int_eq(pb_stream_publish(writer, i, 1, NULL), -EINVAL);
    }
    ck_assert_int_eq(pb_stream_acquire(writer, 0, &pixels), -ETIMEDOUT);
    ck_assert_int_eq(pb_stream_acquire(writer, 250, &pixels), -ETIMEDOUT);
    (void)close(service.connection);
    ck_assert_int_eq(pb_stream_acquire(writer, -1, &pixels), -ECONNRESET);
    ck_assert_int_eq(pb_stream_close(writer, 1000), -ECONNRESET);
    pb_stream_room_close(&service.room);
}
END_TEST

static void ignore(int number)
{
    (void)number;
}

START_TEST(signals_do_not_shorten_a_wait)
{
    struct service service = {.listener = -1};
    const struct pb_stream_options options = options_of();
    struct pb_stream_writer *writer = NULL;
    char error[PB_STREAM_ERROR_BYTES] = "";
    void *pixels;
    struct timespec begin, end;
    const struct sigaction handler = {.sa_handler = ignore};
    const struct itimerval often = {.it_interval.tv_usec = 20000, .it_value.tv_usec = 20000},
                           never = {.it_value.tv_usec = 0};
    ck_assert_msg(open_writer(&service, &options, error, &writer) == 0, "%s", error);
    ck_assert_int_eq(pb_stream_acquire(writer, INT64_MAX, &pixels), 0);
    ck_assert_int_eq(sigaction(SIGALRM, &handler, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    ck_assert_int_eq(pb_stream_close(writer, 400), -ETIMEDOUT);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    ck_assert_int_ge((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000,
                     399);
    pb_stream_room_close(&service.room);
    (void)close(service.connection);
}
END_TEST

START_TEST(refusals_become_codes_and_texts)
{
    static const struct {
        const char *answer;
        int rc;
        const char *text;
    } cases[] = {
        {"{\"error\": \"busy\", \"message\": \"it has a \\\"writer\\\"\"}\n", -EBUSY,
         "it has a \"writer\""},
        {"{\"error\":\"denied\",\"message\":\"no\"}\n", -EACCES, "no"},
        {"{\"error\": \"unknown\", \"message\": \"no\"}\n", -ENOENT, "no"},
        {"{\"error\": \"invalid\", \"message\": \"no\"}\n", -EINVAL, "no"},
        {"{\"error\": \"unavailable\", \"message\": \"no\"}\n", -EAGAIN, "no"},
        {"{\"slots\": 4, \"slot_bytes\": 188}\n", -EPROTO, "makes no sense"}, /* no descriptor */
        {"{\"slots\": 4}\n", -EPROTO, "makes no sense"},
        {"garbage\n", -EPROTO, "makes no sense"},
        {"", -ECONNRESET, "does not answer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service service = {.answer = cases[i].answer, .ends = true};
        const struct pb_stream_options options = options_of();
        struct pb_stream_writer *writer = NULL;
        char error[PB_STREAM_ERROR_BYTES] = "";
        ck_assert_int_eq(open_writer(&service, &options, error, &writer), cases[i].rc);
        ck_assert_msg(strstr(error, cases[i].text) != NULL, "%s", error);
        ck_assert_ptr_null(writer);
        (void)unlink(path);
    }
}
END_TEST

START_TEST(absent_service_is_an_error)
{
    const struct pb_stream_options options = options_of();
    struct pb_stream_writer *writer = NULL;
    char error[PB_STREAM_ERROR_BYTES] = "";
    ck_assert_int_eq(pb_stream_open(&options, error, &writer), -ENOENT);
    ck_assert_msg(strstr(error, path) != NULL, "%s", error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream_writer");
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, slots_hold_header_times_and_pixels);
    tcase_add_test(tests, formats_beyond_the_limits_have_no_slots);
    tcase_add_test(tests, groups_arrive_with_lines_times_and_pixels);
    tcase_add_test(tests, full_channel_times_out_and_lost_service_ends);
    tcase_add_test(tests, signals_do_not_shorten_a_wait);
    tcase_add_test(tests, refusals_become_codes_and_texts);
    tcase_add_test(tests, absent_service_is_an_error);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
