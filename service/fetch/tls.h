/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FETCH_TLS_H
#define PB_FETCH_TLS_H
/* Mutual TLS 1.3 between nodes, by GnuTLS: both sides have a certificate of service.fetch.ca. The
 * name of a node is the first DNS name (subjectAltName) of its certificate. Files are read at each
 * connection, so that a renewed certificate is used without a restart. Thread: any, one at a time
 * for each connection. */
#include "config/base/err.h"
#include "config/service_config.h"
#include "service/jobs/store_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PB_TLS_NAME_BYTES 64
#define PB_TLS_AGAIN      (-11) /* the socket is not ready: repeat the call */

struct pb_tls;

/* Makes the connection over a connected socket (borrowed, blocking). node: name that the other
 * side must have; NULL: this is the server, and any node may connect. Negative and *err: it was
 * refused, or took too long. */
int pb_tls_open(const struct pb_fetch_config *config, int socket, const char *node,
                struct pb_err *err, struct pb_tls **out_tls);
/* Name of the other node. */
const char *pb_tls_peer(const struct pb_tls *tls);
/* Return a number of bytes, 0 at the end, PB_TLS_AGAIN, or another negative number: the connection
 * is broken. A send that returned PB_TLS_AGAIN must be repeated with the same bytes. */
ssize_t pb_tls_receive(struct pb_tls *tls, void *to, size_t bytes);
ssize_t pb_tls_send(struct pb_tls *tls, const void *from, size_t bytes);
/* True if bytes have arrived that poll(2) does not report. */
bool pb_tls_has_more(const struct pb_tls *tls);
void pb_tls_end(struct pb_tls *tls);   /* announces that no more bytes follow */
void pb_tls_close(struct pb_tls *tls); /* NULL is allowed */

/* Checks the files of the node for `pushbroom store check`: name, signer and end of the
 * certificate, the key, and the users that may read the key. Calls visit with each result, borrowed
 * for the call. Returns the number of points to mend. Thread: any. */
int pb_tls_check(const struct pb_fetch_config *config, const char *node,
                 void (*visit)(void *user, const struct pb_store_point *point), void *user);
#endif
