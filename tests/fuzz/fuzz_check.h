/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H
/* Demands of the fuzz targets on the code under test; a demand that does not hold is a finding. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void require(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

/* Checks a failure: a code, and a message without control characters. */
static inline void check_err(const struct pb_err *err)
{
    require(err->code != PB_OK && err->code < PB_E_COUNT, "no code");
    require(err->msg[0] != '\0', "an error without words");
    for (const char *s = err->msg; *s != '\0'; s++)
        require((unsigned char)*s >= 0x20, "control characters in a message");
}
#endif
