/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Finds, checks and loads one plugin. Paths are resolved first and the real path is checked;
 * between that and dlopen only users with write access to the directory could replace the file:
 * root and this user. Loading through /proc/self/fd would not need this argument, but the loader
 * takes two plugins for the same one if the second gets the number of the first's descriptor. */
#include "wic/pattern/plugin.h"
#include "wic/pattern/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks that it belongs to this user or root, has the wanted type, and is not writable by other
 * users. */
static int judge(const char *path, mode_t kind, char *text, size_t text_bytes)
{
    struct stat info;
    if (lstat(path, &info) != 0) {
        int rc = -errno;
        return wic_fail(rc, text, text_bytes, "%s: %s", path, strerror(-rc));
    }
    if ((info.st_mode & S_IFMT) != kind) {
        return wic_fail(-EPERM, text, text_bytes, "%s is not a %s", path,
                        kind == S_IFDIR ? "directory" : "regular file");
    }
    if (info.st_mode & S_IWOTH) {
        return wic_fail(-EPERM, text, text_bytes, "%s: everybody may write to it; chmod o-w", path);
    }
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        return wic_fail(-EPERM, text, text_bytes, "%s belongs to user %u; root or %u must own it",
                        path, (unsigned)info.st_uid, (unsigned)geteuid());
    }
    return 0;
}

static int resolve(const char *path, char real[PATH_MAX], char *text, size_t text_bytes)
{
    if (realpath(path, real) == NULL) {
        int rc = -errno;
        return wic_fail(rc, text, text_bytes, "%s: %s", path, strerror(-rc));
    }
    return 0;
}

/* The plugin's real path, checked. */
static int locate(const char *directory, const char *name, char file[PATH_MAX], char *text,
                  size_t text_bytes)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + WIC_PATTERN_NAME_MAX + 8];
    int rc = resolve(directory, folder, text, text_bytes);
    if (rc == 0) {
        rc = judge(folder, S_IFDIR, text, text_bytes);
    }
    if (rc != 0) {
        return rc;
    }
    snprintf(path, sizeof(path), "%s/%s.so", folder, name);
    rc = resolve(path, file, text, text_bytes);
    if (rc != 0) {
        return rc;
    }
    /* A link to another file of the directory is fine. */
    size_t length = strlen(folder);
    if (strncmp(file, folder, length) != 0 || file[length] != '/' ||
        strchr(file + length + 1, '/') != NULL) {
        return wic_fail(-EPERM, text, text_bytes, "%s leads out of the directory, to %s", path,
                        file);
    }
    return judge(file, S_IFREG, text, text_bytes);
}

/* Whether the file has all bytes that the loader will map. The loader does not check that, and a
 * truncated plugin (e.g. after a full disk) would end the process with SIGBUS. The loader checks
 * the rest. */
static bool is_whole(int fd)
{
    struct stat info;
    ElfW(Ehdr) header;
    if (fstat(fd, &info) != 0 || pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) {
        return false;
    }
    uint64_t bytes = (uint64_t)info.st_size;
    uint64_t table = (uint64_t)header.e_phnum * sizeof(ElfW(Phdr));
    if (header.e_phoff > bytes || table > bytes - header.e_phoff) {
        return false;
    }
    for (unsigned i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        off_t at = (off_t)(header.e_phoff + i * sizeof(part));
        if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part) || part.p_offset > bytes ||
            part.p_filesz > bytes - part.p_offset) {
            return false;
        }
    }
    return true;
}

static int check_whole(const char *file, char *text, size_t text_bytes)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        int rc = -errno;
        return wic_fail(rc, text, text_bytes, "%s: %s", file, strerror(-rc));
    }
    bool whole = is_whole(fd);
    close(fd);
    return whole ? 0
                 : wic_fail(-ELIBBAD, text, text_bytes, "%s is no shared object, or cut off", file);
}

int wic_plugin_load(const char *directory, const char *name, const struct wic_pattern **out_pattern,
                    char *text, size_t text_bytes)
{
    if (directory == NULL || directory[0] != '/') {
        return wic_fail(-EINVAL, text, text_bytes,
                        "the plugin directory '%s' is not an absolute path",
                        directory == NULL ? "" : directory);
    }
    size_t length = name == NULL ? 0 : strnlen(name, WIC_PATTERN_NAME_MAX);
    if (length == 0 || length == WIC_PATTERN_NAME_MAX ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length) {
        return wic_fail(-EINVAL, text, text_bytes, "'%.*s' is not a pattern's name (a-z 0-9 _)",
                        WIC_PATTERN_NAME_MAX, name == NULL ? "" : name);
    }
    char file[PATH_MAX];
    int rc = locate(directory, name, file, text, text_bytes);
    if (rc == 0) {
        rc = check_whole(file, text, text_bytes);
    }
    if (rc != 0) {
        return rc;
    }
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return wic_fail(-ELIBBAD, text, text_bytes, "%s", dlerror());
    }
    const struct wic_pattern *pattern = dlsym(library, WIC_PATTERN_SYMBOL);
    if (pattern == NULL) {
        return wic_fail(-ENOEXEC, text, text_bytes, "%s has no symbol " WIC_PATTERN_SYMBOL, file);
    }
    char why[WIC_TEXT_BYTES];
    rc = wic_pattern_check(pattern, why, sizeof(why));
    if (rc != 0) {
        return wic_fail(rc, text, text_bytes, "%s: %s", file, why);
    }
    if (strcmp(pattern->name, name) != 0) {
        return wic_fail(-EPROTO, text, text_bytes, "%s contains the pattern %s, not %s", file,
                        pattern->name, name);
    }
    rc = wic_pattern_register(pattern, why, sizeof(why));
    if (rc != 0) {
        return wic_fail(rc, text, text_bytes, "%s: %s", file, why);
    }
    *out_pattern = pattern;
    return 0;
}
