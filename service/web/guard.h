/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_GUARD_H
#define PB_WEB_GUARD_H
/* Decides who sends a request that changes something: a person with a token of the file of tokens,
 * or the user that a proxy names. A browser sends its token once and then has a cookie, which is
 * signed with the token: a token that is changed or removed ends its cookies. Nothing is kept
 * between requests. Thread: any. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_WEB_WHO_BYTES    64
#define PB_WEB_TOKEN_LEAST  20 /* characters: too many to be guessed */
#define PB_WEB_COOKIE_BYTES 256
#define PB_WEB_COOKIE_S     43200 /* a cookie is valid for so long */

struct pb_web_guard {
    /* Path or credential (service/notify/secret.h) of lines "NAME TOKEN"; NULL = no tokens. It is
     * read for each request. */
    const char *token_file;
    const char *user_header; /* set by a proxy; NULL = none */
};

/* A request, and its headers; NULL if absent. */
struct pb_web_claim {
    bool changes; /* false: it only reads, from any page; a browser shows the answer to its own */
    const char *host, *origin, *authorization, *cookie;
    const char *user; /* value of user_header */
};

enum pb_web_verdict {
    PB_WEB_KNOWN,
    PB_WEB_UNKNOWN, /* no proof of who it is, or a wrong one */
    PB_WEB_FOREIGN, /* the page of another host sent it, or a page without encryption */
    PB_WEB_BROKEN,  /* the file of tokens cannot be used: *err */
};

/* Reads who sends a request. Anything but a token needs an Origin header of this host, because a
 * browser adds cookies and the proxy's users to requests of any page. *out_proof is "token",
 * "cookie" or "proxy". The outputs are set for PB_WEB_KNOWN only. */
enum pb_web_verdict pb_web_guard_who(const struct pb_web_guard *guard,
                                     const struct pb_web_claim *claim, int64_t now_s,
                                     char out_who[PB_WEB_WHO_BYTES], const char **out_proof,
                                     struct pb_err *err);

/* Makes the Set-Cookie header of a person of the file of tokens, or the one that removes it (who =
 * NULL). Returns false if the person is not in the file any more, or without memory. */
bool pb_web_guard_cookie(const struct pb_web_guard *guard, const char *who, int64_t now_s,
                         char out[PB_WEB_COOKIE_BYTES]);

/* Checks the file of tokens: the number of its persons, or negative and *err. */
int pb_web_guard_check(const struct pb_web_guard *guard, struct pb_err *err);
#endif
