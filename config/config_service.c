/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* What the directories of the service mean for each other. Paths are compared as text, without
 * doubled and trailing slashes: the file system is not asked, for a config may be checked on
 * another machine. */
#include "config/config_parts.h"

#include "config/yaml_tree.h"

#include <limits.h>
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

void pb_check_service(struct pb_load *load, const struct pb_yaml *section,
                      const struct pb_service_config *service)
{
    const struct {
        const char *key, *path;
    } dirs[] = {{"inbox", service->inbox},       {"work", service->work},
                {"products", service->products}, {"quarantine", service->quarantine},
                {"state", service->state},       {"archive", service->archive}};
    const size_t n = sizeof dirs / sizeof *dirs;
    for (size_t i = 0; i < n; i++) {
        char path[PATH_MAX], other[PATH_MAX];
        if (strlen(dirs[i].path) >= PATH_MAX - 300) {
            wrong(load, section, dirs[i].key, "is too long for a directory with files in it", "");
            continue;
        }
        normal_path(dirs[i].path, path);
        for (size_t k = 0; k < i; k++) {
            normal_path(dirs[k].path, other);
            if (strcmp(path, other) != 0)
                continue;
            wrong(load, section, dirs[i].key,
                  "must be a directory of its own; it is the same as service.", dirs[k].key);
            break;
        }
    }
    if (strlen(service->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        wrong(load, section, "socket", "is too long for a socket; at most 107 bytes are allowed",
              "");
}
