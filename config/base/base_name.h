/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BASE_NAME_H
#define PB_BASE_NAME_H
/* The part of a path after its last '/', in the path itself. Thread: any. */
const char *pb_base_name(const char *path);
#endif
