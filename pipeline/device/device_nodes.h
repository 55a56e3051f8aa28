/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_NODES_H
#define PB_DEVICE_NODES_H
#include <stdbool.h>

/* Whether this machine may have a device that CUDA can use, by its device nodes: without a call
 * into CUDA, which does not survive a fork. Always false in a build without CUDA. */
bool pb_device_nodes_exist(void);
#endif
