/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Needs a build with CUDA, no device: which of CUDA's errors mean that the context is gone. */
#ifndef PB_HAVE_CUDA
#include <stdio.h>

int main(void)
{
    puts("skipped: a build without CUDA");
    return 77;
}
#else
#include "pipeline/device/cuda_err.h"

#include "run_suite.h"

#include <errno.h>
#include <string.h>

static const struct {
    cudaError_t rc;
    enum pb_code code;
} rows[] = {
    {cudaErrorIllegalAddress, PB_E_DEVICE_LOST},
    {cudaErrorLaunchFailure, PB_E_DEVICE_LOST},
    {cudaErrorLaunchTimeout, PB_E_DEVICE_LOST},
    {cudaErrorIllegalInstruction, PB_E_DEVICE_LOST},
    {cudaErrorHardwareStackError, PB_E_DEVICE_LOST},
    {cudaErrorMisalignedAddress, PB_E_DEVICE_LOST},
    {cudaErrorInvalidAddressSpace, PB_E_DEVICE_LOST},
    {cudaErrorInvalidPc, PB_E_DEVICE_LOST},
    {cudaErrorAssert, PB_E_DEVICE_LOST},
    {cudaErrorContained, PB_E_DEVICE_LOST},
    {cudaErrorECCUncorrectable, PB_E_DEVICE_LOST},
    {cudaErrorMpsClientTerminated, PB_E_DEVICE_LOST},
    {cudaErrorContextIsDestroyed, PB_E_DEVICE_LOST},
    {cudaErrorUnknown, PB_E_DEVICE_LOST},
    {cudaErrorMemoryAllocation, PB_E_DEVICE_BUSY},
    {cudaErrorNoDevice, PB_E_DEVICE_MISSING},
    {cudaErrorInsufficientDriver, PB_E_DEVICE_MISSING},
    {cudaErrorInvalidValue, PB_E_DEVICE_FAILED},
    {cudaErrorInvalidConfiguration, PB_E_DEVICE_FAILED},
    {cudaErrorDevicesUnavailable, PB_E_DEVICE_FAILED},
};

START_TEST(a_cuda_error_gets_the_code_that_says_what_is_left)
{
    struct pb_err err = {0};
    int rc = pb_cuda_err(&err, rows[_i].rc, "testing");
    ck_assert_str_eq(pb_code_id(err.code), pb_code_id(rows[_i].code));
    ck_assert_int_eq(rc, pb_code_errno(rows[_i].code));
    ck_assert_ptr_nonnull(strstr(err.msg, "while testing: "));
    ck_assert_ptr_nonnull(strstr(err.msg, cudaGetErrorName(rows[_i].rc)));
}
END_TEST

START_TEST(test_pinning_error_names_memory_of_the_host)
{
    struct pb_err err = {0};
    int rc = pb_cuda_pin_err(&err, cudaErrorMemoryAllocation, 4096, "tile buffers");
    ck_assert_int_eq(rc, pb_code_errno(PB_E_DEVICE_BUSY));
    ck_assert_ptr_nonnull(
        strstr(err.msg, "the host cannot pin 4096 bytes of its memory for tile buffers: "));
    ck_assert_ptr_null(strstr(err.msg, "GPU"));
    memset(&err, 0, sizeof err);
    rc = pb_cuda_pin_err(&err, cudaErrorIllegalAddress, 1, "tile buffers");
    ck_assert_int_eq(rc, pb_code_errno(PB_E_DEVICE_LOST));
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(pb_cuda_pin_err(&err, cudaSuccess, 1, "tile buffers"), 0);
}
END_TEST

START_TEST(success_is_no_error)
{
    struct pb_err err = {0};
    ck_assert_int_eq(pb_cuda_err(&err, cudaSuccess, "testing"), 0);
    ck_assert_int_eq(err.code, PB_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_err");
    TCase *tests = tcase_create("cuda_err");
    tcase_add_loop_test(tests, a_cuda_error_gets_the_code_that_says_what_is_left, 0,
                        sizeof rows / sizeof rows[0]);
    tcase_add_test(tests, success_is_no_error);
    tcase_add_test(tests, test_pinning_error_names_memory_of_the_host);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
#endif
