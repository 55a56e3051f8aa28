/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/presets.h"
#include "config/installed.h"

#include "kernels/nearest.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OWN "/etc/pushbroom/presets"
static const char SUFFIX[] = ".yaml";
enum { DIRECTORIES = 3 };

/* The directories in the order of the search; that of the installation is in room. */
static size_t directories(const char *out[DIRECTORIES], char *room, size_t room_bytes)
{
    const char *given = getenv("PUSHBROOM_PRESETS");
    size_t n = 0;
    if (given != NULL && given[0] != '\0')
        out[n++] = given;
    out[n++] = OWN;
    out[n++] = pb_installed(PB_PRESETS_FROM_PROGRAM, room, room_bytes);
    return n;
}

/* Returns true for the possible name of a preset: no path, no hidden file. */
static bool is_name(const char *text, size_t length)
{
    return length > 0 && length < PB_PRESET_NAME_MAX && text[0] != '.' && text[0] != '-' &&
           memchr(text, '/', length) == NULL;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool pb_preset_find(const char *name, char *out_path, size_t path_bytes)
{
    const char *directory[DIRECTORIES];
    char room[PATH_MAX + 64];
    const size_t n = directories(directory, room, sizeof room);
    for (size_t i = 0; is_name(name, strlen(name)) && i < n; i++) {
        const int length = snprintf(out_path, path_bytes, "%s/%s%s", directory[i], name, SUFFIX);
        if (length > 0 && (size_t)length < path_bytes && is_file(out_path))
            return true;
    }
    return false;
}

/* The comment in the file's first line. */
static void read_about(const char *path, char about[PB_PRESET_ABOUT_MAX])
{
    char line[PB_PRESET_ABOUT_MAX + 2] = "";
    FILE *file = fopen(path, "re");
    const bool has = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        (void)fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    (void)snprintf(about, PB_PRESET_ABOUT_MAX, "%s",
                   has && strncmp(line, "# ", 2) == 0 ? line + 2 : "");
}

static int by_name(const void *a, const void *b)
{
    const struct pb_preset *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static bool has(const struct pb_preset *list, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i].name, name, length) == 0 && list[i].name[length] == '\0')
            return true;
    return false;
}

/* Adds the presets of a directory that no earlier one has. */
static size_t add_directory(struct pb_preset *list, size_t n, const char *directory)
{
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir != NULL && n < PB_PRESETS_MAX && (entry = readdir(dir));) {
        const char *suffix = strrchr(entry->d_name, '.');
        const size_t length = suffix != NULL ? (size_t)(suffix - entry->d_name) : 0;
        char path[PATH_MAX + 512];
        if (suffix == NULL || strcmp(suffix, SUFFIX) != 0 || !is_name(entry->d_name, length) ||
            has(list, n, entry->d_name, length))
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (!is_file(path) || (list[n].path = strdup(path)) == NULL)
            continue;
        (void)snprintf(list[n].name, sizeof list[n].name, "%.*s", (int)length, entry->d_name);
        read_about(path, list[n++].about);
    }
    if (dir != NULL)
        (void)closedir(dir);
    return n;
}

size_t pb_preset_list(struct pb_preset **out_list)
{
    const char *directory[DIRECTORIES];
    char room[PATH_MAX + 64];
    const size_t n_directories = directories(directory, room, sizeof room);
    struct pb_preset *list = calloc(PB_PRESETS_MAX, sizeof *list);
    size_t n = 0;
    *out_list = list;
    for (size_t i = 0; list != NULL && i < n_directories; i++)
        n = add_directory(list, n, directory[i]);
    if (n > 0)
        qsort(list, n, sizeof *list, by_name);
    return n;
}

void pb_preset_list_free(struct pb_preset *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i].path);
    free(list);
}

const char *pb_preset_suggest(const char *wrong, char *out, size_t out_bytes)
{
    struct pb_preset *list = NULL;
    const size_t n = pb_preset_list(&list);
    const char *names[PB_PRESETS_MAX], *nearest = NULL;
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        names[i] = list[i].name;
    nearest = pb_nearest(wrong, names, n);
    out[0] = '\0';
    if (nearest != NULL)
        used = (size_t)snprintf(out, out_bytes, "; did you mean '%s'?", nearest);
    for (size_t i = 0; i < n && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%s",
                                 i > 0             ? ", "
                                 : nearest != NULL ? " Presets: "
                                                   : "; presets: ",
                                 names[i]);
    if (used >= out_bytes && out_bytes > 4)
        memcpy(out + out_bytes - 4, "...", 4);
    pb_preset_list_free(list, n);
    return out;
}
