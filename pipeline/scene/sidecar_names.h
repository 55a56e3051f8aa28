/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SIDECAR_NAMES_H
#define PB_SIDECAR_NAMES_H
/* Which files belong to another one by their names: sidecars, which have its name and an ending
 * (x.tif.msk, x.tfw, x_RPC.TXT), and its metadata (input.metadata). Names are base names; upper and
 * lower case are alike. Pure functions. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/* Endings that are no scene whatever pipeline there is: what GDAL and its like write or read beside
 * a file. NULL behind the last one. */
const char *pb_sidecar_known(size_t i);
/* Whether `name` is `main` and the ending, or `main` without its suffix and the ending. */
bool pb_sidecar_is_of(const char *main, const char *ending, const char *name);
/* Whether it is that with one of the n endings or, `known`, with a known one. */
bool pb_sidecar_is_any_of(const char *main, char *const *endings, size_t n, bool known,
                          const char *name);
/* Of a name that is one of main's sidecars, the bytes before its ending: those of main, or of main
 * without its suffix. */
size_t pb_sidecar_shared(const char *main, const char *name);
/* Bytes of the name before the ending; 0: it has another one, or nothing before it. */
size_t pb_sidecar_stem(const char *name, const char *ending);

/* Whether `name` is the metadata of the file `main` by the pattern: it fits with the scene's name
 * for {scene}, and what a leading * stands for begins main's name, too, up to the end of a word, so
 * that of two scenes each has its own. scene NULL: whether it is metadata of any file. */
bool pb_metadata_is_of(const char *pattern, const char *scene, const char *main, const char *name);
#endif
