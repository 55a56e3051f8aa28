/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * glibc has no wrappers for Landlock and older kernel headers lack its later rights, therefore
 * this file has the numbers of the kernel's ABI. Rights that a kernel does not support are not
 * requested. */
#include "service/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_TRUNCATE  (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define NET_TCP_BOTH 3ULL         /* ABI 4: bind, connect */
#define SCOPE_BOTH   3ULL         /* ABI 6: abstract sockets, signals */

#define FS_READ                                                                                    \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE)
#define FS_FILES                                                                                   \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |  \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE)
#define FS_FILE_ONLY                                                                               \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE |   \
     FS_TRUNCATE | FS_IOCTL_DEV)

/* Argument of ABI 6; older kernels read a part of it, by its size. */
struct ruleset {
    uint64_t handled_access_fs, handled_access_net, scoped;
};

/* Files that libraries read late: tables of GDAL and PROJ, character sets, time zones, numbers of
 * cores. No files of /proc, except for the runtimes of sanitizers. */
static const struct {
    const char *path;
    uint64_t rights;
} known[] = {
    {"/usr/share/proj", FS_READ},
    {"/usr/share/gdal", FS_READ},
    {"/usr/share/zoneinfo", FS_READ},
    {"/usr/lib", FS_READ},
    {"/usr/lib64", FS_READ},
    {"/lib", FS_READ},
    {"/lib64", FS_READ},
    {"/etc/ld.so.cache", FS_READ},
    {"/etc/localtime", FS_READ},
#ifdef PB_SANITIZED
    {"/proc/self", FS_READ},
    {"/proc/sys/vm/overcommit_memory", FS_READ},
#endif
    {"/sys/devices/system/cpu", FS_READ},
    {"/sys/devices/system/node", FS_READ},
    {"/dev/null", FS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE},
    {"/dev/urandom", FS_READ},
};

int pb_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : (int)abi;
}

const char *pb_landlock_reason(int abi)
{
    return abi == -ENOSYS  ? "this kernel lacks it, or a container's filter hides it"
           : abi == -EPERM ? "a filter of system calls, such as a container's, forbids it"
                           : "it is off in this kernel; see lsm= of its command line";
}

static uint64_t rights_of(int abi)
{
    uint64_t all = (1ULL << 13) - 1;
    if (abi >= 2)
        all |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        all |= FS_TRUNCATE;
    if (abi >= 5)
        all |= FS_IOCTL_DEV;
    return all;
}

/* Adds a rule for a path; a path that does not exist needs no rule. */
static int allow(int ruleset, const char *path, uint64_t rights, uint64_t handled)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rights &= FS_FILE_ONLY;
    struct landlock_path_beneath_attr beneath = {.allowed_access = rights & handled,
                                                 .parent_fd = fd};
    long rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    int error = rc != 0 ? errno : 0;
    (void)close(fd);
    return -error;
}

static int fill(int ruleset, const struct pb_confine *confine, uint64_t handled)
{
    static const char *const data[] = {"PROJ_LIB", "PROJ_DATA", "GDAL_DATA"};
    int rc = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && rc == 0; i++)
        rc = allow(ruleset, known[i].path, known[i].rights, handled);
    for (size_t i = 0; i < sizeof data / sizeof data[0] && rc == 0; i++) {
        const char *path = getenv(data[i]);
        if (path != NULL && path[0] == '/' && path[1] != '\0' && strchr(path, ':') == NULL)
            rc = allow(ruleset, path, FS_READ, handled);
    }
    if (rc == 0 && confine->directory != NULL)
        rc = allow(ruleset, confine->directory, FS_FILES, handled);
    return rc;
}

/* Makes a ruleset without rules, which forbids everything but signals and abstract sockets if
 * `scoped` is 0. Returns its descriptor, or negative errno. */
static int make_ruleset(int abi, uint64_t scoped, uint64_t *out_handled)
{
    struct ruleset attr = {.handled_access_fs = rights_of(abi)};
    size_t bytes = sizeof attr.handled_access_fs;
    if (abi >= 4) {
        attr.handled_access_net = NET_TCP_BOTH;
        bytes = 2 * sizeof(uint64_t);
    }
    if (abi >= 6) {
        attr.scoped = scoped;
        bytes = sizeof attr;
    }
    *out_handled = attr.handled_access_fs;
    const long fd = syscall(SYS_landlock_create_ruleset, &attr, bytes, 0);
    return fd < 0 ? -errno : (int)fd;
}

/* Applies the ruleset to the calling thread, unless rc is a failure, and closes it. */
static int enter(int ruleset, int rc)
{
    if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        rc = -errno;
    (void)close(ruleset);
    return rc;
}

int pb_landlock_apply(const struct pb_confine *confine, struct pb_err *err)
{
    const int abi = pb_landlock_abi();
    uint64_t handled = 0;
    if (abi <= 0)
        return 0;
    const int ruleset = make_ruleset(abi, SCOPE_BOTH, &handled);
    if (ruleset < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot make a Landlock ruleset: %s", strerror(-ruleset));
    const int rc = enter(ruleset, fill(ruleset, confine, handled));
    return rc == 0 ? 0
                   : pb_fail(err, PB_E_SYSTEM, "cannot confine the worker with Landlock: %s",
                             strerror(-rc));
}

/* Abstract sockets stay open: one of them may be systemd's, which gets READY and STOPPING. */
int pb_landlock_readers(const struct pb_landlock_directory *directories, size_t n,
                        struct pb_err *err)
{
    const uint64_t reads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    const int abi = pb_landlock_abi();
    uint64_t handled = 0;
    if (abi <= 0)
        return 0;
    const int ruleset = make_ruleset(abi, 0, &handled);
    if (ruleset < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot make a Landlock ruleset: %s", strerror(-ruleset));
    int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : -errno;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (directories[i].path != NULL)
            rc = allow(ruleset, directories[i].path,
                       directories[i].removes ? LANDLOCK_ACCESS_FS_REMOVE_FILE : reads, handled);
#ifdef PB_SANITIZED
    rc = rc ? rc : allow(ruleset, "/proc/self", reads, handled);
#endif
    rc = enter(ruleset, rc);
    return rc == 0 ? 1
                   : pb_fail(err, PB_E_SYSTEM, "cannot confine the program with Landlock: %s",
                             strerror(-rc));
}
