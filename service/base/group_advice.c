/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/group_advice.h"

#include "service/base/peer.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* Returns true if one of the process's groups has that number. */
static bool has_group(gid_t wanted)
{
    gid_t groups[PB_PEER_GROUPS_MAX];
    int n = getgroups(PB_PEER_GROUPS_MAX, groups);
    bool has = getegid() == wanted;
    for (int i = 0; i < n && !has; i++)
        has = groups[i] == wanted;
    return has;
}

/* Returns true if the group database lists the user as a member, who then needs a new login. */
static bool is_member(const struct group *group, const char *user)
{
    bool is = false;
    for (char **member = group->gr_mem; *member != NULL && !is; member++)
        is = strcmp(*member, user) == 0;
    return is;
}

int pb_group_advice(struct pb_err *err, const char *path, const struct stat *st)
{
    if (has_group(st->st_gid))
        return pb_fail(err, PB_E_SERVICE_GROUP,
                       "%s: %s, although you are in its group; its mode is %04o", path,
                       strerror(EACCES), (unsigned)st->st_mode & 07777);
    if (st->st_gid == 0)
        return pb_fail(err, PB_E_SERVICE_GROUP, "only root may use %s: run the command with sudo",
                       path);
    const struct passwd *own = getpwuid(geteuid());
    const struct group *group = getgrgid(st->st_gid);
    if (group == NULL || own == NULL)
        return pb_fail(err, PB_E_SERVICE_GROUP,
                       "you are not in the group with the id %d, which may use %s", (int)st->st_gid,
                       path);
    if (is_member(group, own->pw_name))
        return pb_fail(err, PB_E_SERVICE_GROUP,
                       "this login is older than your membership in the group %s, which may use "
                       "%s: log in again",
                       group->gr_name, path);
    return pb_fail(err, PB_E_SERVICE_GROUP,
                   "you are not in the group %s, which may use %s: sudo adduser %s %s, then log in "
                   "again",
                   group->gr_name, path, own->pw_name, group->gr_name);
}
