/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SIDECAR_NAMES_H
#define PB_SIDECAR_NAMES_H
/* Files that belong to another one by their names: sidecars, which have its name and an ending
 * (x.tif.msk, x.tfw, x_RPC.TXT), and its metadata (input.metadata). Names are base names; upper
 * and lower case are equal. Pure functions. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/* Endings that are not a scene in any pipeline: files that GDAL and similar programs read or
 * write next to a file. NULL after the last one. */
const char *pb_sidecar_known(size_t i);
/* Returns true if `name` is `main` and the ending, or `main` without its suffix and the ending. */
bool pb_sidecar_is_of(const char *main, const char *ending, const char *name);
/* The same with one of the n endings or, `known`, with a known one. */
bool pb_sidecar_is_any_of(const char *main, char *const *endings, size_t n, bool known,
                          const char *name);
/* Count of bytes before the ending of a name that is one of main's sidecars: those of main, or
 * of main without its suffix. */
size_t pb_sidecar_shared(const char *main, const char *name);
/* Count of bytes of the name before the ending; 0: it has another one, or nothing before it. */
size_t pb_sidecar_stem(const char *name, const char *ending);

/* Returns true if `name` is the metadata of the file `main` by the pattern: it matches with the
 * scene's name for {scene}, and the text of a leading * is a prefix of main's name that ends at
 * the end of a word, so that each of two scenes has its own. scene NULL: returns true for
 * metadata of any file. */
bool pb_metadata_is_of(const char *pattern, const char *scene, const char *main, const char *name);
#endif
