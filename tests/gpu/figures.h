/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FIGURES_H
#define FIGURES_H
/* Refusal to measure kernels that were compiled quickly. Without the build option PB_GPU_TESTS the
 * kernels of chain_block.cu, which only tests run, have right results and useless times. */
#include <stdbool.h>
#include <stdio.h>

#ifndef PB_TEST_KERNELS_SLOW
#define PB_TEST_KERNELS_SLOW 0
#endif

/* Returns true if the kernels were compiled for speed; else prints the reason. */
static inline bool figures_are_sound(const char *program)
{
    if (PB_TEST_KERNELS_SLOW)
        (void)fprintf(stderr,
                      "%s: no figures, because its kernels were compiled quickly and are slow; "
                      "configure with -DPB_GPU_TESTS=ON\n",
                      program);
    return !PB_TEST_KERNELS_SLOW;
}
#endif
