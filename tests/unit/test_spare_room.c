/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/run/served/tile_room.h"

#include "run_suite.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

/* Each test has a process of its own: another room is made only when the thread of the last one
 * has ended. */
static struct pb_tile_room room;

static void end(void)
{
    pb_tile_room_close(&room);
}

START_TEST(room_of_its_size_is_taken_while_being_made)
{
    pb_spare_room_make(MIB, -1);
    pb_spare_room_make(2 * MIB, -1); /* there is one already */
    ck_assert(pb_spare_room_take(MIB / 2, MIB, false, &room));
    ck_assert_uint_eq(room.bytes, MIB);
    ck_assert_int_ge(room.fd, 0);
    memset(room.slots, 1, room.bytes);
    pb_tile_room_close(&room);
    ck_assert(!pb_spare_room_take(MIB / 2, MIB, false, &room)); /* once */
}
END_TEST

START_TEST(next_room_is_made_after_the_last_is_taken)
{
    for (int i = 0; i < 50; i++) {
        while (!pb_spare_room_take(MIB, MIB, false, &room))
            pb_spare_room_make(MIB, -1);
        pb_tile_room_close(&room);
    }
}
END_TEST

START_TEST(room_of_another_size_or_kind_is_freed)
{
    static const struct {
        size_t least, most;
        bool pin;
    } wish[] = {{2 * MIB, 4 * MIB, false}, {MIB / 4, MIB / 2, false}, {MIB, MIB, true}};
    pb_spare_room_make(MIB, -1);
    ck_assert(!pb_spare_room_take(wish[_i].least, wish[_i].most, wish[_i].pin, &room));
    ck_assert(!pb_spare_room_take(MIB, MIB, false, &room));
    ck_assert_ptr_null(room.slots);
}
END_TEST

START_TEST(without_one_nothing_is_taken)
{
    ck_assert(!pb_spare_room_take(0, MIB, false, &room));
    pb_spare_room_make(0, -1);
    ck_assert(!pb_spare_room_take(0, MIB, false, &room));
    pb_spare_room_make(PB_SPARE_ROOM_MOST + 1, -1);
    ck_assert(!pb_spare_room_take(0, SIZE_MAX, false, &room));
}
END_TEST

static _Atomic int taken;

static void *job(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        struct pb_tile_room own = {0};
        if (pb_spare_room_take(MIB, MIB, false, &own))
            taken++;
        pb_tile_room_close(&own);
        pb_spare_room_make(MIB, -1);
    }
    return NULL;
}

START_TEST(jobs_beside_each_other_get_different_rooms)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, job, NULL), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_int_gt(taken, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spare_room");
    TCase *tests = tcase_create("spare_room");
    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_loop_test(tests, room_of_its_size_is_taken_while_being_made, 0, 20);
    tcase_add_test(tests, next_room_is_made_after_the_last_is_taken);
    tcase_add_loop_test(tests, room_of_another_size_or_kind_is_freed, 0, 3);
    tcase_add_test(tests, without_one_nothing_is_taken);
    tcase_add_test(tests, jobs_beside_each_other_get_different_rooms);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
