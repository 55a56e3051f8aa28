/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PLUGIN_H
#define WIC_PLUGIN_H
/* Loads patterns (wic/pattern/pattern.h) from shared objects of one directory.
 *
 * A plugin runs with all the rights of the program as soon as it is loaded: its content cannot be
 * checked before. So its origin is checked: the directory and the file belong to root or to the
 * user of the process, no other user may write to them, and the file is really in that directory.
 * The administrator protects the directories above. A plugin stays loaded until the process ends,
 * also one that was refused after loading: its threads, destructors and strings could be in use. */
#include "wic/pattern/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Loads <directory>/<name>.so and registers its pattern, which is called `name`, too. Loading it
 * again is fine. Thread: any; text as in wic/pattern/schedule.h. Negative errno:
 *   -EINVAL      directory is not an absolute path, or name not a pattern's name
 *   -ENOENT ...  there is no such directory or file, or it cannot be read
 *   -EPERM       not a regular file of the directory; or its owner or mode let others write
 *   -ELIBBAD     it cannot be loaded (no shared object, truncated, undefined symbols)
 *   -ENOEXEC     it has no symbol wic_pattern_plugin
 *   -EPROTO      another ABI or size, or its pattern is called otherwise
 *   -EEXIST      another pattern of this name is there; else as wic_pattern_register */
int wic_plugin_load(const char *directory, const char *name, const struct wic_pattern **out_pattern,
                    char *text, size_t text_bytes);

/* The names of the plugins in a directory, by their files, sorted: up to `max`. Loads nothing, so
 * that one may still be refused. 0, or negative errno: the directory cannot be read. Thread: any.
 */
int wic_plugin_names(const char *directory, char (*names)[WIC_PATTERN_NAME_MAX], size_t max,
                     size_t *out_count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
