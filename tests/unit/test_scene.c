/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene.h"

#include "pipeline/raster/raster_file.h"
#include "run_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pb_raster_file opened(const char *path)
{
    struct pb_raster_file file = {.fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    file.path = strdup(path);
    ck_assert_int_ge(file.fd, 0);
    return file;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(test_scene_of_one_file_has_the_files_next_to_it)
{
    struct pb_scene scene;
    int fd[PB_SCENE_FDS_MAX];
    ck_assert_int_eq(pb_scene_init(&scene, "/in/a.tif"), 0);
    ck_assert_uint_eq(pb_scene_fds(&scene, fd), 0);
    scene.file = opened("/in/a.tif");
    scene.metadata.file[scene.metadata.n++] = opened("/in/a.json");
    scene.sidecars.file[scene.sidecars.n++] = opened("/in/a.tif.msk");
    ck_assert_ptr_null(pb_scene_several(&scene));
    ck_assert_ptr_eq(pb_scene_sidecars(&scene), &scene.sidecars);
    ck_assert_uint_eq(pb_scene_fds(&scene, fd), 3);
    ck_assert_int_eq(fd[0], scene.file.fd);
    ck_assert_int_eq(fd[1], scene.sidecars.file[0].fd);
    ck_assert_int_eq(fd[2], scene.metadata.file[0].fd);
    pb_scene_close(&scene);
    for (int i = 0; i < 3; i++)
        ck_assert(!is_open(fd[i]));
    ck_assert_ptr_null(scene.path);
    pb_scene_close(&scene);
}
END_TEST

START_TEST(test_registered_scene_serves_its_files)
{
    struct pb_scene scene;
    struct pb_raster_file file;
    struct pb_err err = {0};
    ck_assert_int_eq(pb_scene_init(&scene, "/not/there/a.tif"), 0);
    scene.file = opened("/not/there/a.tif");
    scene.sidecars.file[scene.sidecars.n++] = opened("/not/there/a.tif.msk");
    pb_scene_hand(&scene);
    ck_assert_ptr_eq(pb_raster_file_sidecar(0), &scene.sidecars.file[0]);
    /* a device is no file, but it was opened by its path */
    ck_assert_int_lt(pb_raster_file_open(&file, "/not/there/a.tif", &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_NOT_TIFF);
    pb_raster_file_close(&file);
    pb_scene_hand(NULL);
    ck_assert_ptr_null(pb_raster_file_sidecar(0));
    err = (struct pb_err){0};
    ck_assert_int_lt(pb_raster_file_open(&file, "/not/there/a.tif", &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_MISSING);
    pb_raster_file_close(&file);
    pb_scene_close(&scene);
}
END_TEST

START_TEST(test_zeroed_scene_closes_no_descriptor)
{
    struct pb_scene scene;
    memset(&scene, 0, sizeof scene);
    pb_scene_close(&scene);
    ck_assert(is_open(0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scene");
    TCase *tests = tcase_create("scene");
    tcase_add_test(tests, test_scene_of_one_file_has_the_files_next_to_it);
    tcase_add_test(tests, test_registered_scene_serves_its_files);
    tcase_add_test(tests, test_zeroed_scene_closes_no_descriptor);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
