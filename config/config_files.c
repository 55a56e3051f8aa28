/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/config_files.h"

#include "config/base/arena.h"
#include "config/presets.h"
#include "config/schema.h"
#include "config/yaml/yaml_tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_words[] = {"main", "pipelines", "preset"};
static const char MAIN_NAME[] = "pushbroom.yaml", PIPELINES[] = "pipelines.d", SUFFIX[] = ".yaml";

/* --- reading ---------------------------------------------------------------------------------- */

/* The number of the file, or -1. text is the arena's, name is copied. */
static int add_file(struct pb_load *load, enum pb_config_role role, const char *name,
                    const char *text, size_t bytes)
{
    struct pb_config_files *files = load->files;
    const size_t at = files->n;
    if (text == NULL || at == PB_CONFIG_FILES_MAX ||
        (at > 0 && files->bytes + bytes > PB_CONFIG_ALL_BYTES)) {
        if (text != NULL)
            pb_report(&load->report, PB_E_CONFIG_LIMIT, 0, 0,
                      "%s is one file too many: a configuration has at most %d files with %d MiB "
                      "together",
                      name, PB_CONFIG_FILES_MAX, PB_CONFIG_ALL_BYTES / (1024 * 1024));
        return -1;
    }
    files->name[at] = pb_arena_text(load->arena, name, strlen(name));
    files->text[at] = text;
    files->length[at] = bytes;
    files->role[at] = role;
    files->bytes += bytes;
    if (files->name[at] == NULL)
        return -1;
    if (at == 0)
        load->report.file = files->name[0];
    load->report.more = files->name + 1;
    files->n++;
    return (int)at;
}

/* The text of an open file, one byte over the limit at most; closes it. NULL after a mistake. */
static char *read_text(struct pb_load *load, FILE *file, size_t *out_bytes, int *out_error)
{
    char *room = malloc(PB_CONFIG_BYTES_MAX + 1), *text = NULL;
    const size_t bytes = room != NULL ? fread(room, 1, PB_CONFIG_BYTES_MAX + 1, file) : 0;
    *out_error = room != NULL && ferror(file) ? errno : 0;
    (void)fclose(file);
    if (room == NULL)
        pb_arena_fail(load->arena);
    else if (*out_error == 0)
        text = pb_arena_text(load->arena, room, bytes);
    free(room);
    *out_bytes = bytes;
    return text;
}

/* The number of the file, or -1 with a mistake. */
static int read_file(struct pb_load *load, enum pb_config_role role, const char *path)
{
    FILE *file = fopen(path, "re");
    size_t bytes = 0;
    int error = errno;
    char *text = file != NULL ? read_text(load, file, &bytes, &error) : NULL;
    if (text == NULL && !pb_arena_failed(load->arena))
        pb_report(&load->report, PB_E_CONFIG_FILE, 0, 0, "cannot %s %s: %s",
                  file != NULL ? "read" : "open", path, strerror(error));
    return add_file(load, role, path, text, bytes);
}

/* A word that names no file may be that of a preset. */
static void open_main(struct pb_load *load, const char *word)
{
    char path[PATH_MAX + 512], known[300];
    FILE *file = fopen(word, "re");
    const bool may_be_name = file == NULL && errno == ENOENT && strchr(word, '/') == NULL;
    size_t bytes = 0;
    int error = errno;
    if (file != NULL) {
        char *text = read_text(load, file, &bytes, &error);
        if (text == NULL && !pb_arena_failed(load->arena))
            pb_report(&load->report, PB_E_CONFIG_FILE, 0, 0, "cannot read it: %s", strerror(error));
        (void)add_file(load, PB_FILE_MAIN, word, text, bytes);
    } else if (may_be_name && pb_preset_find(word, path, sizeof path)) {
        (void)read_file(load, PB_FILE_MAIN, path);
    } else if (may_be_name) {
        pb_report(&load->report, PB_E_CONFIG_FILE, 0, 0,
                  "there is neither a file nor a preset of this name%s",
                  pb_preset_suggest(word, known, sizeof known));
    } else {
        pb_report(&load->report, PB_E_CONFIG_FILE, 0, 0, "cannot open it: %s", strerror(error));
    }
}

static int is_yaml(const struct dirent *entry)
{
    const char *suffix = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && suffix != NULL && strcmp(suffix, SUFFIX) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool has_control(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return true;
    return false;
}

/* Reads the files of the directory pipelines.d next to the main file, if it exists. */
static void open_pipelines(struct pb_load *load)
{
    const char *path = load->files->name[0], *slash = strrchr(path, '/');
    char directory[PATH_MAX], name[PATH_MAX + 300];
    struct dirent **entry = NULL;
    if (strcmp(slash != NULL ? slash + 1 : path, MAIN_NAME) != 0)
        return;
    (void)snprintf(directory, sizeof directory, "%.*s%s",
                   slash != NULL ? (int)(slash - path) + 1 : 0, path, PIPELINES);
    const int n = scandir(directory, &entry, is_yaml, by_name);
    if (n < 0 && errno == ENOMEM)
        pb_arena_fail(load->arena);
    else if (n < 0 && errno != ENOENT)
        pb_report(&load->report, PB_E_CONFIG_FILE, 0, 0, "cannot read %s: %s", directory,
                  strerror(errno));
    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", directory, entry[i]->d_name);
        if (has_control(name))
            pb_report(&load->report, PB_E_CONFIG_FILE, 0, 0,
                      "%s: the name has a character that cannot be printed; rename the file", name);
        else
            (void)read_file(load, PB_FILE_PIPELINES, name);
        free(entry[i]);
    }
    free(entry);
}

void pb_config_files_open(struct pb_load *load, const char *path)
{
    load->files->on_disk = true;
    open_main(load, path);
    if (load->files->n > 0)
        open_pipelines(load);
}

/* --- one text --------------------------------------------------------------------------------- */

void pb_config_files_split(struct pb_load *load, const char *text, size_t bytes, const char *name)
{
    static const char mark[] = "\n\f";
    char file[PATH_MAX + 512], word[16];
    enum pb_config_role role = PB_FILE_MAIN;
    const char *const end = text + bytes;
    (void)snprintf(file, sizeof file, "%s", name);
    for (;;) {
        const char *next = memmem(text, (size_t)(end - text), mark, sizeof mark - 1);
        const size_t length = (size_t)((next != NULL ? next : end) - text);
        (void)add_file(load, role, file, pb_arena_text(load->arena, text, length), length);
        if (next == NULL)
            return;
        const char *line = next + sizeof mark - 1, *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t n = stop != NULL ? (size_t)(stop - line) : 0;
        const char *space = memchr(line, ' ', n);
        const size_t n_word = space != NULL ? (size_t)(space - line) : n;
        (void)snprintf(word, sizeof word, "%.*s", (int)n_word, line);
        role = strcmp(word, role_words[PB_FILE_PRESET]) == 0 ? PB_FILE_PRESET : PB_FILE_PIPELINES;
        if (space == NULL || strcmp(word, role_words[role]) != 0) {
            pb_report(&load->report, PB_E_CONFIG_SYNTAX, 0, 0,
                      "a form feed is between the lines; remove it");
            return;
        }
        (void)snprintf(file, sizeof file, "%.*s", (int)(line + n - space - 1), space + 1);
        text = stop + 1;
    }
}

char *pb_config_files_join(struct pb_load *load)
{
    const struct pb_config_files *files = load->files;
    size_t bytes = 1, used = 0;
    for (size_t i = 0; i < files->n; i++)
        bytes += files->length[i] + strlen(files->name[i]) + 32;
    char *text = pb_arena_alloc(load->arena, bytes, 1);
    for (size_t i = 0; text != NULL && i < files->n; i++) {
        if (i > 0)
            used += (size_t)snprintf(text + used, bytes - used, "\n\f%s %s\n",
                                     role_words[files->role[i]], files->name[i]);
        used += (size_t)snprintf(text + used, bytes - used, "%s", files->text[i]);
    }
    return text;
}

/* --- trees ------------------------------------------------------------------------------------ */

const struct pb_yaml *pb_config_files_root(struct pb_load *load, int number)
{
    struct pb_config_files *files = load->files;
    if (!files->is_read[number]) {
        const int rc = pb_yaml_parse_file(files->text[number], files->length[number], number,
                                          load->arena, &load->report, &files->root[number]);
        files->is_read[number] = true;
        if (rc == -ENOMEM)
            pb_arena_fail(load->arena);
        if (rc != 0)
            files->root[number] = NULL;
    }
    return files->root[number];
}

/* Returns true if the file's base name is that of the preset. */
static bool is_of(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    const size_t length = strlen(name);
    return strncmp(base, name, length) == 0 && strcmp(base + length, SUFFIX) == 0;
}

int pb_config_files_preset(struct pb_load *load, const struct pb_yaml *node)
{
    struct pb_config_files *files = load->files;
    char path[PATH_MAX + 512], known[300];
    for (size_t i = 1; i < files->n; i++)
        if (files->role[i] == PB_FILE_PRESET && is_of(files->name[i], node->text))
            return (int)i;
    if (files->on_disk && pb_preset_find(node->text, path, sizeof path))
        return read_file(load, PB_FILE_PRESET, path);
    pb_report(&load->report, PB_E_CONFIG_VALUE, node->line, node->col,
              "input: there is no preset '%.63s'%s", node->text,
              files->on_disk ? pb_preset_suggest(node->text, known, sizeof known) : "");
    return -1;
}

const char *pb_config_files_path(struct pb_load *load, int line, const char *text)
{
    const int number = line / PB_FILE_LINES;
    if (number == 0 || text[0] == '/' || (size_t)number >= load->files->n)
        return text;
    const char *file = load->files->name[number], *own = load->files->name[0];
    const char *slash = strrchr(file, '/'), *own_slash = strrchr(own, '/');
    const size_t n_own = own_slash != NULL ? (size_t)(own_slash - own) + 1 : 0;
    size_t n = slash != NULL ? (size_t)(slash - file) + 1 : 0;
    if (n >= n_own && strncmp(file, own, n_own) == 0) {
        file += n_own;
        n -= n_own;
    }
    char *out = pb_arena_alloc(load->arena, n + strlen(text) + 1, 1);
    if (out == NULL)
        return text;
    memcpy(out, file, n);
    memcpy(out + n, text, strlen(text) + 1);
    return out;
}
