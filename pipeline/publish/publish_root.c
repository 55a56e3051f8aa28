/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_root.h"

#include "pipeline/io/io_fail.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the id without spaces around it. 0; -ENOENT: the file is absent, or empty because a process
 * ended while it made it; other negative errno. A longer text is cut, and no id. */
static int read_id(int products_fd, char out[PB_PUBLISH_ROOT_BYTES])
{
    struct stat st;
    int fd = openat(products_fd, PB_PUBLISH_ROOT_FILE,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = fstat(fd, &st) != 0 ? -1 : 0;
    int rc = n < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    if (rc == 0 && (n = read(fd, out, PB_PUBLISH_ROOT_BYTES - 1)) < 0)
        rc = -errno;
    (void)close(fd);
    if (rc != 0)
        return rc;
    while (n > 0 && isspace((unsigned char)out[n - 1]))
        n--;
    out[n] = '\0';
    const size_t blank = strspn(out, " \t\r\n");
    memmove(out, out + blank, (size_t)n - blank + 1);
    return st.st_size > 0 ? 0 : -ENOENT;
}

static int refuse(const char *products, const char *why, const char *id, struct pb_err *err)
{
    return pb_fail(err, PB_E_OUTPUT_ROOT,
                   "products %.200s %s: mount the file system of products; no job runs here until "
                   "then. To use another directory from now on, copy " PB_PUBLISH_ROOT_FILE
                   " of the old one into it, or write this line into that file: %s",
                   products, why, id);
}

/* A directory that cannot be read now may be the right one. */
static int refuse_unread(const char *products, int error, const char *id, struct pb_err *err)
{
    char words[128], why[160];
    (void)snprintf(why, sizeof why, "cannot be read (%s)", strerror_r(error, words, sizeof words));
    return refuse(products, why, id, err);
}

/* Checks the token of the open directory. */
static int check(int products_fd, const char *products, const char *id, struct pb_err *err)
{
    char found[PB_PUBLISH_ROOT_BYTES];
    const int rc = read_id(products_fd, found);
    if (rc == 0 && strcmp(found, id) == 0)
        return 0;
    if (rc == -ENOENT)
        return refuse(products, "has no " PB_PUBLISH_ROOT_FILE, id, err);
    if (rc == 0 || rc == -EINVAL || rc == -ELOOP)
        return refuse(products, "has the " PB_PUBLISH_ROOT_FILE " of another place", id, err);
    return refuse_unread(products, -rc, id, err);
}

static int open_products(const char *products, const char *id, struct pb_err *err)
{
    const int fd = open(products, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? refuse_unread(products, errno, id, err) : fd;
}

int pb_publish_root_open(const char *products, const char *id, struct pb_err *err)
{
    const int fd = open_products(products, id, err);
    const int rc = fd < 0 ? fd : check(fd, products, id, err);
    if (rc < 0 && fd >= 0)
        (void)close(fd);
    return rc < 0 ? rc : fd;
}

int pb_publish_root_look(const char *products, const char *id, struct pb_err *err)
{
    const int fd = pb_publish_root_open(products, id, err);
    if (fd >= 0)
        (void)close(fd);
    return fd < 0 ? fd : 0;
}

/* Writes the line into a file that is new or empty. It is emptied again if that fails. */
static int write_id(int products_fd, const char *id)
{
    char line[PB_PUBLISH_ROOT_BYTES + 1];
    const int n = snprintf(line, sizeof line, "%s\n", id);
    int fd =
        openat(products_fd, PB_PUBLISH_ROOT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        fd = openat(products_fd, PB_PUBLISH_ROOT_FILE, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)fchmod(fd, 0644); /* nodes may have other users */
    errno = EIO;
    int rc =
        write(fd, line, (size_t)n) == n && fsync(fd) == 0 && fsync(products_fd) == 0 ? 0 : -errno;
    if (rc != 0)
        (void)ftruncate(fd, 0);
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

int pb_publish_root_make(const char *products, const char *id, struct pb_err *err)
{
    char found[PB_PUBLISH_ROOT_BYTES];
    const int fd = open_products(products, id, err);
    if (fd < 0)
        return fd;
    int rc = read_id(fd, found);
    if (rc == -ENOENT) {
        rc = write_id(fd, id);
        if (rc != 0)
            (void)pb_io_fail(err, -rc, "cannot make " PB_PUBLISH_ROOT_FILE " in", products);
    } else {
        rc = check(fd, products, id, err);
    }
    (void)close(fd);
    return rc;
}
