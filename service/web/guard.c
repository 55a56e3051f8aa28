/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A cookie is NAME.SECONDS.SIGNATURE: valid until that Unix time, and signed with NAME's token by
 * HMAC. The prefix __Host- makes browsers refuse it without encryption and for other hosts. */
#include "service/web/guard.h"

#include "service/notify/secret.h"
#include "service/notify/signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COOKIE     "__Host-pushbroom"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-@"

/* --- the file of tokens --- */

struct person {
    char name[PB_WEB_WHO_BYTES];
    struct pb_secret token;
};

/* Reads the line at *text and moves past it. Returns 1 and *out for a person, 0 for a line without
 * one, negative and *err for a mistake. */
static int read_line(const char **text, int number, struct person *out, struct pb_err *err)
{
    const char *line = *text, *end = strchrnul(line, '\n');
    *text = *end == '\n' ? end + 1 : end;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (end == line || *line == '#')
        return 0;
    const size_t n = strspn(line, NAME_CHARS);
    const char *token = line + n + strspn(line + n, " \t");
    const size_t n_token = token < end ? (size_t)(end - token) : 0;
    if (n == 0 || n >= sizeof out->name || token == line + n || strcspn(token, " \t") < n_token)
        return pb_fail(err, PB_E_NOTIFY_SECRET,
                       "line %d of the tokens is not NAME TOKEN; names have letters, digits, _, - "
                       "and @",
                       number);
    if (n_token < PB_WEB_TOKEN_LEAST)
        return pb_fail(err, PB_E_NOTIFY_SECRET,
                       "line %d of the tokens has a token of less than %d characters", number,
                       PB_WEB_TOKEN_LEAST);
    (void)snprintf(out->name, sizeof out->name, "%.*s", (int)n, line);
    out->token.bytes = n_token;
    (void)memcpy(out->token.text, token, n_token);
    out->token.text[n_token] = '\0';
    return 1;
}

/* Compares in a time that does not depend on the place of the first difference. */
static bool is_equal(const char *a, const char *b)
{
    const size_t n = strlen(a);
    unsigned char different = 0;
    if (strlen(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

/* Returns true if a line before `end` has the name. */
static bool is_named_before(const char *text, const char *end, const char *name)
{
    const size_t n = strlen(name);
    for (; text < end; text = strchr(text, '\n') + 1)
        if (strncmp(text, name, n) == 0 && (text[n] == ' ' || text[n] == '\t'))
            return true;
    return false;
}

/* Finds a person by the name or the token, whichever is not NULL. Returns the number of matches, or
 * negative and *err. Wipe *out. */
static int find(const struct pb_web_guard *guard, const char *name, const char *token,
                struct person *out, struct pb_err *err)
{
    struct pb_secret file;
    struct person person;
    int found = 0, rc = pb_secret_read(guard->token_file, &file, err);
    if (rc != 0)
        return rc;
    const char *text = file.text;
    for (int line = 1; *text != '\0' && rc >= 0; line++) {
        const char *begin = text;
        rc = read_line(&text, line, &person, err);
        if (rc > 0 && is_named_before(file.text, begin, person.name))
            rc = pb_fail(err, PB_E_NOTIFY_SECRET,
                         "line %d of the tokens has the name of another line", line);
        if (rc <= 0 || (name != NULL && strcmp(name, person.name) != 0) ||
            (token != NULL && !is_equal(person.token.text, token)))
            continue;
        *out = person;
        found++;
    }
    pb_secret_wipe(&file);
    explicit_bzero(&person, sizeof person);
    return rc < 0 ? rc : found;
}

int pb_web_guard_check(const struct pb_web_guard *guard, struct pb_err *err)
{
    struct person person;
    const int n = find(guard, NULL, NULL, &person, err);
    explicit_bzero(&person, sizeof person);
    return n != 0 ? n : pb_fail(err, PB_E_NOTIFY_SECRET, "the file of tokens has no line");
}

/* --- the headers --- */

/* True for a page of this host: https, or http where nothing leaves the machine. */
static bool is_own_page(const char *origin, const char *host)
{
    static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *name = strstr(origin, "://");
    if (name == NULL || host == NULL || strcasecmp(name + 3, host) != 0)
        return false;
    name += 3;
    if (strncmp(origin, "https://", 8) == 0)
        return true;
    const size_t n = name[0] == '[' ? strcspn(name, "]") + 1 : strcspn(name, ":");
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (strncmp(origin, "http://", 7) == 0 && strlen(local[i]) == n &&
            strncasecmp(name, local[i], n) == 0)
            return true;
    return false;
}

/* Copies the value of this program's cookie. Returns false if absent or too long. */
static bool find_cookie(const char *cookies, char out[PB_WEB_COOKIE_BYTES])
{
    static const char name[] = COOKIE "=";
    while (cookies != NULL && *cookies != '\0') {
        cookies += strspn(cookies, "; ");
        const size_t n = strcspn(cookies, ";");
        if (strncmp(cookies, name, sizeof name - 1) == 0 && n - sizeof name + 1 < 200) {
            (void)snprintf(out, PB_WEB_COOKIE_BYTES, "%.*s", (int)(n - (sizeof name - 1)),
                           cookies + sizeof name - 1);
            return true;
        }
        cookies += n;
    }
    return false;
}

/* Signs a name and a time with the token. */
static int sign(const struct person *person, int64_t until_s, char out[PB_SIGNATURE_BYTES])
{
    return pb_signature_make(&person->token, person->name, until_s, "pushbroom-web", 13, out);
}

static enum pb_web_verdict by_token(const struct pb_web_guard *guard, const char *token,
                                    char out_who[PB_WEB_WHO_BYTES], struct pb_err *err)
{
    struct person person;
    const int n = find(guard, NULL, token, &person, err);
    if (n > 0)
        (void)memcpy(out_who, person.name, PB_WEB_WHO_BYTES);
    explicit_bzero(&person, sizeof person);
    return n < 0 ? PB_WEB_BROKEN : n > 0 ? PB_WEB_KNOWN : PB_WEB_UNKNOWN;
}

static enum pb_web_verdict by_cookie(const struct pb_web_guard *guard, char *value, int64_t now_s,
                                     char out_who[PB_WEB_WHO_BYTES], struct pb_err *err)
{
    struct person person;
    char expected[PB_SIGNATURE_BYTES];
    char *time = strchr(value, '.'), *signature = time ? strchr(time + 1, '.') : NULL;
    if (signature == NULL)
        return PB_WEB_UNKNOWN;
    *time = *signature = '\0';
    const int64_t until_s = strtoll(time + 1, NULL, 10);
    if (until_s <= now_s || until_s > now_s + PB_WEB_COOKIE_S)
        return PB_WEB_UNKNOWN;
    const int n = find(guard, value, NULL, &person, err);
    const bool good = n > 0 && sign(&person, until_s, expected) == 0 &&
                      is_equal(expected + strlen("v1,"), signature + 1);
    if (good)
        (void)memcpy(out_who, person.name, PB_WEB_WHO_BYTES);
    explicit_bzero(&person, sizeof person);
    return n < 0 ? PB_WEB_BROKEN : good ? PB_WEB_KNOWN : PB_WEB_UNKNOWN;
}

static enum pb_web_verdict by_proxy(const char *user, char out_who[PB_WEB_WHO_BYTES])
{
    const size_t n = strlen(user);
    if (n == 0 || n >= PB_WEB_WHO_BYTES)
        return PB_WEB_UNKNOWN;
    for (size_t i = 0; i < n; i++)
        if (user[i] <= ' ' || user[i] > '~')
            return PB_WEB_UNKNOWN;
    (void)memcpy(out_who, user, n + 1);
    return PB_WEB_KNOWN;
}

enum pb_web_verdict pb_web_guard_who(const struct pb_web_guard *guard,
                                     const struct pb_web_claim *claim, int64_t now_s,
                                     char out_who[PB_WEB_WHO_BYTES], const char **out_proof,
                                     struct pb_err *err)
{
    static const char bearer[] = "Bearer ";
    char cookie[PB_WEB_COOKIE_BYTES];
    const char *authorization = claim->authorization;
    const bool has_token = guard->token_file != NULL && authorization != NULL &&
                           strncasecmp(authorization, bearer, sizeof bearer - 1) == 0;
    if (claim->changes &&
        (claim->origin == NULL ? !has_token : !is_own_page(claim->origin, claim->host)))
        return PB_WEB_FOREIGN;
    *out_proof = has_token ? "token" : "proxy";
    if (has_token)
        return by_token(guard, authorization + sizeof bearer - 1, out_who, err);
    if (guard->user_header != NULL && claim->user != NULL)
        return by_proxy(claim->user, out_who);
    *out_proof = "cookie";
    return guard->token_file != NULL && find_cookie(claim->cookie, cookie)
               ? by_cookie(guard, cookie, now_s, out_who, err)
               : PB_WEB_UNKNOWN;
}

bool pb_web_guard_cookie(const struct pb_web_guard *guard, const char *who, int64_t now_s,
                         char out[PB_WEB_COOKIE_BYTES])
{
    static const char rest[] = "; Path=/; Secure; HttpOnly; SameSite=Strict";
    struct pb_err err = {0};
    struct person person;
    char signature[PB_SIGNATURE_BYTES];
    const int64_t until_s = now_s + PB_WEB_COOKIE_S;
    if (who == NULL) {
        (void)snprintf(out, PB_WEB_COOKIE_BYTES, COOKIE "=; Max-Age=0%s", rest);
        return true;
    }
    const bool good =
        find(guard, who, NULL, &person, &err) > 0 && sign(&person, until_s, signature) == 0;
    explicit_bzero(&person, sizeof person);
    if (good)
        (void)snprintf(out, PB_WEB_COOKIE_BYTES, COOKIE "=%s.%" PRId64 ".%s; Max-Age=%d%s", who,
                       until_s, signature + strlen("v1,"), PB_WEB_COOKIE_S, rest);
    return good;
}
