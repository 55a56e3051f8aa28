/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HTTP_H
#define PB_HTTP_H
/* Requests to the HTTP server of an entry of notify, by libcurl. Certificates and names of servers
 * are verified; redirections, proxies of the environment and .netrc are ignored: each request is
 * sent to the configured address. One thread for each object. */
#include "service/notify/sender.h"
#include "service/notify/stop.h"

#include <stddef.h>

struct pb_http;
struct pb_notify_config;

/* All pointers are borrowed. */
struct pb_http_request {
    const char *method; /* "POST", "PUT" */
    const char *url;
    const char *type; /* header Content-Type */
    const char *const *headers;
    size_t n_headers; /* further lines */
    const char *body;
    size_t bytes;
};

/* Both are borrowed until destroy. NULL = out of memory. */
struct pb_http *pb_http_create(const struct pb_notify_config *notify, const struct pb_stop *stop);
void pb_http_destroy(struct pb_http *http);
const struct pb_notify_config *pb_http_notify(const struct pb_http *http);
/* Sends a request, with the bearer token of the entry. Returns the status of the answer, with *why
 * set as for a refusal ("<url> answers 404: <text>", and the wait that the server requests); 0 =
 * no answer, or no token: *why. */
int pb_http_send(struct pb_http *http, const struct pb_http_request *request,
                 struct pb_sent_why *why);
/* Called once in the program, before the first thread and after the last. */
void pb_http_init(void);
void pb_http_fini(void);
#endif
