/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/companion.h"

#include "config/base/base_name.h"
#include "pipeline/io/path.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char NAME[] = "{name}";
static const char ROOM[] = ".with";

bool pb_companion_of(const struct pb_companion_rule *rule, const char *path,
                     char out[PB_FILES_PATH_BYTES])
{
    const char *base = pb_base_name(path), *at = strstr(rule->pattern, NAME);
    if (rule->kind == PB_COMPANION_NONE || at == NULL)
        return false;
    size_t bytes = strlen(rule->pattern) - (sizeof NAME - 1) + strlen(base);
    int n = snprintf(out, PB_FILES_PATH_BYTES, "%.*s%.*s%s%s", (int)(base - path), path,
                     (int)(at - rule->pattern), rule->pattern, base, at + sizeof NAME - 1);
    return bytes < 256 && n < PB_FILES_PATH_BYTES;
}

bool pb_companion_input(const struct pb_companion_rule *rule, const char *path,
                        char out[PB_FILES_PATH_BYTES])
{
    const char *base = pb_base_name(path), *at = strstr(rule->pattern, NAME);
    if (rule->kind == PB_COMPANION_NONE || at == NULL)
        return false;
    size_t before = (size_t)(at - rule->pattern), n = strlen(base);
    const char *behind = at + sizeof NAME - 1;
    size_t after = strlen(behind);
    if (n <= before + after || strncmp(base, rule->pattern, before) != 0 ||
        strcmp(base + n - after, behind) != 0)
        return false;
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%.*s%.*s", (int)(base - path), path,
                   (int)(n - before - after), base + before);
    return true;
}

int pb_companion_room(const char *claim, char out[PB_FILES_PATH_BYTES])
{
    if (pb_files_join(out, claim, ROOM) != 0)
        return -ENAMETOOLONG;
    return mkdir(out, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

int pb_companion_take(const char *directory, const char *name, const char *claim,
                      char out_path[PB_FILES_PATH_BYTES])
{
    char from[PB_FILES_PATH_BYTES], room[PB_FILES_PATH_BYTES];
    struct stat st;
    int rc = pb_files_join(from, directory, name);
    if (rc == 0 && (lstat(from, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1))
        return -ENOENT;
    rc = rc ? rc : pb_companion_room(claim, room);
    rc = rc ? rc : pb_files_join(out_path, room, name);
    if (rc == 0 && rename(from, out_path) != 0)
        rc = -errno;
    if (rc == 0)
        (void)pb_path_sync(room);
    return rc;
}

int pb_companion_give_back(const char *path, const char *directory)
{
    char to[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(to, directory, pb_base_name(path));
    return rc ? rc : pb_files_rename_new(path, to, PB_FILES_LINK_ONLY);
}

static bool find_in(const char *room, char out_path[PB_FILES_PATH_BYTES])
{
    struct stat st;
    bool found = false;
    DIR *directory = opendir(room);
    if (directory == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(directory)) != NULL;)
        found = pb_files_join(out_path, room, e->d_name) == 0 && lstat(out_path, &st) == 0 &&
                S_ISREG(st.st_mode);
    (void)closedir(directory);
    return found;
}

bool pb_companion_find(const char *claim, char out_path[PB_FILES_PATH_BYTES])
{
    char room[PB_FILES_PATH_BYTES];
    return pb_files_join(room, claim, ROOM) == 0 && find_in(room, out_path);
}

void pb_companion_end(const char *claim)
{
    char room[PB_FILES_PATH_BYTES];
    if (pb_files_join(room, claim, ROOM) == 0)
        (void)rmdir(room);
}
