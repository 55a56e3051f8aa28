/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHECKER_H
#define PB_CHECKER_H
/* Process that checks submitted files for the service, each in a separate child with the rights of
 * the client. A child that waits for storage is killed after PB_CHECKER_LIMIT_MS and never waited
 * for; children that cannot be killed count against their user's limit.
 *
 * The rights: a service that may change its user takes on those of the client (user, group,
 * supplementary groups). Otherwise the client passes the opened file (SCM_RIGHTS), which proves
 * that it can read it, and the child finds the same file at the path. Root and the service's own
 * user need no proof. Thread: one at a time for each object. */
#include "config/base/err.h"
#include "pipeline/io/file_identity.h"
#include "service/base/peer.h"

#define PB_CHECKER_LIMIT_MS 5000
/* limit for the process itself, without the result of a request */
#define PB_CHECKER_HANGS_MS      15000
#define PB_CHECKER_CHILDREN      64 /* limit for all users at a time */
#define PB_CHECKER_USER_CHILDREN 8  /* limit for one user */
#define PB_CHECKER_PATH_BYTES    4096

struct pb_checker {
    int fd; /* readable when pb_checker_read has a result; -1 = not started */
    int pid;
};

struct pb_check_result {
    uint64_t ticket;
    enum pb_code code; /* PB_OK: the client may read it, and it is a plain file or a folder */
    bool is_folder;    /* it is a folder, whose files are checked when they are opened */
    char identity[PB_FILE_IDENTITY_BYTES];
    char text[512]; /* message of the error */
};

/* Forks the process; preferably before there are threads and descriptors. Negative errno. */
int pb_checker_start(struct pb_checker *checker);
/* Ends the process, by SIGKILL after a second. */
void pb_checker_stop(struct pb_checker *checker);
/* Rights by which a file is checked. */
enum pb_check_proof {
    PB_CHECK_BY_USER,       /* those of the client's user */
    PB_CHECK_BY_DESCRIPTOR, /* the opened file that the client passes */
    PB_CHECK_BY_SERVICE,    /* those of the service, unless it runs as root */
};

/* Requests a check of path (absolute, shorter than PB_CHECKER_PATH_BYTES). connection: connection
 * of the client, borrowed for the call; with PB_CHECK_BY_DESCRIPTOR the opened file is read from
 * there, and the caller must not read from it until the result. Negative errno. */
int pb_checker_ask(const struct pb_checker *checker, uint64_t ticket, const char *path,
                   const struct pb_peer *peer, int connection, enum pb_check_proof proof);
/* Returns 1 and *out, 0 if there is no (further) result now, negative errno if the process is
 * gone. */
int pb_checker_read(const struct pb_checker *checker, struct pb_check_result *out);

/* --- private --- */
struct pb_check_request {
    uint64_t ticket;
    struct pb_peer peer;
    int n_groups; /* negative errno: unknown */
    gid_t groups[PB_PEER_GROUPS_MAX];
    enum pb_check_proof proof;
    char path[PB_CHECKER_PATH_BYTES];
};
/* The check itself (check_file.c); the process may lose its rights. */
void pb_check_file(const struct pb_check_request *request, int connection,
                   struct pb_check_result *out);
#endif
