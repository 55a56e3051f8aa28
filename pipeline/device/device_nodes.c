/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/device_nodes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum { MINORS = 64 };

static bool have_nodes(void)
{
#ifdef PB_HAVE_CUDA
    /* a PCIe card, the same before its nodes are made, Jetson (two generations), WSL */
    static const char *const paths[] = {"/dev/nvidiactl", "/proc/driver/nvidia/version",
                                        "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/dxg"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (access(paths[i], F_OK) == 0)
            return true;
    }
#endif
    return false;
}

int pb_device_nodes_count(void)
{
    int n = 0;
    if (!have_nodes())
        return 0;
    for (int i = 0; i < MINORS; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += access(path, F_OK) == 0;
    }
    return n > 0 ? n : 1;
}
