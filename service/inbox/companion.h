/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPANION_H
#define PB_COMPANION_H
/* The file that a sender puts beside an input: a marker, which says that the input is complete, or
 * its checksum. Its name follows from the input's by a pattern with {name}. It belongs to the
 * input: it goes with it to work/<id>/, below `.marker` or `.checksum`, and on to archive or
 * quarantine. Thread: any. */
#include "service/base/files.h"

#include <stdbool.h>

#define PB_COMPANION_PATTERN_BYTES 128

enum pb_companion_kind { PB_COMPANION_NONE, PB_COMPANION_MARKER, PB_COMPANION_CHECKSUM };

/* What an inbox expects beside each input. */
struct pb_companion_rule {
    enum pb_companion_kind kind;
    char pattern[PB_COMPANION_PATTERN_BYTES]; /* "{name}.done" */
};

/* The companion of the input of that path; false: its name would be too long. */
bool pb_companion_of(const struct pb_companion_rule *rule, const char *path,
                     char out[PB_FILES_PATH_BYTES]);
/* The path of the input whose companion has that one; false: it is no companion's. */
bool pb_companion_input(const struct pb_companion_rule *rule, const char *path,
                        char out[PB_FILES_PATH_BYTES]);

/* Moves it from the directory into claim (work/<id>). 0 and its new path; -ENOENT: it is not there,
 * or no plain file; negative errno. */
int pb_companion_take(const char *directory, const char *name, const char *claim,
                      char out_path[PB_FILES_PATH_BYTES]);
/* Moves it back. */
int pb_companion_give_back(const char *path, const char *directory);
/* The one that lies in claim; false: none. */
bool pb_companion_find(const char *claim, char out_path[PB_FILES_PATH_BYTES]);
/* Removes the empty directory that it lay in. */
void pb_companion_end(const char *claim);
/* The directory in claim that one comes back to from quarantine; made if it is not there. */
int pb_companion_room(const char *claim, char out[PB_FILES_PATH_BYTES]);
#endif
