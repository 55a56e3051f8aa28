/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_SCRATCH_FILES_H
#define PB_TEST_SCRATCH_FILES_H
/* A directory for files, and what their checksums should be. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[64] = "/tmp/pb-tiff-XXXXXX";

/* Compares with sha256sum(1) or b3sum(1), by the kind of the checksum. */
static inline void check_sum(const char *path, const char *said)
{
    const bool blake3 = strncmp(said, "blake3:", 7) == 0;
    char command[300], sum[80];
    (void)snprintf(command, sizeof command, "%s %s", blake3 ? "b3sum" : "sha256sum", path);
    (void)snprintf(sum, sizeof sum, "%s:", blake3 ? "blake3" : "sha256");
    FILE *in = popen(command, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fscanf(in, "%64s", sum + 7), 1);
    (void)pclose(in);
    ck_assert_str_eq(sum, said);
}
#endif
