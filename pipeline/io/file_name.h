/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FILE_NAME_H
#define PB_FILE_NAME_H
/* Names of files and directories made from foreign names. Pure functions. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define PB_FILE_NAME_BYTES_MAX 200 /* of a clean name; leaves room for suffixes in NAME_MAX */

bool pb_file_name_is_utf8(const char *name);
/* Whether it is UTF-8 of at most NAME_MAX bytes, without a leading dot, a slash or one of
 * pb_text_is_control(). So is all that the functions below make of foreign names; blanks count as
 * any other letter. */
bool pb_file_name_is_clean(const char *name);
/* The name without control characters, slashes and bytes that are not UTF-8 (each becomes '_'), at
 * most PB_FILE_NAME_BYTES_MAX long with its suffix kept. A name that had to be changed gets "-<12
 * hex digits of its SHA-256>" before its suffix, so that different names stay different. */
void pb_file_name_clean(const char *name, char out[256]);
/* The base of the names of a file's products: its clean base name without the suffix, of an archive
 * without .SAFE.zip, .tar.gz and the like, never hidden. */
void pb_file_name_scene(const char *path, char *out, size_t bytes);
/* The directory of the n-th input of one scene name: "a" for 1, "a~2", ...; a long scene is cut to
 * make room, not in the middle of a character. */
void pb_file_name_place(const char *scene, unsigned n, char out[256]);
/* Whether directory is the result for this scene and any n of the function above. */
bool pb_file_name_is_place(const char *directory, const char *scene);
#endif
