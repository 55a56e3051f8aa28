/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/socket_bind.h"

#include "config/base/clock.h"
#include "service/base/dir_lock.h"
#include "service/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LISTEN_BACKLOG 256
#define NO_FILES_MS    500 /* time until the next try if no descriptor is free */

/* Returns true if no process listens at the address `user`, or if that is unknown; binding will
 * fail then. */
static bool nobody_listens(void *user)
{
    const struct sockaddr_un *address = user;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    int rc = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : -errno;
    (void)close(fd);
    return rc != 0 && rc != -EAGAIN;
}

/* Removes the socket file of a service that has ended; a socket with a listener must stay. */
static int clear_way(const char *path, struct pb_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return pb_fail(err, PB_E_SERVICE_STATE, "%s is there and is no socket; move it away", path);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (!pb_clock_retry(PB_DIRS_PATIENCE_MS, nobody_listens, &address))
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "another service listens on %s; stop it, or choose another service.socket",
                       path);
    if (unlink(path) != 0 && errno != ENOENT)
        return pb_fail(err, PB_E_SERVICE_STATE, "cannot remove the old socket %s: %s", path,
                       strerror(errno));
    return 0;
}

/* Makes a listening socket `name` in the directory (parent is its path). An address that would be
 * too long uses /proc. */
static int listen_at(int directory, const char *parent, const char *name, mode_t mode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", parent, name);
    if (n < 0 || (size_t)n >= sizeof address.sun_path)
        (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory,
                       name);
    (void)unlinkat(directory, name,
                   0); /* file of an earlier process with this number that crashed here */
    /* The mode of the descriptor becomes that of the file, less the umask. */
    if (fchmod(fd, 0600) != 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        fchmodat(directory, name, mode, 0) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        int rc = -errno;
        (void)close(fd);
        return rc;
    }
    return fd;
}

static int publish(int directory, const char *parent, const char *path, mode_t mode,
                   struct pb_socket_bind *out)
{
    char name[64];
    struct stat st;
    (void)snprintf(name, sizeof name, ".pushbroomd-%d.sock", (int)gettid());
    int fd = listen_at(directory, parent, name, mode);
    if (fd < 0)
        return fd;
    int rc = fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                     renameat2(directory, name, AT_FDCWD, path, RENAME_NOREPLACE) == 0
                 ? 0
                 : -errno;
    if (rc != 0) {
        (void)unlinkat(directory, name, 0);
        (void)close(fd);
        return rc;
    }
    *out = (struct pb_socket_bind){fd, st.st_dev, st.st_ino};
    return 0;
}

int pb_socket_bind_again(const char *path, mode_t mode, struct pb_err *err,
                         struct pb_socket_bind *out)
{
    struct sockaddr_un address;
    char parent[PB_FILES_PATH_BYTES];
    if (strlen(path) >= sizeof address.sun_path)
        return pb_fail(err, PB_E_CONFIG_VALUE, "service.socket: %s is longer than %zu bytes", path,
                       sizeof address.sun_path - 1);
    (void)snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        (void)snprintf(parent, sizeof parent, ".");
    else
        slash[slash == parent] = '\0';
    int directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = directory < 0 ? -errno : publish(directory, parent, path, mode, out);
    if (directory >= 0)
        (void)close(directory);
    if (rc == 0 || rc == -EEXIST)
        return rc;
    return pb_fail(err, PB_E_SYSTEM, "cannot listen on %s: %s; see service.socket", path,
                   strerror(-rc));
}

int pb_socket_bind_open(const char *path, mode_t mode, struct pb_err *err,
                        struct pb_socket_bind *out)
{
    struct sockaddr_un address;
    int rc = strlen(path) < sizeof address.sun_path ? clear_way(path, err) : 0;
    rc = rc ? rc : pb_socket_bind_again(path, mode, err, out);
    if (rc == -EEXIST)
        return pb_fail(err, PB_E_SERVICE_STATE,
                       "%s was created a moment ago by another process; start again", path);
    return rc;
}

bool pb_socket_bind_is_there(const char *path, const struct pb_socket_bind *bound)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == bound->dev && st.st_ino == bound->ino;
}

int pb_socket_bind_accept(int listener, int flags, int64_t *out_again_ms)
{
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, flags | SOCK_CLOEXEC);
        if (fd >= 0 || errno == EAGAIN)
            return fd >= 0 ? fd : -EAGAIN;
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
            continue;
        *out_again_ms = pb_clock_mono_ms() + NO_FILES_MS;
        return -errno;
    }
}

void pb_socket_bind_close(const char *path, struct pb_socket_bind *bound)
{
    if (bound->fd < 0)
        return;
    if (pb_socket_bind_is_there(path, bound))
        (void)unlink(path);
    (void)close(bound->fd);
    bound->fd = -1;
}
