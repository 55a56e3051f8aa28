/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Checks the directories of the service against each other. Paths are compared as text, without
 * doubled and trailing slashes: the file system is not read, as a config may be checked on another
 * machine. */
#include "config/config_parts.h"

#include "config/yaml/yaml_tree.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* "a//b/./c/" -> "a/b/c" */
static void normal_path(const char *path, char out[PATH_MAX])
{
    size_t length = 0;
    for (; *path && length + 2 < PATH_MAX; path++) {
        bool after_slash = length > 0 && out[length - 1] == '/';
        if (*path == '/' && after_slash)
            continue;
        if (*path == '.' && after_slash && (path[1] == '/' || path[1] == '\0'))
            continue;
        out[length++] = *path;
    }
    while (length > 1 && out[length - 1] == '/')
        length--;
    out[length] = '\0';
}

static void wrong(struct pb_load *load, const struct pb_yaml *section, const char *key,
                  const char *message, const char *other)
{
    const struct pb_yaml *node = section ? pb_yaml_find(section, key, NULL) : NULL;
    if (node == NULL)
        node = section;
    pb_report(&load->report, PB_E_CONFIG_VALUE, node ? node->line : 0, node ? node->col : 0,
              "service.%s %s%s", key, message, other);
}

/* Whether b lies somewhere inside a; both normal. */
static bool is_inside(const char *a, const char *b)
{
    size_t length = strcmp(a, "/") == 0 ? 0 : strlen(a);
    return strncmp(a, b, length) == 0 && b[length] == '/';
}

/* Reports directories that contain each other: products would be read as scenes, or be in another
 * directory's files. */
static void check_nested(struct pb_load *load, const struct pb_yaml *section, const char *outer,
                         const char *inner)
{
    char message[96];
    (void)snprintf(message, sizeof message,
                   "lies inside service.%s; give each a directory of its own", outer);
    wrong(load, section, inner, message, "");
}

/* The one exception: the place that the archive has by default. */
static bool is_default_archive(const char *outer, const char *work, const char *inner,
                               const char *archive)
{
    size_t n = strlen(work);
    return strcmp(outer, "work") == 0 && strcmp(inner, "archive") == 0 &&
           strncmp(work, archive, n) == 0 && strcmp(archive + n, "/done") == 0;
}

struct directory {
    const char *key;
    const char *path; /* NULL: not what the user meant */
};

/* In a section with mistakes a default replaces an invalid value; checks against the other keys
 * could report mistakes that the file does not have. */
static void drop_doubtful(const struct pb_load *load, const struct pb_yaml *section,
                          struct directory *dirs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct pb_yaml *node = pb_yaml_find(section, dirs[i].key, NULL);
        if (node == NULL || pb_report_has(&load->report, node->line, node->col))
            dirs[i].path = NULL;
    }
}

static void check_directory(struct pb_load *load, const struct pb_yaml *section,
                            const struct directory *dirs, size_t at)
{
    char path[PATH_MAX], other[PATH_MAX];
    if (strlen(dirs[at].path) >= PATH_MAX - 300) {
        wrong(load, section, dirs[at].key, "is too long for a directory with files in it", "");
        return;
    }
    normal_path(dirs[at].path, path);
    for (size_t k = 0; k < at; k++) {
        if (dirs[k].path == NULL)
            continue;
        normal_path(dirs[k].path, other);
        if (strcmp(path, other) == 0) {
            wrong(load, section, dirs[at].key,
                  "must be a directory of its own; it is the same as service.", dirs[k].key);
            return;
        }
        /* The archive is in work by default: a mistake is then reported at work. */
        if (strcmp(dirs[at].key, "archive") == 0 && pb_yaml_find(section, "archive", NULL) == NULL)
            continue;
        if (is_inside(path, other))
            check_nested(load, section, dirs[at].key, dirs[k].key);
        else if (is_inside(other, path) &&
                 !is_default_archive(dirs[k].key, other, dirs[at].key, path))
            check_nested(load, section, dirs[k].key, dirs[at].key);
    }
}

/* The socket's directory may hold the others, but not lie in them. */
static void check_socket(struct pb_load *load, const struct pb_yaml *section, const char *socket,
                         const struct directory *dirs, size_t n)
{
    char path[PATH_MAX], other[PATH_MAX];
    if (strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        wrong(load, section, "socket", "is too long for a socket; at most 107 bytes are allowed",
              "");
        return;
    }
    normal_path(socket, path);
    for (size_t i = 0; i < n; i++) {
        if (dirs[i].path == NULL)
            continue;
        normal_path(dirs[i].path, other);
        if (is_inside(other, path)) {
            check_nested(load, section, dirs[i].key, "socket");
            return;
        }
    }
}

void pb_check_service(struct pb_load *load, const struct pb_yaml *section,
                      const struct pb_service_config *service, bool clean)
{
    struct directory dirs[] = {{"inbox", service->inbox},       {"work", service->work},
                               {"products", service->products}, {"quarantine", service->quarantine},
                               {"state", service->state},       {"archive", service->archive}};
    const size_t n = sizeof dirs / sizeof *dirs;
    if (!clean)
        drop_doubtful(load, section, dirs, n);
    for (size_t i = 0; i < n; i++)
        if (dirs[i].path != NULL)
            check_directory(load, section, dirs, i);
    check_socket(load, section, service->socket, dirs, n);
}
