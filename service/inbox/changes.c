/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/changes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pb_changes_fini(struct pb_changes *changes)
{
    for (size_t i = 0; i < changes->n; i++)
        free(changes->name[i]);
    free(changes->name);
    *changes = (struct pb_changes){0};
}

void pb_changes_add_all(struct pb_changes *changes)
{
    pb_changes_fini(changes);
    changes->all = true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void pb_changes_sort(struct pb_changes *changes)
{
    size_t kept = 0;
    if (changes->n == 0)
        return;
    qsort(changes->name, changes->n, sizeof *changes->name, by_name);
    for (size_t i = 0; i < changes->n; i++) {
        if (kept > 0 && strcmp(changes->name[kept - 1], changes->name[i]) == 0)
            free(changes->name[i]);
        else
            changes->name[kept++] = changes->name[i];
    }
    changes->n = kept;
}

/* Makes room for one more name; false: there are too many, or no memory. */
static bool reserve(struct pb_changes *changes)
{
    if (changes->n < changes->room)
        return true;
    if (changes->room == PB_CHANGES_MAX) {
        pb_changes_sort(changes); /* a file that grows causes many events */
        return changes->n <= PB_CHANGES_MAX / 2;
    }
    size_t room = changes->room > 0 ? 2 * changes->room : 64;
    char **more = realloc(changes->name, room * sizeof(char *));
    if (more == NULL)
        return false;
    changes->name = more;
    changes->room = room;
    return true;
}

void pb_changes_add(struct pb_changes *changes, const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name), bytes = n + m + 2;
    if (changes->all)
        return;
    if (n + m == 0) {
        pb_changes_add_all(changes);
        return;
    }
    char *path = reserve(changes) ? malloc(bytes) : NULL;
    if (path == NULL) {
        pb_changes_add_all(changes);
        return;
    }
    (void)snprintf(path, bytes, "%s%s%s", folder, n > 0 && m > 0 ? "/" : "", name);
    if (changes->n > 0 && strcmp(changes->name[changes->n - 1], path) == 0)
        free(path);
    else
        changes->name[changes->n++] = path;
}

/* Compares the name with the first n bytes of the path. */
static int compare(const char *name, const char *path, size_t n)
{
    int order = strncmp(name, path, n);
    return order != 0 ? order : name[n] != '\0';
}

static bool has(const struct pb_changes *changes, const char *path, size_t n)
{
    size_t low = 0, high = changes->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(changes->name[middle], path, n);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool pb_changes_cover(const struct pb_changes *changes, const char *path)
{
    bool covered = changes->all;
    for (const char *end = path; changes->n > 0 && !covered && *end != '\0';) {
        end += strcspn(end, "/");
        covered = has(changes, path, (size_t)(end - path));
        end += *end == '/';
    }
    return covered;
}
