/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_REQUEST_H
#define PB_WEB_REQUEST_H
/* Reads the untrusted texts of a request: the path, the Range and Host headers, and the query of a
 * list. Pure functions; thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_WEB_PATH_BYTES    2048 /* limit of a decoded path */
#define PB_WEB_PATH_PARTS    16
#define PB_WEB_LIST_MAX      500 /* jobs in a reply */
#define PB_WEB_ID_BYTES      64
#define PB_WEB_PRODUCTS_PATH "/products/"
#define PB_WEB_BODY_MAX      65536 /* limit of the body of a request */

enum pb_web_place {
    PB_WEB_NOT_FOUND,
    PB_WEB_ASSET,   /* a file of the page; name: its path */
    PB_WEB_INFO,    /* /api/info */
    PB_WEB_JOBS,    /* /api/jobs */
    PB_WEB_JOB,     /* /api/jobs/ID; name: the id */
    PB_WEB_STEPS,   /* /api/jobs/ID/events; name: the id */
    PB_WEB_GRAPHS,  /* /api/graphs */
    PB_WEB_EVENTS,  /* /events */
    PB_WEB_METRICS, /* /metrics */
    PB_WEB_PRODUCT, /* /products/PATH; name: the path below the directory of products */
    PB_WEB_SESSION, /* /api/session */
    PB_WEB_ACT,     /* /api/jobs/ID/ACTION; name: the id */
    PB_WEB_STAC,    /* /stac and below; name: the path after "/stac/", "" for /stac itself */
    PB_WEB_SEARCH,  /* /stac/search; name as PB_WEB_STAC */
    PB_WEB_OGC, /* /conformance, /processes, /jobs and below; name: the path without its slash */
    PB_WEB_OGC_JOB, /* /jobs/ID; name as PB_WEB_OGC */
    PB_WEB_EXECUTE, /* /processes/NAME/execution; name as PB_WEB_OGC */
};

enum pb_web_action { PB_WEB_CANCEL, PB_WEB_RETRY, PB_WEB_AGAIN, PB_WEB_DROP, PB_WEB_ACTIONS };

struct pb_web_route {
    enum pb_web_place place;
    enum pb_web_action action;    /* action of PB_WEB_ACT */
    char name[PB_WEB_PATH_BYTES]; /* decoded; its parts are never empty, "." or ".." */
};

/* Returns true for letters, digits and hyphens only, as in the id of a job. */
bool pb_web_is_word(const char *text);
/* Decodes a value of a query (percent-encoded, '+' = a space). Returns its bytes without the NUL,
 * or -1: a broken escape, a NUL, or too long (also "" without a byte for the NUL). */
int pb_web_value(const char *text, char *out, size_t bytes);
/* The same of a path, in which '+' is itself. */
int pb_web_path(const char *text, char *out, size_t bytes);

/* Finds the place of a request path as received (percent-encoded, without a query). */
void pb_web_route(const char *path, struct pb_web_route *out);

/* The word of an action in addresses and in methods of the socket: "retry". Static. */
const char *pb_web_action_name(enum pb_web_action action);
/* Methods of a place for the header Allow: "GET, HEAD". Static. */
const char *pb_web_methods(enum pb_web_place place);
bool pb_web_allows(enum pb_web_place place, const char *method);
/* Returns true for requests that need a body: JSON. */
bool pb_web_has_body(enum pb_web_place place, const char *method);

enum pb_web_range {
    PB_WEB_RANGE_WHOLE,  /* no range, several ranges, or a malformed header: the whole file */
    PB_WEB_RANGE_PART,   /* one range */
    PB_WEB_RANGE_OUTSIDE /* the range has no byte of the file */
};

/* Reads a Range header (NULL if absent) for a file of `size` bytes (RFC 9110, 14.2). The outputs
 * are set for PB_WEB_RANGE_PART only. */
enum pb_web_range pb_web_range(const char *text, uint64_t size, uint64_t *out_first,
                               uint64_t *out_bytes);

/* Returns true if the Host header names this server: localhost, an address, or one of the n names;
 * with any port. A page of another host whose name was made to resolve to this address (DNS
 * rebinding) sends its own name. */
bool pb_web_host_is_ours(const char *host, const char *const *names, size_t n);

/* Parameters of job.list for the query of /api/jobs, whose values are NULL if absent: JSON,
 * malloc'd. NULL if a value is malformed, or if out of memory. */
char *pb_web_list_params(const char *before, const char *limit, const char *status);

/* Reads the priority in the query of an action, -100 to 100; NULL = `standard`. */
bool pb_web_priority(const char *text, int64_t standard, int64_t *out);

/* Address of a file below the directory of products, percent-encoded and malloc'd. NULL if the
 * path is not below it, or if out of memory. */
char *pb_web_href(const char *path, const char *products);
#endif
