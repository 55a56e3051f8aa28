/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_LISTENER_H
#define PB_WEB_LISTENER_H
/* The socket that browsers, or a proxy before them, connect to. Thread: one. */
#include "config/base/err.h"
#include "service/base/socket_bind.h"

#include <stdbool.h>

#define PB_WEB_UNIX "unix:" /* prefix of the path of a Unix socket */

struct pb_web_listener {
    int fd;
    bool is_unix;
    const char *path;           /* path of the Unix socket, borrowed */
    struct pb_socket_bind bind; /* file of the Unix socket */
    char shown[160];            /* its address: "http://127.0.0.1:8080/", "unix:/run/web.sock" */
};

/* Listens at ADDRESS:PORT, [ADDRESS]:PORT or unix:/PATH. The file of a Unix socket is open to its
 * group. is_tls is for the shown address. Returns 0; -EINVAL for a malformed address, another
 * negative errno with *err. */
int pb_web_listener_open(const char *listen_at, bool is_tls, struct pb_err *err,
                         struct pb_web_listener *out);
/* Closes the socket, and removes the file of a Unix socket. */
void pb_web_listener_close(struct pb_web_listener *listener);
#endif
