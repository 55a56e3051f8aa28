/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRESETS_H
#define PB_PRESETS_H
/* Presets: configurations that are found by name. A preset is a file NAME.yaml with a pipeline NAME
 * that runs unchanged; its first line is a comment with a title. Its input is what
 * `input: NAME` of another configuration takes. They are searched in $PUSHBROOM_PRESETS if it is
 * set, in /etc/pushbroom/presets, and in share/pushbroom/presets of the installation or build tree
 * that the program is of; the first directory that has a name decides. The functions read
 * directories and files. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define PB_PRESETS_MAX      256
#define PB_PRESET_NAME_MAX  64
#define PB_PRESET_ABOUT_MAX 120

/* A preset of a list. */
struct pb_preset {
    char name[PB_PRESET_NAME_MAX];
    char about[PB_PRESET_ABOUT_MAX]; /* the comment in the first line of the file, or "" */
    char *path;                      /* owned by the list */
};

/* The file of a preset; false = no directory has one of this name, or it cannot be a name. */
bool pb_preset_find(const char *name, char *out_path, size_t path_bytes);

/* All presets by name; malloc'd, for pb_preset_list_free. Returns how many; 0 with *out_list NULL
 * also when out of memory. */
size_t pb_preset_list(struct pb_preset **out_list);
void pb_preset_list_free(struct pb_preset *list, size_t n);

/* "; did you mean 'a'?", then "; there are a, b, c" as far as out_bytes allow. Returns out. */
const char *pb_preset_suggest(const char *wrong, char *out, size_t out_bytes);
#endif
