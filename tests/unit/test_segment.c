/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads arm64
 *
 * Segments of lines: growing while other processes and threads read, closed as files that GDAL
 * reads, continued after their writer died. */
#include "pipeline/lines/segment.h"

#include "config/limits_config.h"
#include "pipeline/raster/raster.h"
#include "run_suite.h"
#include "wic/futex.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 333, BANDS = 3, HEIGHT = 210, GROUP_MOST = 40 };

static const struct pb_limits limits = {
    .max_pixels = UINT64_C(1) << 30,
    .max_block_bytes = UINT64_C(256) << 20,
    .max_side_px = 1000000,
    .max_bands = 64,
    .max_directories = 64,
};
static const struct pb_segment_spec usual = {
    .width = WIDTH,
    .height = HEIGHT,
    .n_bands = BANDS,
    .type = PB_U16,
    .has_nodata = true,
    .nodata = 7,
    .has_transform = true,
    .transform = {500000, 10, 0, 4600000, 0, -10},
    .epsg = 32633,
};

static char folder[64], path[96];

static void enter(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/pb_segment.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.tif", folder);
}

static void leave(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static uint16_t value(int32_t line, int32_t band, int32_t x)
{
    return (uint16_t)(1000 + line * 131 + band * 7919 + x * 3);
}

static struct pb_segment *make(const struct pb_segment_spec *spec)
{
    struct pb_err err = {0};
    struct pb_segment *s = NULL;
    ck_assert_msg(pb_segment_create(path, spec, &err, &s) == 0, "%s", err.msg);
    return s;
}

static struct pb_segment *reader(void)
{
    struct pb_err err = {0};
    struct pb_segment *s = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(pb_segment_open(fd, path, &err, &s) == 0, "%s", err.msg);
    (void)close(fd);
    return s;
}

/* Appends n lines of the pattern, all bands of a line together. */
static int append(struct pb_segment *s, uint32_t n)
{
    static uint16_t data[GROUP_MOST][BANDS][WIDTH];
    int64_t acquired[GROUP_MOST];
    const int32_t first = pb_segment_lines(s);
    for (int32_t i = 0; i < (int32_t)n; i++) {
        acquired[i] = 1000 + first + i;
        for (int32_t b = 0; b < BANDS; b++)
            for (int32_t x = 0; x < WIDTH; x++)
                data[i][b][x] = value(first + i, b, x);
    }
    const struct pb_segment_group group = {data, sizeof data[0], sizeof data[0][0], n, acquired, 0};
    return pb_segment_append(s, &group, NULL);
}

static void check_lines(const struct pb_segment *s, int32_t from, int32_t n)
{
    uint16_t row[WIDTH - 5];
    for (int32_t y = from; y < from + n; y++)
        for (int32_t b = 0; b < BANDS; b++) {
            const struct pb_rect rect = {5, y, WIDTH - 5, 1};
            pb_segment_copy(s, b + 1, &rect, row, sizeof row);
            for (int32_t x = 0; x < rect.w; x++)
                ck_assert_uint_eq(row[x], value(y, b, x + 5));
        }
}

/* Reads the closed file as any other scene. Lines of the list of gaps have the nodata value. */
static void check_file(int32_t height, int32_t gap_from, int32_t gap_n)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    pb_raster_init();
    ck_assert_msg(pb_raster_open(path, &limits, &err, &raster) == 0, "%s", err.msg);
    const struct pb_raster_info *const info = pb_raster_info(raster);
    ck_assert_int_eq(info->width, WIDTH);
    ck_assert_int_eq(info->height, height);
    ck_assert_int_eq(info->n_bands, BANDS);
    ck_assert_int_eq(info->type, PB_U16);
    ck_assert(info->has_transform && info->transform[0] == 500000 && info->transform[5] == -10);
    ck_assert_str_eq(info->crs_code, "EPSG:32633");
    ck_assert(info->band[2].has_nodata && info->band[2].nodata == 7);
    uint16_t *const plane = malloc(sizeof *plane * WIDTH * (size_t)height);
    for (int32_t b = 0; b < BANDS; b++) {
        const int32_t number = b + 1;
        const struct pb_window to = {
            .rect = {0, 0, WIDTH, height},
            .data = plane,
            .row_bytes = WIDTH * sizeof *plane,
            .plane_bytes = sizeof *plane * WIDTH * (size_t)height,
        };
        ck_assert_msg(pb_raster_read(raster, &number, 1, &to, &err) == 0, "%s", err.msg);
        for (int32_t y = 0; y < height; y++)
            for (int32_t x = 0; x < WIDTH; x++)
                ck_assert_uint_eq(plane[y * WIDTH + x],
                                  y >= gap_from && y < gap_from + gap_n ? 7 : value(y, b, x));
    }
    free(plane);
    pb_raster_close(raster);
}

START_TEST(test_full_segment_is_a_file)
{
    struct pb_err err = {0};
    enter();
    struct pb_segment *const s = make(&usual);
    while (append(s, 16) > 0) {
    }
    ck_assert_int_eq(pb_segment_lines(s), HEIGHT);
    ck_assert_uint_eq(append(s, 1), 0);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    ck_assert_int_eq(pb_segment_sync(s, &err), 0);
    pb_segment_destroy(s);
    check_file(HEIGHT, 0, 0);
    leave();
}
END_TEST

START_TEST(test_short_segment_has_its_height)
{
    static const int32_t heights[] = {1, 15, 16, 17, 32, 100, HEIGHT - 1};
    const int32_t height = heights[_i];
    struct pb_err err = {0};
    enter();
    struct pb_segment *const s = make(&usual);
    for (int32_t n = 0; n < height; n++)
        ck_assert_uint_eq(append(s, 1), 1);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    ck_assert_int_eq(pb_segment_state(s), PB_SEGMENT_CLOSED);
    ck_assert_uint_eq(append(s, 1), 0);
    pb_segment_destroy(s);
    check_file(height, 0, 0);
    struct pb_segment *const closed = reader();
    ck_assert_int_eq(pb_segment_lines(closed), height);
    ck_assert_int_eq(pb_segment_line(closed, height - 1).acquired_ns, 1000 + height - 1);
    ck_assert_int_eq(pb_segment_wait(closed, height, PB_SEGMENT_NO_DEADLINE), 0);
    ck_assert_int_eq(pb_segment_wait(closed, height + 1, PB_SEGMENT_NO_DEADLINE), -ENODATA);
    check_lines(closed, 0, height);
    pb_segment_destroy(closed);
    leave();
}
END_TEST

START_TEST(test_growing_segment_is_no_tiff_yet)
{
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    char head[8];
    enter();
    struct pb_segment *const s = make(&usual);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    append(s, 20);
    ck_assert_int_eq(pb_segment_is_growing(fd), 1);
    ck_assert_int_eq(pread(fd, head, sizeof head, 0), sizeof head);
    ck_assert_mem_eq(head, PB_SEGMENT_MAGIC, sizeof head);
    pb_raster_init();
    ck_assert_msg(pb_raster_open(path, &limits, &err, &raster) == 0, "%s", err.msg);
    ck_assert(pb_raster_info(raster)->is_growing && pb_raster_is_growing(raster));
    ck_assert_int_eq(pb_raster_info(raster)->height, HEIGHT);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    ck_assert_int_eq(pb_segment_is_growing(fd), 0);
    ck_assert(!pb_raster_is_growing(raster));
    pb_raster_close(raster);
    (void)close(fd);
    pb_segment_destroy(s);
    leave();
}
END_TEST

START_TEST(test_gap_has_the_nodata_value)
{
    struct pb_err err = {0};
    struct pb_segment_spec spec = usual;
    enter();
    struct pb_segment *s = make(&usual);
    append(s, 30);
    ck_assert_int_eq(pb_segment_gap(s, 10, NULL), 10);
    ck_assert_uint_eq(pb_segment_line(s, 35).is_gap, 1);
    ck_assert_uint_eq(pb_segment_line(s, 29).is_gap, 0);
    append(s, 5);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    pb_segment_destroy(s);
    check_file(45, 30, 10);
    (void)unlink(path);
    spec.has_nodata = false;
    s = make(&spec);
    ck_assert_int_lt(pb_segment_gap(s, 1, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_LIMIT);
    err.code = PB_OK;
    ck_assert_int_eq(pb_segment_close(s, &err), -ENODATA);
    pb_segment_destroy(s);
    leave();
}
END_TEST

START_TEST(test_other_types_and_bands_are_read)
{
    static const enum pb_type types[] = {PB_U8, PB_I16, PB_I32, PB_U32, PB_F32, PB_F64};
    struct pb_segment_spec spec = usual;
    struct pb_err err = {0};
    struct pb_raster *raster = NULL;
    unsigned char line[WIDTH * 8], back[WIDTH * 8];
    const int32_t first = 1;
    spec.type = types[_i];
    spec.n_bands = 1;
    spec.epsg = _i % 2 == 0 ? 4326 : 0;
    spec.is_geographic = spec.epsg != 0;
    spec.transform[0] = 12;
    spec.transform[3] = 45;
    enter();
    struct pb_segment *const s = make(&spec);
    for (size_t i = 0; i < sizeof line; i++)
        line[i] = (unsigned char)(i * 37 % 61);
    const struct pb_segment_group group = {line, sizeof line, 0, 1, NULL, 5};
    ck_assert_int_eq(pb_segment_append(s, &group, NULL), 1);
    ck_assert_int_eq(pb_segment_line(s, 0).published_ns, 5);
    ck_assert_int_eq(pb_segment_append(s, &group, NULL), 1);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    pb_segment_destroy(s);
    pb_raster_init();
    ck_assert_msg(pb_raster_open(path, &limits, &err, &raster) == 0, "%s", err.msg);
    ck_assert_int_eq(pb_raster_info(raster)->type, spec.type);
    const size_t bytes = WIDTH * pb_type_bytes(spec.type);
    const struct pb_window to = {
        .rect = {0, 1, WIDTH, 1}, .data = back, .row_bytes = bytes, .plane_bytes = bytes};
    ck_assert_msg(pb_raster_read(raster, &first, 1, &to, &err) == 0, "%s", err.msg);
    ck_assert_mem_eq(back, line, bytes);
    pb_raster_close(raster);
    leave();
}
END_TEST

START_TEST(test_bad_sizes_are_refused)
{
    struct pb_segment_spec spec[6];
    struct pb_segment *s = NULL;
    enter();
    for (size_t i = 0; i < 6; i++)
        spec[i] = usual;
    spec[0].width = 0;
    spec[1].height = PB_SEGMENT_LINES_MAX + 1;
    spec[2].n_bands = PB_BANDS_MAX + 1;
    spec[3].nodata = 70000;
    spec[4].transform[2] = 1.0 / 0.0;
    spec[5].width = INT32_MAX;
    for (size_t i = 0; i < 6; i++) {
        struct pb_err err = {0};
        ck_assert_int_lt(pb_segment_create(path, &spec[i], &err, &s), 0);
        ck_assert_int_eq(err.code, PB_E_INPUT_LIMIT);
    }
    struct pb_err err = {0};
    s = make(&usual);
    struct pb_segment *second = NULL;
    ck_assert_int_eq(pb_segment_create(path, &usual, &err, &second), -EEXIST);
    ck_assert_int_eq(access(path, F_OK), 0);
    pb_segment_destroy(s);
    /* A file that is cut below its declared size is refused. */
    ck_assert_int_eq(truncate(path, 8192), 0);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    err.code = PB_OK;
    ck_assert_int_eq(pb_segment_open(fd, path, &err, &second), -EINVAL);
    (void)close(fd);
    leave();
}
END_TEST

static int open_to_read(struct pb_segment **out)
{
    struct pb_err err = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int rc = pb_segment_open(fd, path, &err, out);
    (void)close(fd);
    return rc;
}

START_TEST(test_file_without_its_last_lines_is_refused)
{
    struct stat stat_of;
    struct pb_segment *s = NULL;
    enter();
    struct pb_segment *const w = make(&usual);
    ck_assert_uint_eq(append(w, 5), 5);
    pb_segment_destroy(w);
    ck_assert_int_eq(stat(path, &stat_of), 0);
    const off_t line = WIDTH * sizeof(uint16_t), rows = PB_SEGMENT_ROWS;
    const off_t data = stat_of.st_size - (HEIGHT + rows - 1) / rows * rows * BANDS * line;
    const off_t end = data + ((BANDS - 1) * rows + 5) * line;
    ck_assert_int_eq(truncate(path, end), 0);
    ck_assert_int_eq(open_to_read(&s), 0);
    check_lines(s, 0, 5);
    pb_segment_destroy(s);
    ck_assert_int_eq(truncate(path, end - 1), 0);
    ck_assert_int_eq(open_to_read(&s), -EINVAL);
    leave();
}
END_TEST

/* --- two processes, several threads --- */

/* Writes all lines in groups of random size, with `from` there already. */
static void write_all(struct pb_segment *s, unsigned seed, int32_t most)
{
    while (pb_segment_lines(s) < most) {
        const int32_t left = most - pb_segment_lines(s);
        const int32_t n = 1 + rand_r(&seed) % GROUP_MOST;
        append(s, (uint32_t)(n < left ? n : left));
        if (rand_r(&seed) % 4 == 0)
            (void)usleep((useconds_t)(rand_r(&seed) % 3000));
    }
}

START_TEST(test_other_process_reads_while_it_grows)
{
    struct pb_err err = {0};
    enter();
    struct pb_segment *const s = make(&usual);
    const pid_t child = fork();
    if (child == 0) {
        struct pb_segment *const r = reader();
        int32_t seen = 0;
        while (seen < HEIGHT && pb_segment_wait(r, seen + 1, PB_SEGMENT_NO_DEADLINE) == 0) {
            const int32_t lines = pb_segment_lines(r);
            check_lines(r, seen, lines - seen);
            seen = lines;
        }
        pb_segment_destroy(r);
        _exit(seen == HEIGHT ? 0 : 1);
    }
    write_all(s, (unsigned)_i + 1, HEIGHT);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pb_segment_destroy(s);
    leave();
}
END_TEST

START_TEST(test_dead_writer_is_continued)
{
    struct pb_err err = {0};
    struct pb_segment *s = NULL;
    int pipes[2];
    char byte;
    enter();
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct pb_segment *const w = make(&usual);
        append(w, 33);
        (void)!write(pipes[1], "x", 1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    ck_assert_int_eq(pb_segment_recover(path, &err, &s), -EBUSY);
    struct pb_segment *const r = reader();
    ck_assert_int_eq(pb_segment_wait(r, 34, wic_now_ns() + 1000000), -ETIMEDOUT);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    err.code = PB_OK;
    ck_assert_msg(pb_segment_recover(path, &err, &s) == 0, "%s", err.msg);
    ck_assert_int_eq(pb_segment_lines(s), 33);
    ck_assert_int_eq(pb_segment_gap(s, 7, NULL), 7);
    append(s, 10);
    ck_assert_int_eq(pb_segment_wait(r, 50, PB_SEGMENT_NO_DEADLINE), 0);
    check_lines(r, 0, 33);
    check_lines(r, 40, 10);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    pb_segment_destroy(s);
    check_file(50, 33, 7);
    ck_assert_int_eq(pb_segment_recover(path, &err, &s), -EALREADY);
    pb_segment_destroy(r);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    leave();
}
END_TEST

static void *write_thread(void *s)
{
    write_all(s, 3, HEIGHT - 1);
    return NULL;
}

static void *read_thread(void *user)
{
    struct pb_segment *const s = user;
    int32_t seen = 0;
    while (seen < HEIGHT - 1 && pb_segment_wait(s, seen + 1, PB_SEGMENT_NO_DEADLINE) == 0) {
        check_lines(s, seen, 1);
        ck_assert_int_eq(pb_segment_line(s, seen).acquired_ns, 1000 + seen);
        seen++;
    }
    ck_assert_int_eq(seen, HEIGHT - 1);
    ck_assert_int_eq(pb_segment_wait(s, HEIGHT, PB_SEGMENT_NO_DEADLINE), -ECANCELED);
    return NULL;
}

START_TEST(test_threads_read_and_an_abort_ends_waits)
{
    enum { READERS = 3 };
    pthread_t writer, readers[READERS];
    enter();
    struct pb_segment *const s = make(&usual);
    pb_segment_spin(s, _i == 0 ? 0 : 20000);
    for (size_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_thread, s), 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, write_thread, s), 0);
    ck_assert_int_eq(pthread_join(writer, NULL), 0);
    pb_segment_abort(s);
    for (size_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_join(readers[i], NULL), 0);
    pb_segment_destroy(s);
    leave();
}
END_TEST

static void *end_thread(void *user)
{
    struct pb_err err = {0};
    (void)usleep(2000);
    ck_assert_int_eq(pb_segment_close(user, &err), 0);
    return NULL;
}

START_TEST(test_early_end_wakes_a_reader)
{
    pthread_t thread;
    enter();
    struct pb_segment *const s = make(&usual);
    append(s, 20);
    struct pb_segment *const r = reader();
    if (_i == 0) {
        ck_assert_int_eq(pthread_create(&thread, NULL, end_thread, s), 0);
        ck_assert_int_eq(pb_segment_wait(r, 21, PB_SEGMENT_NO_DEADLINE), -ENODATA);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        pb_segment_destroy(s);
    } else {
        pb_segment_destroy(s);
        ck_assert_int_eq(pb_segment_wait(r, 21, PB_SEGMENT_NO_DEADLINE), -ENODATA);
        ck_assert_int_eq(pb_segment_state(r), PB_SEGMENT_ABANDONED);
    }
    ck_assert_int_eq(pb_segment_wait(r, 20, PB_SEGMENT_NO_DEADLINE), 0);
    pb_segment_destroy(r);
    leave();
}
END_TEST

/* Lets writes of this process fail at that offset of a file and beyond. */
static void limit_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Loop: the write of a line, of a gap, of the end. */
START_TEST(test_failed_write_completes_no_line)
{
    struct pb_err err = {0};
    struct stat all;
    enter();
    struct pb_segment *const s = make(&usual);
    ck_assert_int_eq(stat(path, &all), 0);
    append(s, 20);
    limit_files(_i == 2 ? 100 : (rlim_t)all.st_size / 4);
    if (_i == 0)
        ck_assert_int_lt(append(s, 40), 0);
    else if (_i == 1)
        ck_assert_int_lt(pb_segment_gap(s, 40, &err), 0);
    else
        ck_assert_int_lt(pb_segment_close(s, &err), 0);
    ck_assert_int_eq(err.code, _i == 0 ? PB_OK : PB_E_OUTPUT_WRITE);
    ck_assert_int_eq(pb_segment_lines(s), 20);
    ck_assert_int_eq(pb_segment_state(s), PB_SEGMENT_OPEN);
    limit_files(RLIM_INFINITY);
    ck_assert_int_eq(append(s, 3), 3);
    err.code = PB_OK;
    ck_assert_msg(pb_segment_close(s, &err) == 0, "%s", err.msg);
    pb_segment_destroy(s);
    check_file(23, 0, 0);
    leave();
}
END_TEST

/* A store to a mapping of the lines would end the process. */
START_TEST(test_file_that_is_cut_ends_no_writer)
{
    struct pb_err err = {0};
    enter();
    struct pb_segment *const s = make(&usual);
    append(s, 16);
    ck_assert_int_eq(truncate(path, 8192), 0);
    ck_assert_int_eq(append(s, 16), 16);
    ck_assert_int_eq(pb_segment_gap(s, 1, &err), 1);
    ck_assert_int_eq(pb_segment_close(s, &err), 0);
    pb_segment_destroy(s);
    leave();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("segment");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_full_segment_is_a_file);
    tcase_add_loop_test(tc, test_short_segment_has_its_height, 0, 7);
    tcase_add_test(tc, test_growing_segment_is_no_tiff_yet);
    tcase_add_test(tc, test_gap_has_the_nodata_value);
    tcase_add_loop_test(tc, test_failed_write_completes_no_line, 0, 3);
    tcase_add_test(tc, test_file_that_is_cut_ends_no_writer);
    tcase_add_loop_test(tc, test_other_types_and_bands_are_read, 0, 6);
    tcase_add_test(tc, test_bad_sizes_are_refused);
    tcase_add_test(tc, test_file_without_its_last_lines_is_refused);
    tcase_add_loop_test(tc, test_other_process_reads_while_it_grows, 0, 4);
    tcase_add_test(tc, test_dead_writer_is_continued);
    tcase_add_loop_test(tc, test_threads_read_and_an_abort_ends_waits, 0, 2);
    tcase_add_loop_test(tc, test_early_end_wakes_a_reader, 0, 2);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
