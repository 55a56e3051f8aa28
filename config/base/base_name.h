/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BASE_NAME_H
#define PB_BASE_NAME_H
/* The last part of a path, in the path itself. Thread: any. */
#include <stddef.h>

/* After the last '/'. */
const char *pb_base_name(const char *path);
/* The same of a folder, whose path may end in slashes, which do not count; "/" has no such part:
 * *out_length is 0. */
const char *pb_base_name_folder(const char *path, size_t *out_length);
#endif
