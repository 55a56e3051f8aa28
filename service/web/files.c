/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel resolves each path below the directory of products, without links (openat2). Hidden
 * files, files of other programs and files of an unfinished directory are in no manifest. */
#include "service/web/files.h"

#include "config/base/clock.h"
#include "pipeline/publish/manifest.h"
#include "service/confine/confine.h"
#include "service/web/page.h"
#include "service/web/request.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int pb_web_open_below(int directory, const char *path, int flags)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC),
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    const int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (fd >= 0)
        return fd;
    /* A link, a way out, a path through a file, a special file: no product. */
    return errno == ELOOP || errno == EXDEV || errno == ENOTDIR || errno == ENXIO ||
                   errno == ENAMETOOLONG
               ? -ENOENT
               : -errno;
}

/* The type of the manifest if it is one of data; else bytes to save. Pictures with programs (SVG)
 * and pages are not among them. */
static void take_media_type(const char *type, char out[96])
{
    static const char *const known[] = {
        "image/png", "image/jpeg",       "image/webp", "image/tiff", "application/geo+json",
        "text/csv",  "application/json", "text/plain"};
    const size_t n = strcspn(type, "; ");
    const char *found = "application/octet-stream";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == n && strncmp(type, known[i], n) == 0)
            found = known[i];
    (void)snprintf(out, 96, "%s", found);
}

/* Opens a file that the manifest of the open directory names. */
static int open_listed(int directory, const char *name, struct pb_web_file *out)
{
    struct pb_manifest manifest;
    struct stat st;
    int rc = pb_manifest_read(directory, &manifest);
    if (rc != 0)
        return rc == -EINVAL ? -ENOENT : rc;
    const struct pb_manifest_file *listed = NULL;
    for (size_t i = 0; i < manifest.n_files && listed == NULL; i++)
        if (strcmp(manifest.file[i].file, name) == 0)
            listed = &manifest.file[i];
    const int fd =
        listed ? pb_web_open_below(directory, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW) : -ENOENT;
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        (void)close(fd);
        rc = -ENOENT;
    } else if (fd >= 0) {
        out->fd = fd;
        out->bytes = (uint64_t)st.st_size;
        take_media_type(listed->media_type, out->media_type);
        (void)snprintf(out->tag, sizeof out->tag,
                       "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", (uint64_t)st.st_ino,
                       out->bytes, (uint64_t)pb_clock_ns(&st.st_mtim),
                       (uint64_t)pb_clock_ns(&st.st_ctim));
    } else {
        rc = fd;
    }
    pb_manifest_fini(&manifest);
    return rc;
}

int pb_web_file_open(const char *products, const char *path, struct pb_web_file *out)
{
    char folder[PB_WEB_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) >= sizeof folder)
        return -ENOENT;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    const int root = open(products, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    const int directory = pb_web_open_below(root, folder, O_RDONLY | O_DIRECTORY);
    int rc = directory < 0 ? directory : open_listed(directory, slash + 1, out);
    if (directory >= 0)
        (void)close(directory);
    (void)close(root);
    return rc;
}

/* Returns the directory of an absolute path in `out`, or NULL. */
static const char *directory_of(const char *path, char out[PATH_MAX])
{
    if (path == NULL || path[0] != '/' || strlen(path) >= PATH_MAX)
        return NULL;
    (void)snprintf(out, PATH_MAX, "%s", path);
    out[strrchr(out, '/') == out ? 1 : strrchr(out, '/') - out] = '\0';
    return out;
}

bool pb_web_files_in_root(const char *path)
{
    char directory[PATH_MAX];
    struct stat root, st;
    return directory_of(path, directory) != NULL && stat("/", &root) == 0 &&
           stat(directory, &st) == 0 && st.st_dev == root.st_dev && st.st_ino == root.st_ino;
}

int pb_web_files_confine(const char *products, const char *token_file, const char *unix_socket,
                         struct pb_err *err)
{
    char tokens[PATH_MAX], sockets[PATH_MAX];
    const struct pb_landlock_directory directories[] = {
        {.path = products},
        {.path = PB_WEB_LEAFLET_DIR},
        {.path = token_file != NULL && token_file[0] != '/' ? getenv("CREDENTIALS_DIRECTORY")
                                                            : directory_of(token_file, tokens)},
        {.path = directory_of(unix_socket, sockets), .removes = true}};
    return pb_landlock_readers(directories, sizeof directories / sizeof directories[0], err);
}
