/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order matters: the change of user first (seccomp would forbid it), then Landlock and the
 * limits, seccomp last because it forbids the calls that the other steps need. */
#include "service/confine/confine.h"
#include "config/config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int limit(int what, uint64_t most, struct pb_err *err)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) != 0)
        return 0;
    if (now.rlim_max < most)
        most = now.rlim_max;
    struct rlimit wanted = {most, most};
    if (setrlimit((__rlimit_resource_t)what, &wanted) != 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot set a resource limit: %s", strerror(errno));
    return 0;
}

static void describe(const struct pb_confine *confine, int abi, bool seccomp,
                     char text[PB_CONFINE_TEXT_BYTES])
{
    char landlock[100];
    if (abi > 0)
        (void)snprintf(landlock, sizeof landlock, "Landlock (version %d)", abi);
    else
        (void)snprintf(landlock, sizeof landlock, "no Landlock (%s)", pb_landlock_reason(abi));
    (void)snprintf(text, PB_CONFINE_TEXT_BYTES, "%s, %s, %s%s; a process a job", landlock,
                   seccomp ? "seccomp" : "no seccomp in this kernel",
                   confine->user != NULL ? confine->user->why : "the service's user",
                   confine->address_bytes > 0 ? ", bounded memory" : "");
}

void pb_confine_hide(void)
{
#ifndef PB_SANITIZED /* the leak search of sanitizers attaches to the process */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

/* Without TZ, glibc looks at /etc/localtime in each call of localtime and mktime. */
static void keep_time_zone(void)
{
    (void)setenv("TZ", ":/etc/localtime", 0);
    tzset();
}

int pb_confine_apply(const struct pb_confine *confine, struct pb_err *err,
                     char text[PB_CONFINE_TEXT_BYTES])
{
    int rc = confine->user != NULL ? pb_worker_user_become(confine->user, err) : 0;
    if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot give up new privileges: %s", strerror(errno));
    /* Processes of the same user cannot attach to it or read its memory, and it leaves no core
     * dump. */
    if (rc == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot become undumpable: %s", strerror(errno));
    rc = rc ? rc : limit(RLIMIT_CORE, 0, err);
    if (rc == 0 && confine->address_bytes > 0)
        rc = limit(RLIMIT_AS, confine->address_bytes, err);
    keep_time_zone();
    int landlock = pb_landlock_abi();
    rc = rc ? rc : pb_landlock_apply(confine, err);
    int seccomp = rc ? rc : pb_seccomp_apply(err);
    if (seccomp < 0)
        return seccomp;
    describe(confine, landlock, seccomp > 0, text);
    return 0;
}

void pb_confine_describe(const struct pb_confine *confine, char text[PB_CONFINE_TEXT_BYTES])
{
    describe(confine, pb_landlock_abi(), prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0, text);
}

void pb_confine_config(const struct pb_config *config, char text[PB_CONFINE_TEXT_BYTES])
{
    struct pb_worker_user user;
    pb_worker_user_find(config->service.worker_user, &user);
    pb_confine_describe(&(struct pb_confine){.address_bytes = 1, .user = &user}, text);
}
