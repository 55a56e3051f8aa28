/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/installed.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Name of the program that is not in the folder of the others. */
static const char COMPUTE[] = "pushbroom-compute";

const char *pb_installed(const char *from_programs, char *out, size_t out_bytes)
{
    char program[PATH_MAX] = "", path[2 * PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(program, '/');
    /* " (deleted)" follows the name of a program that an upgrade replaced. */
    const bool is_compute = slash != NULL && strncmp(slash + 1, COMPUTE, sizeof COMPUTE - 1) == 0;
    (void)snprintf(path, sizeof path, "%.*s/%s%s", slash ? (int)(slash - program) : 0, program,
                   is_compute ? PB_PROGRAMS_FROM_COMPUTE "/" : "", from_programs);
    char *real = realpath(path, NULL);
    (void)snprintf(out, out_bytes, "%s", real ? real : path);
    free(real);
    return out;
}
