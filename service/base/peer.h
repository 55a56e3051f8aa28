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
    int64_t uid, gid; /* -1 = unknown; such a peer may change nothing */
};

/* Users who may change every job. */
struct pb_admins {
    int64_t uid[PB_PEER_ADMINS_MAX];
    size_t n;
};

/* Negative errno if the kernel does not report them; *out is then an unknown user. */
int pb_peer_of(int fd, struct pb_peer *out);
/* Reads the supplementary groups of the peer. Returns their number, or negative errno (-ERANGE:
 * too many). */
int pb_peer_groups(int fd, gid_t out[PB_PEER_GROUPS_MAX]);
/* Adds a user by name or number. Returns false if the user does not exist, or there is no room. */
bool pb_admins_add(struct pb_admins *admins, const char *name);
/* Returns true for root, the service's own user, and the admins. */
bool pb_peer_is_privileged(const struct pb_peer *peer, const struct pb_admins *admins);
/* Returns true if the peer may cancel or retry a job of that owner (-1 if unknown). */
bool pb_peer_may_change(const struct pb_peer *peer, const struct pb_admins *admins, int64_t owner);
#endif
