/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PEER_H
#define PB_PEER_H
/* The peer of a unix socket, from the kernel: the credentials that the process had when it
 * connected. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PB_PEER_ADMINS_MAX 64
#define PB_PEER_GROUPS_MAX 256

struct pb_peer {
    int64_t uid, gid; /* -1 = not known; such a peer may change nothing */
};

/* Users who may change every job. */
struct pb_admins {
    int64_t uid[PB_PEER_ADMINS_MAX];
    size_t n;
};

/* Negative errno when the kernel does not report them; *out is then an unknown user. */
int pb_peer_of(int fd, struct pb_peer *out);
/* Supplementary groups of the peer: their number, or negative errno (-ERANGE: more than that). */
int pb_peer_groups(int fd, gid_t out[PB_PEER_GROUPS_MAX]);
/* name: of a user, or a number. False: there is no such user, or no room. */
bool pb_admins_add(struct pb_admins *admins, const char *name);
/* Root, the service's own user, and the admins. */
bool pb_peer_is_privileged(const struct pb_peer *peer, const struct pb_admins *admins);
/* Returns true if the peer may cancel or retry a job of that owner (-1 if unknown). */
bool pb_peer_may_change(const struct pb_peer *peer, const struct pb_admins *admins, int64_t owner);
#endif
