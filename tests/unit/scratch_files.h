/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_SCRATCH_FILES_H
#define PB_TEST_SCRATCH_FILES_H
/* A directory for files, and what their checksums should be. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[64] = "/tmp/pb-tiff-XXXXXX";

static inline void check_sum(const char *path, const char *said)
{
    char command[300], sum[80] = "sha256:";
    (void)snprintf(command, sizeof command, "sha256sum %s", path);
    FILE *in = popen(command, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fscanf(in, "%64s", sum + 7), 1);
    (void)pclose(in);
    ck_assert_str_eq(sum, said);
}
#endif
