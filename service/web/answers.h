/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_ANSWERS_H
#define PB_WEB_ANSWERS_H
/* Answers of all addresses. Thread: that of the connection. */
#include "service/web/reply.h"

#include <limits.h>
#include <stdatomic.h>

struct pb_web_catalog;
struct pb_web_events;
struct pb_web_options;
struct pb_web_ring;
struct pb_web_upstream;

/* Sources of all answers; owned by the server, the same for all connections. */
struct pb_web_site {
    const struct pb_web_options *options;
    struct pb_web_upstream *upstream;
    struct pb_web_ring *ring;
    struct pb_web_catalog *catalog;
    struct pb_web_events *events;
    char confined_to[PATH_MAX]; /* products that the process may read; "" = any, set at the start */
    atomic_uint_fast64_t requests;
};

/* Body of a request; zeroed: none. */
struct pb_web_body {
    char *text; /* n bytes, without a NUL at the end */
    size_t n;
};

/* Decides by the headers of a request, before it is complete, whether it is refused. MHD_YES and no
 * response queued: it is not. path: as received. */
enum MHD_Result pb_web_refuse(struct pb_web_site *site, struct MHD_Connection *connection,
                              const char *path, const char *method);
/* Answers a request that is complete. */
enum MHD_Result pb_web_answer(struct pb_web_site *site, struct MHD_Connection *connection,
                              const char *path, const char *method, const struct pb_web_body *body);
#endif
