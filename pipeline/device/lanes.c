/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/lanes.h"

#ifndef PB_HAVE_CUDA
struct pb_lanes_count pb_lanes_count(void)
{
    return (struct pb_lanes_count){0, 0};
}
#endif
