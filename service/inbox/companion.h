/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPANION_H
#define PB_COMPANION_H
/* File that a sender puts next to an input: a marker, which declares the input complete, or its
 * checksum. Its name is made from the input's name by a pattern with {name}. It belongs to the
 * input: both are moved to work/<id>/, the companion into `.marker` or `.checksum` there, and on
 * to the archive or to quarantine. Thread: any. */
#include "service/base/files.h"

#include <stdbool.h>

#define PB_COMPANION_PATTERN_BYTES 128

enum pb_companion_kind { PB_COMPANION_NONE, PB_COMPANION_MARKER, PB_COMPANION_CHECKSUM };

/* Companion that an inbox expects for each input. */
struct pb_companion_rule {
    enum pb_companion_kind kind;
    char pattern[PB_COMPANION_PATTERN_BYTES]; /* "{name}.done" */
};

/* Makes the path of the companion of the input `path`; false if its name would be too long. */
bool pb_companion_of(const struct pb_companion_rule *rule, const char *path,
                     char out[PB_FILES_PATH_BYTES]);
/* Makes the path of the input that has the companion `path`; false if that is not a companion's
 * name. */
bool pb_companion_input(const struct pb_companion_rule *rule, const char *path,
                        char out[PB_FILES_PATH_BYTES]);

/* Moves the companion from the directory into claim (work/<id>). Returns 0 and its new path;
 * -ENOENT if it is absent or not a plain file; negative errno. */
int pb_companion_take(const char *directory, const char *name, const char *claim,
                      char out_path[PB_FILES_PATH_BYTES]);
/* Moves the companion back. */
int pb_companion_give_back(const char *path, const char *directory);
/* Finds the companion in claim; false if absent. */
bool pb_companion_find(const char *claim, char out_path[PB_FILES_PATH_BYTES]);
/* Removes the empty directory of the companion. */
void pb_companion_end(const char *claim);
/* Directory in claim for a companion that is restored from quarantine; created if absent. */
int pb_companion_room(const char *claim, char out[PB_FILES_PATH_BYTES]);
#endif
