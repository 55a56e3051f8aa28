/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Checks the directories of the service against each other. Paths are compared as text, without
 * doubled and trailing slashes: the file system is not read, as a config may be checked on another
 * machine. */
#include "config/config_parts.h"

#include "config/service_config.h"
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

/* A directory of the service. */
struct directory {
    const char *key;
    const char *path; /* NULL: not what the user meant */
    int line, col;    /* of its path in the file, else of the section */
};

static void wrong(struct pb_load *load, const struct directory *at, const char *message)
{
    pb_report(&load->report, PB_E_CONFIG_VALUE, at->line, at->col, "service.%s %s", at->key,
              message);
}

/* Whether b lies somewhere inside a; both normal. */
static bool is_inside(const char *a, const char *b)
{
    size_t length = strcmp(a, "/") == 0 ? 0 : strlen(a);
    return strncmp(a, b, length) == 0 && b[length] == '/';
}

/* Reports directories that contain each other: products would be read as scenes, or be in another
 * directory's files. */
static void report_nested(struct pb_load *load, const struct directory *outer,
                          const struct directory *inner)
{
    char message[PATH_MAX + 96];
    (void)snprintf(message, sizeof message,
                   "is inside service.%s; give each a directory of its own", outer->key);
    wrong(load, inner, message);
}

/* The one exception: the place that the archive has by default. */
static bool is_default_archive(const char *outer, const char *work, const char *inner,
                               const char *archive)
{
    size_t n = strlen(work);
    return strcmp(outer, "work") == 0 && strcmp(inner, "archive") == 0 &&
           strncmp(work, archive, n) == 0 && strcmp(archive + n, "/done") == 0;
}

static void check_directory(struct pb_load *load, const struct pb_yaml *section,
                            const struct directory *dirs, size_t at)
{
    char path[PATH_MAX], other[PATH_MAX], message[PATH_MAX + 96];
    if (strlen(dirs[at].path) >= PATH_MAX - 300) {
        wrong(load, &dirs[at], "is too long for a directory with files in it");
        return;
    }
    normal_path(dirs[at].path, path);
    for (size_t k = 0; k < at; k++) {
        if (dirs[k].path == NULL)
            continue;
        normal_path(dirs[k].path, other);
        if (strcmp(path, other) == 0) {
            (void)snprintf(message, sizeof message,
                           "must be a directory of its own; it is the same as service.%s",
                           dirs[k].key);
            wrong(load, &dirs[at], message);
            return;
        }
        /* The archive is in work by default: a mistake is then reported at work. */
        if (strcmp(dirs[at].key, "archive") == 0 && pb_yaml_find(section, "archive", NULL) == NULL)
            continue;
        if (is_inside(path, other))
            report_nested(load, &dirs[at], &dirs[k]);
        else if (is_inside(other, path) &&
                 !is_default_archive(dirs[k].key, other, dirs[at].key, path))
            report_nested(load, &dirs[k], &dirs[at]);
    }
}

/* The socket's directory may hold the others, but not lie in them. */
static void check_socket(struct pb_load *load, const struct directory *socket,
                         const struct directory *dirs, size_t n)
{
    char path[PATH_MAX], other[PATH_MAX];
    if (strlen(socket->path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        wrong(load, socket, "is too long for a socket; at most 107 bytes are allowed");
        return;
    }
    normal_path(socket->path, path);
    for (size_t i = 0; i < n; i++) {
        if (dirs[i].path == NULL)
            continue;
        normal_path(dirs[i].path, other);
        if (is_inside(other, path)) {
            report_nested(load, &dirs[i], socket);
            return;
        }
    }
}

/* A directory with a key of its own. In a section with mistakes a default replaces an invalid
 * value; checks against the other keys could report mistakes that the file does not have. */
static struct directory directory_of(const struct pb_load *load, const struct pb_yaml *section,
                                     const char *key, const char *path, bool clean)
{
    const struct pb_yaml *node = pb_yaml_find(section, key, NULL);
    const struct pb_yaml *at = node ? node : section;
    bool doubtful = !clean && (node == NULL || pb_report_has(&load->report, at->line, at->col));
    return (struct directory){key, doubtful ? NULL : path, at ? at->line : 0, at ? at->col : 0};
}

void pb_check_service(struct pb_load *load, const struct pb_yaml *section,
                      const struct pb_service_config *service, bool clean)
{
    struct directory dirs[PB_INBOXES_MAX + 5];
    char names[PB_INBOXES_MAX][80];
    size_t n = 0;
    if (service->inbox != NULL)
        dirs[n++] = directory_of(load, section, "inbox", service->inbox, clean);
    for (size_t i = 0; i < service->n_own_inboxes && service->inbox == NULL; i++) {
        const struct pb_inbox_config *inbox = &service->own_inboxes[i];
        (void)snprintf(names[i], sizeof names[i], "inboxes (%.60s)", inbox->path);
        dirs[n++] = (struct directory){names[i], inbox->path, inbox->line, inbox->col};
    }
    dirs[n++] = directory_of(load, section, "work", service->work, clean);
    dirs[n++] = directory_of(load, section, "products", service->products, clean);
    dirs[n++] = directory_of(load, section, "quarantine", service->quarantine, clean);
    dirs[n++] = directory_of(load, section, "state", service->state, clean);
    dirs[n++] = directory_of(load, section, "archive", service->archive, clean);
    for (size_t i = 0; i < n; i++)
        if (dirs[i].path != NULL)
            check_directory(load, section, dirs, i);
    struct directory socket = directory_of(load, section, "socket", service->socket, true);
    check_socket(load, &socket, dirs, n);
}
