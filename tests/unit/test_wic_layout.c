/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Sizes and memory of a channel: arguments that wic_channel_bytes and wic_channel_init take and
 * refuse, and the places of slots. */
#include "test_wic_group.h"

#include <stdint.h>

START_TEST(stride_is_the_next_page)
{
    ck_assert_uint_eq(wic_slot_stride(0), 0);
    ck_assert_uint_eq(wic_slot_stride(1), 4096);
    ck_assert_uint_eq(wic_slot_stride(4096), 4096);
    ck_assert_uint_eq(wic_slot_stride(4097), 8192);
}
END_TEST

START_TEST(invalid_options_have_no_size)
{
    char payload[1];
    struct wic_options none = {.slots = 0, .slot_bytes = 1};
    struct wic_options many = {.slots = WIC_SLOTS_MAX + 1, .slot_bytes = 1};
    struct wic_options huge = {.slots = 2, .slot_bytes = SIZE_MAX / 2};
    struct wic_options most = {.slots = 1, .slot_bytes = SIZE_MAX};
    struct wic_options mixed = {.slots = 1, .slot_bytes = 1, .payload = payload, .shared = true};
    struct wic_options naps = {.slots = 1, .slot_bytes = 1, .nap_ns = WIC_NAP_NS_MOST + 1};
    struct wic_options good = {.slots = WIC_SLOTS_MAX, .slot_bytes = 4096};
    ck_assert_uint_eq(wic_channel_bytes(NULL), 0);
    ck_assert_uint_eq(wic_channel_bytes(&none), 0);
    ck_assert_uint_eq(wic_channel_bytes(&many), 0);
    ck_assert_uint_eq(wic_channel_bytes(&huge), 0);
    ck_assert_uint_eq(wic_channel_bytes(&most), 0);
    ck_assert_uint_eq(wic_channel_bytes(&mixed), 0);
    ck_assert_uint_eq(wic_channel_bytes(&naps), 0);
    ck_assert_uint_ge(wic_channel_bytes(&good), WIC_SLOTS_MAX * 4096u);
}
END_TEST

START_TEST(init_rejects_what_makes_no_channel)
{
    _Alignas(64) static unsigned char memory[16384];
    struct wic_options options = {.slots = 1, .slot_bytes = 1};
    struct wic_options bad = {.slots = 0, .slot_bytes = 1};
    struct wic_channel *channel = (void *)&bad;
    ck_assert_uint_le(wic_channel_bytes(&options), sizeof(memory));
    ck_assert_int_eq(wic_channel_init(NULL, &options, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_init(memory + 8, &options, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_init(memory, &bad, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_init(memory, NULL, &channel), -EINVAL);
    ck_assert_int_eq(wic_channel_init(memory, &options, NULL), -EINVAL);
    ck_assert_ptr_eq(channel, (void *)&bad);
    ck_assert_int_eq(wic_channel_init(memory, &options, &channel), 0);
    wic_channel_fini(channel);
    wic_channel_fini(NULL);
}
END_TEST

START_TEST(payload_may_be_the_callers)
{
    size_t stride = wic_slot_stride(5000);
    unsigned char *payload = calloc(3, stride);
    struct wic_options options = {.slots = 3, .slot_bytes = 5000, .payload = payload};
    size_t bytes = wic_channel_bytes(&options);
    ck_assert_uint_lt(bytes, 4096);
    void *memory = aligned_alloc(64, bytes);
    struct wic_channel *channel;
    ck_assert_int_eq(wic_channel_init(memory, &options, &channel), 0);
    for (unsigned i = 0; i < 7; i++) {
        struct wic_slot slot = acquired(channel);
        ck_assert_uint_eq(slot.index, i % 3);
        ck_assert_ptr_eq(slot.data, payload + (i % 3) * stride);
        memset(slot.data, (int)i, 5000);
        ck_assert_int_eq(wic_publish(channel, &slot, 5000), 0);
        release_next(channel, i);
    }
    channel_free(channel);
    free(payload);
}
END_TEST

START_TEST(slots_are_disjoint_and_aligned)
{
    struct wic_channel *channel = channel_new(5, 4097);
    struct wic_slot slots[5];
    for (int i = 0; i < 5; i++) {
        slots[i] = acquired(channel);
        ck_assert_uint_eq((uintptr_t)slots[i].data % 4096, 0);
        ck_assert_uint_eq((uintptr_t)slots[i].user % 64, 0);
        ck_assert_uint_eq(slots[i].bytes, 4097);
        memset(slots[i].data, i, 4097);
        memset(slots[i].user, i, WIC_USER_BYTES);
    }
    for (int i = 0; i < 5; i++) {
        for (size_t at = 0; at < 4097; at++) {
            ck_assert_uint_eq(((unsigned char *)slots[i].data)[at], (unsigned)i);
        }
        for (size_t at = 0; at < WIC_USER_BYTES; at++) {
            ck_assert_uint_eq(((unsigned char *)slots[i].user)[at], (unsigned)i);
        }
        ck_assert_int_eq(wic_publish(channel, &slots[i], (size_t)i), 0);
    }
    channel_free(channel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic_layout");
    TCase *tcase = tcase_create("memory");
    tcase_add_test(tcase, stride_is_the_next_page);
    tcase_add_test(tcase, invalid_options_have_no_size);
    tcase_add_test(tcase, init_rejects_what_makes_no_channel);
    tcase_add_test(tcase, payload_may_be_the_callers);
    tcase_add_test(tcase, slots_are_disjoint_and_aligned);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
