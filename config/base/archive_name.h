/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARCHIVE_NAME_H
#define PB_ARCHIVE_NAME_H
/* Which files are archives by their names. Thread: any. */
#include <stddef.h>

/* Bytes of the path before the suffix of an archive (.zip, .tar, .tar.gz, .tgz, ...; upper and
 * lower case are alike); 0: it has none, or nothing before it. */
size_t pb_archive_name_stem(const char *path);
/* What such names end with, for messages. */
#define PB_ARCHIVE_NAME_SUFFIXES ".zip, .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz, .tar.zst"
#endif
