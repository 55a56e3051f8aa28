/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CONFIG_FILES_H
#define PB_CONFIG_FILES_H
/* The files that a configuration is made of: the main one, the files of pipelines.d next to it, and
 * the presets that its inputs name. The number of a file is in the lines of its nodes
 * (yaml/report.h).
 *
 * Other processes get a configuration as one text and open no file for it. That text is the main
 * file's; then follows, for each further file, a line of a form feed, the word `pipelines` or
 * `preset` and the file's name, then its text. YAML has no form feed, therefore no file is taken
 * apart. Internal to config/. One thread. */
#include <stdbool.h>
#include <stddef.h>

struct pb_load;
struct pb_yaml;

#define PB_CONFIG_FILES_MAX 512
#define PB_CONFIG_ALL_BYTES (2 * 1024 * 1024) /* limit of all files together */

enum pb_config_role { PB_FILE_MAIN, PB_FILE_PIPELINES, PB_FILE_PRESET };

struct pb_config_files {
    const char *name[PB_CONFIG_FILES_MAX], *text[PB_CONFIG_FILES_MAX];
    size_t length[PB_CONFIG_FILES_MAX]; /* bytes of text, without its final NUL */
    enum pb_config_role role[PB_CONFIG_FILES_MAX];
    const struct pb_yaml *root[PB_CONFIG_FILES_MAX]; /* NULL: not read yet, empty or damaged */
    bool is_read[PB_CONFIG_FILES_MAX];
    size_t n, bytes;
    bool on_disk; /* presets and pipelines.d are read when they are needed */
};

/* Everything below reports its mistakes; memory shows in the load's arena. */

/* Reads the main file, or the preset of that name when there is no such file and `path` has no
 * slash; then, by name, the files of pipelines.d in the directory of a main file pushbroom.yaml. */
void pb_config_files_open(struct pb_load *load, const char *path);
/* Takes the files out of a text as pb_config_files_join makes it. */
void pb_config_files_split(struct pb_load *load, const char *text, size_t bytes, const char *name);
/* The number of the file with the preset; -1 after a mistake, reported at `node`. */
int pb_config_files_preset(struct pb_load *load, const struct pb_yaml *node);
/* The tree of a file, parsed once; NULL: empty, or a mistake. */
const struct pb_yaml *pb_config_files_root(struct pb_load *load, int number);
/* All files as one text, in the arena. */
char *pb_config_files_join(struct pb_load *load);
/* A path of the file that the line is of, when it is relative: from there, as one that begins at
 * the directory of the main file. Returns text, or memory of the arena. */
const char *pb_config_files_path(struct pb_load *load, int line, const char *text);
#endif
