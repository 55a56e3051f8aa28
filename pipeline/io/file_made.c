/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_made.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/io_watch.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int pb_file_made_open(struct pb_file_made *made, const char *path, struct pb_err *err)
{
    struct stat status;
    made->path = path;
    made->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (made->fd < 0)
        return pb_io_fail(err, errno, "cannot create", path);
    made->regular = fstat(made->fd, &status) == 0 && S_ISREG(status.st_mode);
    return 0;
}

static void discard(const struct pb_file_made *made)
{
    if (made->regular)
        (void)unlink(made->path);
}

int pb_file_made_finish(struct pb_file_made *made, struct pb_err *err)
{
    pb_work_begin(PB_WORK_SYNC, 0);
    pb_io_begin();
    int synced = fsync(made->fd);
    pb_io_end();
    pb_work_end();
    if (synced != 0 && errno != EINVAL && errno != EROFS)
        return pb_io_fail(err, errno, "cannot sync", made->path);
    int fd = made->fd;
    made->fd = -1;
    if (close(fd) == 0)
        return 0;
    int rc = pb_io_fail(err, errno, "cannot close", made->path);
    discard(made);
    return rc;
}

void pb_file_made_drop(struct pb_file_made *made)
{
    if (made->fd < 0)
        return;
    (void)close(made->fd);
    made->fd = -1;
    discard(made);
}
