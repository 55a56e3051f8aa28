/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/device_nodes.h"

#include <stddef.h>
#include <unistd.h>

bool pb_device_nodes_exist(void)
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
