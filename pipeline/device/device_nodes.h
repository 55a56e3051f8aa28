/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_NODES_H
#define PB_DEVICE_NODES_H

/* How many devices that CUDA can use this machine may have, by its device nodes: without a call
 * into CUDA, which does not survive a fork. Where there are any but they cannot be counted, 1.
 * Always 0 in a build without CUDA. */
int pb_device_nodes_count(void);
#endif
