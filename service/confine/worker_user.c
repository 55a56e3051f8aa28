/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system calls are used directly: libcap would be one more library for two of them. */
#include "service/confine/worker_user.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Capabilities to become the user, lend it a directory, end its processes, and take over the files
 * that it made. */
static const unsigned needed[] = {CAP_SETUID,       CAP_SETGID, CAP_CHOWN,
                                  CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL};

static bool may_change(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if ((data[CAP_TO_INDEX(needed[i])].effective & CAP_TO_MASK(needed[i])) == 0)
            return false;
    }
    return true;
}

void pb_worker_user_find(const char *name, struct pb_worker_user *out_user)
{
    *out_user = (struct pb_worker_user){.own = false};
    char *why = out_user->why;
    size_t n = sizeof out_user->why;
    const struct passwd *user = name[0] != '\0' ? getpwnam(name) : NULL;
    if (name[0] == '\0')
        (void)snprintf(why, n, "the service's user");
    else if (!may_change())
        (void)snprintf(why, n, "the service's user (which may not change to another)");
    else if (user == NULL)
        (void)snprintf(why, n, "the service's user (there is no user '%.60s')", name);
    else if (user->pw_uid == 0 || user->pw_uid == geteuid())
        (void)snprintf(why, n, "the service's user ('%.60s' is root or the service's)", name);
    else {
        out_user->own = true;
        out_user->uid = user->pw_uid;
        out_user->gid = user->pw_gid;
        (void)snprintf(why, n, "user %.60s", name);
    }
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    (void)memset(none, 0, sizeof none);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, none) == 0 ? 0 : -errno;
}

int pb_worker_user_become(const struct pb_worker_user *user, struct pb_err *err)
{
    if (!user->own)
        return 0;
    if (setgroups(0, NULL) != 0 || setresgid(user->gid, user->gid, user->gid) != 0 ||
        setresuid(user->uid, user->uid, user->uid) != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot become %s: %s", user->why, strerror(errno));
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = drop_capabilities();
    return rc == 0 ? 0
                   : pb_fail(err, PB_E_SYSTEM, "cannot give up capabilities: %s", strerror(-rc));
}

void pb_worker_user_keep_ambient(void)
{
    bool all = true;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        all = all && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, needed[i], 0, 0) == 1;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (size_t i = 0; all && i < sizeof needed / sizeof needed[0]; i++)
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i], 0, 0);
}
