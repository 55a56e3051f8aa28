/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INSTALLED_H
#define PB_INSTALLED_H
/* Files of the installation, or of the build tree, found from the place of the running program:
 * the folder of the programs (bin), or that of pushbroom-compute. Thread: any. */
#include <stddef.h>

/* Writes the path of a file into out, from its path relative to the folder of the programs; without
 * `..` and links if the file exists. Returns out. */
const char *pb_installed(const char *from_programs, char *out, size_t out_bytes);
#endif
