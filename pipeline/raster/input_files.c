/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/input_files.h"

const char *pb_input_role_name(enum pb_input_role role)
{
    static const char *const names[] = {"pixels", "metadata", "sidecar", "source"};
    return names[role];
}
