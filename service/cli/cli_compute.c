/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The program that computes. It is one of its own because it is linked with GDAL: this brings a
 * hundred libraries and takes 35 ms to load, ten times as long as the other commands take. */
#include "service/cli/cli.h"

#include "config/installed.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_compute(char **argv)
{
    char program[PATH_MAX + 64];
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    char **words = calloc(n + 2, sizeof *words);
    (void)pb_installed(PB_COMPUTE_FROM_PROGRAM, program, sizeof program);
    if (words != NULL) {
        words[0] = (char *)(uintptr_t) "pushbroom";
        memcpy(words + 1, argv, n * sizeof *words);
        (void)cli_flush();
        (void)execv(program, words);
    }
    free(words);
    struct pb_err err = {0};
    (void)pb_fail(&err, PB_E_SYSTEM, "cannot run %s: %s", program, strerror(errno));
    cli_print_err_hint(&err, "install pushbroom again: this program is a part of it");
    return CLI_JOB_FAILED;
}
