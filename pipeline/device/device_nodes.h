/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_NODES_H
#define PB_DEVICE_NODES_H

/* Upper bound of the count of CUDA devices of this machine, from its device nodes: without a
 * call into CUDA, which does not survive a fork. 1 if they cannot be counted. Always 0 in a
 * build without CUDA. */
int pb_device_nodes_count(void);
#endif
