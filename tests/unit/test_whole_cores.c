/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Blocks that are moved to a device as files store them, with the host in place of the GPU: one
 * that the cores help, one that shares the host's memory, and the report. */
#include "run_suite.h"
#include "pipeline/plan/choose.h"
#include "whole_compare.h"

static bool plan_shares(uint32_t multiprocessors)
{
    traits.gpu.multiprocessors = multiprocessors;
    ck_assert_int_eq(make_plan(true), 0);
    bool shares = plan->engine.whole.shares;
    ck_assert_msg(plan->engine.whole.used, "%s", plan->engine.whole.why_not);
    pb_plan_destroy(plan);
    return shares;
}

/* 4 streams of 90 MB/s on a multiprocessor; 3 cores of 250 MB/s. */
START_TEST(cores_decode_with_a_gpu_at_most_twice_as_fast)
{
    for (int i = 0; i < 2; i++) {
        cores_too = i == 0;
        ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN), 0);
        ck_assert_int_eq(plan_shares(1), cores_too);
        ck_assert_int_eq(plan_shares(4), cores_too);
        ck_assert(!plan_shares(5));
        ck_assert(!plan_shares(132));
        close_scene();
    }
}
END_TEST

/* Each block once, by one of them; damaged ones with the same message. */
START_TEST(cores_that_decode_too_make_the_same_pixels)
{
    cores_too = true;
    traits.gpu.multiprocessors = 1;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN);
    compare(REAL "real/odd/gdal_tiff_with_subifds.tif", PLAIN);
    compare(REAL "hostile/gdal__quad-lzw-old-style.tif", PLAIN);
    ck_assert_int_eq(scenes, 4);
    ck_assert_uint_gt(core_blocks, 20);
    ck_assert_uint_gt(blocks, core_blocks);
    whole_host.refuse_each = 3;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    ck_assert_int_gt(whole_host.refused, 0);
}
END_TEST

/* Whichever side gets the block: copies of a file, each with other bytes overwritten. */
START_TEST(damage_has_the_same_message_on_either_decoder)
{
    static char bytes[4 << 20];
    FILE *file = fopen(REAL "real/landsat7_L7_ETMs_6band.tif", "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    int failed = 0, copies = EACH > 1 ? 3 : 20;
    (void)fclose(file);
    cores_too = true;
    traits.gpu.multiprocessors = 1;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN);
    ck_assert_uint_gt(core_blocks, 0);
    for (int i = 1; i <= copies; i++) {
        char path[] = "/tmp/pb_whole_XXXXXX";
        int fd = mkstemp(path);
        ck_assert_int_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
        ck_assert_int_eq(pwrite(fd, "\xff\xff\xff\xff\xff\xff", 6, (off_t)(n / 24 * (size_t)i)), 6);
        (void)close(fd);
        failed += compare(path, PLAIN) < 0;
        (void)unlink(path);
    }
    ck_assert_int_gt(failed, copies / 2);
}
END_TEST

/* In this process, and in the one that owns the device, whose figures are transferred. */
START_TEST(report_has_device_occupancy_and_waits)
{
    for (int way = 0; way < 2; way++) {
        struct image image;
        struct pb_err err = {0};
        by_another = way == 1;
        ck_assert_int_eq(open_scene(REAL "real/global/blue_marble_720x360_be.tif", BLUR), 0);
        ck_assert_int_eq(make_plan(true), 0);
        uint64_t start = pb_clock_mono_ns();
        ck_assert_int_eq(run(&image, &err), 0);
        uint64_t wall = pb_clock_mono_ns() - start, waited = 0;
        const struct pb_device_report *gpu = &report.link.device;
        ck_assert(gpu->used);
        ck_assert_uint_gt(gpu->work_ns[PB_DEVICE_DECODE], 0);
        ck_assert_uint_gt(gpu->work_ns[PB_DEVICE_COMPUTE], 0);
        ck_assert_uint_eq(gpu->work_ns[PB_DEVICE_ENCODE], 0);
        ck_assert_uint_ge(gpu->occupied_ns, gpu->work_ns[PB_DEVICE_DECODE]);
        ck_assert_uint_ge(gpu->occupied_ns, gpu->work_ns[PB_DEVICE_COMPUTE]);
        ck_assert_uint_le(gpu->occupied_ns, wall);
        ck_assert_uint_gt(gpu->set_up_ns, 0);
        ck_assert_uint_le(gpu->pin_ns, gpu->set_up_ns);
        for (int i = 0; i < PB_DEVICE_WAITS; i++) {
            ck_assert_uint_le(gpu->wait_ns[i], wall);
            waited += gpu->wait_ns[i];
        }
        ck_assert_uint_gt(waited, 0);
        free(image.planes);
        pb_plan_destroy(plan);
        close_scene();
    }
    by_another = false;
}
END_TEST

/* Alone, and with cores that decode, too; with small groups, because slots are few. */
START_TEST(device_that_shares_host_memory_uses_slots)
{
    traits.integrated = true;
    for (int cores = 0; cores < 2; cores++) {
        cores_too = cores == 1;
        traits.gpu.multiprocessors = cores == 1 ? 1 : 16;
        whole_host.seen = 0;
        compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
        ck_assert_uint_eq(report.link.to_device_bytes, 0);
        ck_assert_uint_eq(report.link.from_device_bytes, 0);
        ck_assert_int_gt(whole_host.seen, 10);
        compare(REAL "derived/l7_none_band.tif", PLAIN);
        compare(REAL "derived/l7_rgba.tif", BLUR);
        compare(REAL "hostile/gdal__quad-lzw-old-style.tif", PLAIN);
    }
    ck_assert_uint_gt(core_blocks, 20);
    cores_too = false;
    ck_assert_int_eq(nftw(REAL "hostile", visit, 16, FTW_PHYS), 0);
    whole_host.refuse_each = 3;
    compare(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR);
    ck_assert_int_gt(whole_host.refused, 0);
    ck_assert_int_eq(whole_host.opened, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_cores");
    TCase *tc = tcase_create("all");
    pb_raster_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, cores_decode_with_a_gpu_at_most_twice_as_fast);
    tcase_add_test(tc, cores_that_decode_too_make_the_same_pixels);
    tcase_add_test(tc, damage_has_the_same_message_on_either_decoder);
    tcase_add_test(tc, report_has_device_occupancy_and_waits);
    tcase_add_test(tc, device_that_shares_host_memory_uses_slots);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
