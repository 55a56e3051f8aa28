/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/product/quicklook/png.h"

#include "pipeline/io/file_out.h"
#include "tests/unit/product_fixture.h"
#include "tests/unit/run_suite.h"

#include <png.h>
#include <signal.h>
#include <sys/resource.h>

struct picture {
    uint32_t w, h;
    int channels;
};

static uint8_t pixel(const struct picture *p, uint32_t x, uint32_t y, int c)
{
    return (uint8_t)(x * 7 + y * 13 + (uint32_t)c * 50 + (x * y) % 31 + p->w);
}

static void row(void *user, uint32_t y, uint8_t *out)
{
    const struct picture *p = user;
    for (uint32_t x = 0; x < p->w; x++)
        for (int c = 0; c < p->channels; c++)
            *out++ = pixel(p, x, y, c);
}

static int write_picture(const struct picture *p, const struct pb_png_text *texts, size_t n_texts,
                         const char *path, struct pb_err *err)
{
    struct pb_png_options options = {.width = p->w,
                                     .height = p->h,
                                     .channels = p->channels,
                                     .texts = texts,
                                     .n_texts = n_texts,
                                     .row = row,
                                     .user = (void *)(uintptr_t)p};
    struct pb_file_out *out = NULL;
    char sha256[PB_CHECKSUM_TEXT_BYTES];
    ck_assert_int_eq(pb_file_out_create(path, PB_CHECKSUM_SHA2_256, err, &out), 0);
    int rc = pb_png_write(out, &options, err);
    if (rc == 0)
        rc = pb_file_out_finish(out, err, sha256);
    pb_file_out_destroy(out);
    return rc;
}

static const char *picture_path(void)
{
    static char path[100];
    (void)snprintf(path, sizeof path, "%s/picture.png", scratch());
    return path;
}

START_TEST(pixels_come_back)
{
    /* A row of 4095 grey pixels takes an eighth of a part of the stream. */
    const struct picture pictures[] = {{1, 1, 2},     {1, 1, 4},    {301, 17, 4},
                                       {64, 200, 2},  {999, 3, 4},  {1500, 900, 4},
                                       {16384, 9, 4}, {4095, 8, 2}, {4095, 16, 2}};
    struct pb_err err = {0};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        const struct picture *p = &pictures[i];
        ck_assert_int_eq(write_picture(p, NULL, 0, picture_path(), &err), 0);
        png_image image = {.version = PNG_IMAGE_VERSION};
        ck_assert(png_image_begin_read_from_file(&image, picture_path()));
        ck_assert_uint_eq(image.width, p->w);
        ck_assert_uint_eq(image.height, p->h);
        image.format = p->channels == 2 ? PNG_FORMAT_GA : PNG_FORMAT_RGBA;
        uint8_t *data = malloc(PNG_IMAGE_SIZE(image));
        ck_assert(png_image_finish_read(&image, NULL, data, 0, NULL));
        const size_t row_bytes = (size_t)p->w * (size_t)p->channels;
        uint8_t *want = malloc(row_bytes);
        for (uint32_t y = 0; y < p->h; y++) {
            row((void *)(uintptr_t)p, y, want);
            ck_assert_mem_eq(data + y * row_bytes, want, row_bytes);
        }
        free(want);
        free(data);
    }
    unlink(picture_path());
}
END_TEST

START_TEST(same_pixels_give_the_same_bytes_without_a_time)
{
    const struct picture p = {200, 100, 4};
    struct pb_err err = {0};
    size_t n, m;
    ck_assert_int_eq(write_picture(&p, NULL, 0, picture_path(), &err), 0);
    char *one = file_read(picture_path(), &n);
    sleep(1);
    ck_assert_int_eq(write_picture(&p, NULL, 0, picture_path(), &err), 0);
    char *two = file_read(picture_path(), &m);
    ck_assert(n == m && memcmp(one, two, n) == 0);
    ck_assert_ptr_null(memmem(one, n, "tIME", 4));
    free(one);
    free(two);
    unlink(picture_path());
}
END_TEST

START_TEST(texts_are_kept_in_chunks_that_fit_them)
{
    const struct picture p = {4, 4, 2};
    const struct pb_png_text texts[] = {{"pushbroom.stretch", "B1 0 .. 1"},
                                        {"Title", "\xc3\x84rger"}};
    struct pb_err err = {0};
    size_t n;
    ck_assert_int_eq(write_picture(&p, texts, 2, picture_path(), &err), 0);
    char *bytes = file_read(picture_path(), &n);
    ck_assert_ptr_nonnull(memmem(bytes, n, "tEXtpushbroom.stretch\0B1 0 .. 1", 31));
    ck_assert_ptr_nonnull(memmem(bytes, n, "iTXtTitle\0", 10));
    ck_assert_ptr_nonnull(memmem(bytes, n, "\xc3\x84rger", 6));
    free(bytes);
    unlink(picture_path());
}
END_TEST

START_TEST(failures_are_reported)
{
    struct pb_err err = {0};
    const struct picture empty = {0, 5, 4};
    ck_assert_int_lt(write_picture(&empty, NULL, 0, picture_path(), &err), 0);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    const struct picture three = {5, 5, 3};
    err = (struct pb_err){0};
    ck_assert_int_lt(write_picture(&three, NULL, 0, picture_path(), &err), 0);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
}
END_TEST

/* Noise does not compress: more than the file's buffer, so the error arrives between two rows. */
static void noise(void *user, uint32_t y, uint8_t *out)
{
    (void)user;
    (void)y;
    for (int i = 0; i < 4 * 2000; i++)
        *out++ = (uint8_t)rnd();
}

START_TEST(failed_write_ends_the_picture)
{
    struct pb_err err = {0};
    struct pb_file_out *out = NULL;
    struct pb_png_options options = {.width = 2000, .height = 1000, .channels = 4, .row = noise};
    struct rlimit limit = {1 << 20, 1 << 20};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(pb_file_out_create(picture_path(), PB_CHECKSUM_SHA2_256, &err, &out), 0);
    ck_assert_int_lt(pb_png_write(out, &options, &err), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    pb_file_out_destroy(out);
    ck_assert_int_ne(access(picture_path(), F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("png");
    TCase *tc = tcase_create("png");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, pixels_come_back);
    tcase_add_test(tc, same_pixels_give_the_same_bytes_without_a_time);
    tcase_add_test(tc, texts_are_kept_in_chunks_that_fit_them);
    tcase_add_test(tc, failures_are_reported);
    tcase_add_test(tc, failed_write_ends_the_picture);
    suite_add_tcase(suite, tc);
    (void)scratch();
    int status = run_suite(suite);
    rmdir(scratch());
    return status;
}
