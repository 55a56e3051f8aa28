/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/inbox.h"

#include "pipeline/scene/scene_walk.h"
#include "service/base/files.h"

#include "service/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pb_inbox_is_news(struct pb_inbox_told *told, const char *name)
{
    for (size_t i = 0; i < PB_INBOX_TOLD_MAX && told->name[i] != NULL; i++) {
        if (strcmp(told->name[i], name) == 0)
            return false;
    }
    char **slot = &told->name[told->n++ % PB_INBOX_TOLD_MAX];
    free(*slot);
    *slot = strdup(name);
    return true;
}

static void tell_kind(struct pb_inbox_told *told, const char *name, mode_t mode)
{
    const char *kind = S_ISDIR(mode)    ? "a directory"
                       : S_ISLNK(mode)  ? "a symbolic link"
                       : S_ISFIFO(mode) ? "a pipe"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    if (pb_inbox_is_news(told, name))
        pb_log(PB_LOG_WARNING,
               "inbox: %s is %s and stays; only plain files, and folders that an input.scene fits, "
               "are taken",
               name, kind);
}

/* A file with a second link may belong to another user: a user who may write the inbox could submit
 * a file that only the service can move or read. */
static void tell_links(struct pb_inbox_told *told, const char *name, unsigned long links)
{
    if (pb_inbox_is_news(told, name))
        pb_log(
            PB_LOG_WARNING,
            "inbox: %s has %lu names (hard links) and stays; only a file with one name is taken: "
            "remove the others, or copy it",
            name, links);
}

void pb_inbox_folder_facts(const struct pb_scene_walk *walk, struct pb_settle_file *out)
{
    out->is_folder = true;
    out->size = walk->bytes;
    out->mtime_ns = walk->youngest_ns;
    out->ctime_ns = (int64_t)(walk->digest & INT64_MAX);
}

/* A folder that cannot be walked now, or is too large for a scene, is seen again in the next scan;
 * the claim says why. */
static int look_at_folder(struct pb_settle *settle, const char *inbox, const char *name,
                          const struct stat *st)
{
    char path[PB_FILES_PATH_BYTES];
    struct pb_scene_walk walk;
    struct pb_settle_file file;
    memset(&file, 0, sizeof file);
    if (pb_files_join(path, inbox, name) != 0)
        return 0;
    (void)pb_scene_walk_open(path, NULL, &walk);
    pb_inbox_folder_facts(&walk, &file);
    pb_scene_walk_close(&walk);
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    file.inode = (uint64_t)st->st_ino;
    return pb_settle_add(settle, &file);
}

static int look_at(const struct pb_inbox_rules *rules, const char *inbox, struct pb_settle *settle,
                   struct pb_inbox_told *told, int fd, const char *name)
{
    struct stat st;
    struct pb_settle_file file;
    if (pb_settle_is_left_alone(name))
        return 0;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; /* gone again */
    if (S_ISDIR(st.st_mode) && rules->takes(rules->user, name))
        return look_at_folder(settle, inbox, name, &st);
    if (!S_ISREG(st.st_mode)) {
        tell_kind(told, name, st.st_mode);
        return 0;
    }
    if (st.st_nlink > 1) {
        tell_links(told, name, (unsigned long)st.st_nlink);
        return 0;
    }
    memset(&file, 0, sizeof file);
    (void)snprintf(file.name, sizeof file.name, "%s", name);
    file.size = (uint64_t)st.st_size;
    file.inode = (uint64_t)st.st_ino;
    file.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    file.ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    return pb_settle_add(settle, &file);
}

int pb_inbox_read(const char *inbox, const struct pb_inbox_rules *rules, struct pb_settle *settle,
                  struct pb_inbox_told *told, struct stat *out_stat, size_t *out_ignored)
{
    DIR *directory = opendir(inbox);
    if (directory == NULL)
        return -errno;
    int rc = fstat(dirfd(directory), out_stat) == 0 ? 0 : -errno;
    *out_ignored = 0;
    for (errno = 0; rc == 0; errno = 0) {
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            rc = -errno; /* 0 at the end */
            break;
        }
        if (rules->ignores(rules->user, entry->d_name))
            (*out_ignored)++;
        else
            rc = look_at(rules, inbox, settle, told, dirfd(directory), entry->d_name);
    }
    (void)closedir(directory);
    return rc;
}

void pb_inbox_told_fini(struct pb_inbox_told *told)
{
    for (size_t i = 0; i < PB_INBOX_TOLD_MAX; i++)
        free(told->name[i]);
}
