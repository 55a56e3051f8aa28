/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIPT_MS 20000 /* until TCP confirms what was sent; the other end may have vanished */

/* Splits "ADDRESS:PORT" and finds what it stands for. Returns 0 or -EINVAL. */
static int resolve(const char *listen_at, struct addrinfo **out_found)
{
    char host[64], port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    const char *colon = strrchr(listen_at, ':');
    const size_t n = colon ? (size_t)(colon - listen_at) : 0;
    const bool brackets = n >= 2 && listen_at[0] == '[' && listen_at[n - 1] == ']';
    if (n == 0 || n >= sizeof host || strlen(colon + 1) >= sizeof port)
        return -EINVAL;
    (void)snprintf(host, sizeof host, "%.*s", (int)(brackets ? n - 2 : n), listen_at + brackets);
    (void)snprintf(port, sizeof port, "%s", colon + 1);
    return strspn(port, "0123456789") == strlen(port) && port[0] != '\0' && atoi(port) <= 65535 &&
                   getaddrinfo(host, port, &hints, out_found) == 0
               ? 0
               : -EINVAL;
}

/* Writes the address that the kernel chose. */
static void show(struct pb_web_listener *listener, bool is_tls)
{
    struct sockaddr_storage bound = {0};
    socklen_t n_bound = sizeof bound;
    char host[64], port[8];
    if (getsockname(listener->fd, (struct sockaddr *)&bound, &n_bound) == 0 &&
        getnameinfo((struct sockaddr *)&bound, n_bound, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        (void)snprintf(listener->shown, sizeof listener->shown,
                       strchr(host, ':') ? "%s://[%s]:%s/" : "%s://%s:%s/",
                       is_tls ? "https" : "http", host, port);
}

static int open_tcp(const char *listen_at, struct pb_err *err, struct pb_web_listener *out)
{
    struct addrinfo *found = NULL;
    if (resolve(listen_at, &found) != 0)
        return pb_fail(err, PB_E_USAGE,
                       "cannot listen on %s: not ADDRESS:PORT or unix:/PATH, such as "
                       "127.0.0.1:8080",
                       listen_at);
    int rc = 0, on = 1, receipt_ms = RECEIPT_MS; /* connections inherit the latter */
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &receipt_ms, sizeof receipt_ms) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 256) != 0)
        rc = pb_fail(err, PB_E_SYSTEM, "cannot listen on %s: %s", listen_at, strerror(errno));
    freeaddrinfo(found);
    if (rc != 0 && fd >= 0)
        (void)close(fd);
    out->fd = fd;
    return rc;
}

int pb_web_listener_open(const char *listen_at, bool is_tls, struct pb_err *err,
                         struct pb_web_listener *out)
{
    const size_t n = sizeof PB_WEB_UNIX - 1;
    *out = (struct pb_web_listener){.fd = -1, .bind.fd = -1};
    out->is_unix = strncmp(listen_at, PB_WEB_UNIX, n) == 0;
    if (!out->is_unix) {
        const int rc = open_tcp(listen_at, err, out);
        if (rc == 0)
            show(out, is_tls);
        return rc;
    }
    out->path = listen_at + n;
    (void)snprintf(out->shown, sizeof out->shown, "%s", listen_at);
    if (out->path[0] != '/')
        return pb_fail(err, PB_E_USAGE, "cannot listen on %s: the path must begin with '/'",
                       listen_at);
    const int rc = pb_socket_bind_open(out->path, 0660, err, &out->bind);
    out->fd = out->bind.fd;
    return rc;
}

void pb_web_listener_close(struct pb_web_listener *listener)
{
    if (listener->is_unix)
        pb_socket_bind_close(listener->path, &listener->bind);
    else if (listener->fd >= 0)
        (void)close(listener->fd);
    listener->fd = -1;
}
