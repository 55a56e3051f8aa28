/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/notify/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int path_of(const char *name, char out[PATH_MAX], struct pb_err *err)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    if (name[0] != '/' && strchr(name, '/') != NULL)
        return pb_fail(err, PB_E_NOTIFY_SECRET,
                       "%s is neither an absolute path nor the name of a credential", name);
    if (name[0] != '/' && directory == NULL)
        return pb_fail(err, PB_E_NOTIFY_SECRET,
                       "there is no credential '%s': the unit has no credentials", name);
    int n = name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name)
                           : snprintf(out, PATH_MAX, "%s/%s", directory, name);
    return n < PATH_MAX ? 0 : pb_fail(err, PB_E_NOTIFY_SECRET, "the path of a secret is too long");
}

static int check(int fd, const char *path, struct pb_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return pb_fail(err, PB_E_NOTIFY_SECRET, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return pb_fail(err, PB_E_NOTIFY_SECRET, "%s is no plain file", path);
    if ((st.st_mode & 0007) != 0)
        return pb_fail(err, PB_E_NOTIFY_SECRET,
                       "%s is open to all users (mode %04o); chmod 0640 or less", path,
                       (unsigned)(st.st_mode & 07777));
    return 0;
}

int pb_secret_read(const char *name, struct pb_secret *out, struct pb_err *err)
{
    char path[PATH_MAX];
    int rc = path_of(name, path, err);
    if (rc != 0)
        return rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return pb_fail(err, PB_E_NOTIFY_SECRET, "%s: %s", path, strerror(errno));
    rc = check(fd, path, err);
    ssize_t n = rc == 0 ? read(fd, out->text, sizeof out->text) : 0;
    (void)close(fd);
    while (n > 0 && n <= PB_SECRET_BYTES && (out->text[n - 1] == '\n' || out->text[n - 1] == '\r'))
        n--;
    if (rc == 0 && (n <= 0 || n > PB_SECRET_BYTES))
        rc = pb_fail(err, PB_E_NOTIFY_SECRET, "%s: it has no secret of 1 to %d bytes", path,
                     PB_SECRET_BYTES);
    if (rc != 0) {
        pb_secret_wipe(out);
        return rc;
    }
    out->bytes = (size_t)n;
    out->text[n] = '\0';
    return 0;
}

void pb_secret_wipe(struct pb_secret *secret)
{
    explicit_bzero(secret, sizeof *secret);
}
