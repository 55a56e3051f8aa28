/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/writers.h"

#include "service/confine/worker_user.h"
#include "service/inbox/writer_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int pb_writers_none(int fd)
{
    /* When another process waits for the lease, the kernel sends SIGIO, which would end this
     * process. */
    (void)signal(SIGIO, SIG_IGN);
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
        return 0;
    if (errno == EAGAIN)
        return -EBUSY;
    return errno == EACCES || errno == EPERM ? -EPERM : -ENOTSUP;
}

int pb_writers_look(int fd)
{
    int rc = pb_writers_none(fd);
    if (rc != -EPERM && rc != -ENOTSUP)
        return rc;
    return pb_writer_scan(fd) > 0 ? -EBUSY : rc;
}

bool pb_writers_still_none(int fd)
{
    return fcntl(fd, F_GETLEASE) == F_RDLCK;
}

static bool have_cap_lease(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    return (data[CAP_TO_INDEX(CAP_LEASE)].effective & CAP_TO_MASK(CAP_LEASE)) != 0;
}

int pb_writers_probe(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    /* This descriptor is open for writing: a filesystem with leases reports "busy". */
    int rc = pb_writers_none(fd);
    (void)close(fd);
    if (rc != -EBUSY)
        return rc == 0 ? -ENOTSUP : rc;
    return have_cap_lease() ? 0 : -EPERM;
}

const char *pb_writers_word(int rc)
{
    return rc == -EPERM   ? "detected with certainty only for the service's own files, because it "
                            "lacks CAP_LEASE; for others only by /proc and inotify"
           : rc == -EBUSY ? "open for writing"
           : rc == -ENOTSUP ? "not detected with certainty, because the inbox's filesystem has no "
                              "leases; only by /proc and inotify"
                            : "seen";
}

void pb_writers_keep_capability_here(void)
{
    pb_worker_user_keep_ambient();
}
