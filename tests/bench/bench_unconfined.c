/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroomd` whose processes that compute are not confined (the linker replaces pb_confine_apply
 * by the function here), for tests/bench/isolation.py to compare with. */
#include "service/confine/confine.h"

#include <stdio.h>

int __wrap_pb_confine_apply(const struct pb_confine *confine, struct pb_err *err,
                            char text[PB_CONFINE_TEXT_BYTES]);

int __wrap_pb_confine_apply(const struct pb_confine *confine, struct pb_err *err,
                            char text[PB_CONFINE_TEXT_BYTES])
{
    (void)confine;
    (void)err;
    (void)snprintf(text, PB_CONFINE_TEXT_BYTES, "unconfined, for a benchmark");
    return 0;
}
