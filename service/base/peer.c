/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/peer.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define USER_BYTES 16384 /* texts of an entry of the user database */

int pb_peer_of(int fd, struct pb_peer *out)
{
    struct ucred credentials;
    socklen_t bytes = sizeof credentials;
    *out = (struct pb_peer){-1, -1};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0)
        return -errno;
    *out = (struct pb_peer){credentials.uid, credentials.gid};
    return 0;
}

int pb_peer_groups(int fd, gid_t out[PB_PEER_GROUPS_MAX])
{
    socklen_t bytes = PB_PEER_GROUPS_MAX * sizeof out[0];
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, out, &bytes) != 0)
        return -errno;
    return (int)(bytes / sizeof out[0]);
}

bool pb_admins_add(struct pb_admins *admins, const char *name)
{
    char *end, text[USER_BYTES];
    unsigned long number = strtoul(name, &end, 10);
    struct passwd space, *user = NULL;
    (void)getpwnam_r(name, &space, text, sizeof text, &user);
    bool is_number = name[0] >= '0' && name[0] <= '9' && *end == '\0' && number < UINT32_MAX;
    if (admins->n == PB_PEER_ADMINS_MAX || (user == NULL && !is_number))
        return false;
    admins->uid[admins->n++] = user != NULL ? (int64_t)user->pw_uid : (int64_t)number;
    return true;
}

bool pb_peer_is_privileged(const struct pb_peer *peer, const struct pb_admins *admins)
{
    bool found = peer->uid == 0 || peer->uid == (int64_t)geteuid();
    for (size_t i = 0; admins != NULL && i < admins->n; i++)
        found = found || admins->uid[i] == peer->uid;
    return found && peer->uid >= 0;
}

bool pb_peer_may_change(const struct pb_peer *peer, const struct pb_admins *admins, int64_t owner)
{
    return peer->uid >= 0 && (peer->uid == owner || pb_peer_is_privileged(peer, admins));
}
