/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PATTERNS_H
#define PB_PATTERNS_H
/* The communication patterns (wic/pattern/pattern.h) of this installation: those built in, and the
 * plugins in its directory lib/wic/patterns, which is found from the place of the program. A
 * plugin is loaded when it is asked for by name, and stays. Loading opens files: a process that is
 * confined afterwards asks before. Thread: any. */
#include "wic/pattern/schedule.h"

/* The pattern of this name, loaded if it must be. 0, or -ENOENT: there is none of this name; or
 * what wic_plugin_load returns; with the reason in text. */
int pb_pattern_find(const char *name, const struct wic_pattern **out_pattern, char *text,
                    size_t text_bytes);

/* The names of all, built-in ones first; loads nothing. Returns how many, up to WIC_PATTERNS_MAX.
 */
size_t pb_pattern_names(char (*names)[WIC_PATTERN_NAME_MAX]);

/* The directory of the plugins, whether it is there or not. Returns out. */
const char *pb_pattern_directory(char *out, size_t out_bytes);
#endif
