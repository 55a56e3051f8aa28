/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_NAME_H
#define PB_FILE_NAME_H
/* Names of files and directories made from foreign names. Pure functions. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define PB_FILE_NAME_BYTES_MAX 200 /* leaves room for suffixes in NAME_MAX */

bool pb_file_name_is_utf8(const char *name);
/* Returns true for UTF-8 of at most NAME_MAX bytes, without a leading dot, a slash or a
 * pb_text_is_control() character. All results of the functions below are clean; blanks count as
 * any other letter. */
bool pb_file_name_is_clean(const char *name);
/* Makes the name without control characters, slashes and bytes that are not UTF-8 (each becomes
 * '_'), at most PB_FILE_NAME_BYTES_MAX long with its suffix preserved. A changed name gets "-<12
 * hex digits of its SHA-256>" before its suffix, so that different names stay different. */
void pb_file_name_clean(const char *name, char out[256]);
/* Makes the base of the names of a file's products: its clean base name without the suffix, for
 * an archive without .SAFE.zip, .tar.gz and the like, never hidden. */
void pb_file_name_scene(const char *path, char *out, size_t bytes);
/* Makes the directory of the n-th input of one scene name: "a" for 1, "a~2", ...; a long scene
 * is cut to make room, but not within a character. */
void pb_file_name_place(const char *scene, unsigned n, char out[256]);
/* Returns true if directory is the result of pb_file_name_place for this scene and any n. */
bool pb_file_name_is_place(const char *directory, const char *scene);
#endif
