/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Webhooks, by libcurl. Certificates and names of servers are verified; redirections, proxies of
 * the environment and .netrc are left out: an event goes where the configuration says. */
#include "config/base/clock.h"
#include "service/notify/secret.h"
#include "service/notify/sender.h"
#include "service/notify/signature.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WAIT_MAX_S   3600
#define REPLY_BYTES  200 /* of a refusal's text, for the log */
#define HEADER_BYTES (PB_SECRET_BYTES + 40)
#define ANSWER_MOST  (UINT64_C(64) << 10) /* bytes of an answer that are read, with its headers */

struct webhook {
    const struct pb_notify_config *notify;
    const struct pb_stop *stop;
    CURL *curl;
    char error[CURL_ERROR_SIZE];
    char reply[REPLY_BYTES + 1];
    size_t n_reply;
    uint64_t n_answer;
    bool has_body; /* all headers came, so the status is the answer's */
};

static void destroy(void *sender)
{
    struct webhook *hook = sender;
    curl_easy_cleanup(hook->curl);
    free(hook);
}

static void *create(const struct pb_notify_config *notify, const struct pb_stop *stop)
{
    struct webhook *hook = calloc(1, sizeof *hook);
    if (hook == NULL)
        return NULL;
    hook->notify = notify;
    hook->stop = stop;
    hook->curl = curl_easy_init();
    if (hook->curl != NULL)
        return hook;
    free(hook);
    return NULL;
}

/* libcurl asks about once a second. */
static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct webhook *hook = user;
    (void)a, (void)b, (void)c, (void)d;
    return pb_stop_is_set(hook->stop);
}

/* Any other result than the given number of bytes ends the transfer. */
static size_t count(struct webhook *hook, size_t bytes)
{
    hook->n_answer += bytes;
    return hook->n_answer <= ANSWER_MOST ? bytes : 0;
}

static size_t on_header(char *text, size_t size, size_t n, void *user)
{
    (void)text;
    return count(user, size * n);
}

/* Keeps the beginning of a reply and drops the rest. */
static size_t on_reply(char *text, size_t size, size_t n, void *user)
{
    struct webhook *hook = user;
    size_t bytes = size * n, room = REPLY_BYTES - hook->n_reply;
    hook->has_body = true;
    size_t kept = bytes < room ? bytes : room;
    (void)memcpy(hook->reply + hook->n_reply, text, kept);
    hook->n_reply += kept;
    hook->reply[hook->n_reply] = '\0';
    return count(hook, bytes);
}

/* Adds to the list; false = out of memory, the list is then freed. */
static bool add(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl_slist_append(*list, line);
    if (more == NULL)
        curl_slist_free_all(*list);
    *list = more;
    return more != NULL;
}

static int add_signature(struct webhook *hook, const struct pb_letter *letter,
                         struct curl_slist **list, struct pb_err *err)
{
    char line[300], signature[PB_SIGNATURE_BYTES];
    struct pb_secret secret;
    int64_t now_s = pb_clock_wall_ms() / 1000;
    int rc = pb_secret_read(hook->notify->secret, &secret, err);
    if (rc != 0)
        return rc;
    rc = pb_signature_make(&secret, letter->id, now_s, letter->body, letter->bytes, signature);
    pb_secret_wipe(&secret);
    if (rc != 0)
        return pb_fail(err, PB_E_NOTIFY_SECRET, "%s: the text after whsec_ is not base64",
                       hook->notify->secret);
    (void)snprintf(line, sizeof line, "webhook-id: %s", letter->id);
    bool ok = add(list, line);
    (void)snprintf(line, sizeof line, "webhook-timestamp: %lld", (long long)now_s);
    ok = ok && add(list, line);
    (void)snprintf(line, sizeof line, "webhook-signature: %s", signature);
    ok = ok && add(list, line);
    return ok ? 0 : pb_fail(err, PB_E_MEMORY, "out of memory");
}

static int add_token(struct webhook *hook, struct curl_slist **list, struct pb_err *err)
{
    struct pb_secret token;
    char line[HEADER_BYTES];
    int rc = pb_secret_read(hook->notify->token, &token, err);
    if (rc != 0)
        return rc;
    if (strcspn(token.text, "\r\n") != token.bytes)
        rc = pb_fail(err, PB_E_NOTIFY_SECRET, "%s: a token is one line", hook->notify->token);
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s", token.text);
    if (rc == 0 && !add(list, line))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    explicit_bzero(line, sizeof line);
    pb_secret_wipe(&token);
    return rc;
}

/* NULL and *err. */
static struct curl_slist *headers_of(struct webhook *hook, const struct pb_letter *letter,
                                     struct pb_err *err)
{
    struct curl_slist *list = NULL;
    if (!add(&list, "Content-Type: application/cloudevents+json; charset=UTF-8") ||
        !add(&list, "Expect:")) {
        (void)pb_fail(err, PB_E_MEMORY, "out of memory");
        return NULL;
    }
    int rc = hook->notify->secret ? add_signature(hook, letter, &list, err) : 0;
    if (rc == 0 && hook->notify->token != NULL)
        rc = add_token(hook, &list, err);
    if (rc != 0) {
        curl_slist_free_all(list);
        return NULL;
    }
    return list;
}

static void set_options(struct webhook *hook, const struct pb_letter *letter,
                        struct curl_slist *headers)
{
    CURL *curl = hook->curl;
    curl_easy_reset(curl); /* which keeps connections */
    (void)curl_easy_setopt(curl, CURLOPT_URL, hook->notify->url);
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    (void)curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (hook->notify->ca_file != NULL)
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, hook->notify->ca_file);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)hook->notify->timeout_ms);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, hook);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, hook);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_reply);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, hook);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, hook->error);
    (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "pushbroom-notify/" PB_VERSION);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, letter->body);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)letter->bytes);
}

/* What is wrong with the event itself will not be right at the next try. */
static bool is_about_the_event(long status)
{
    return status == 400 || status == 413 || status == 422;
}

static enum pb_sent judge(struct webhook *hook, CURLcode code, struct pb_sent_why *why)
{
    long status = 0;
    curl_off_t wait_s = 0;
    (void)curl_easy_getinfo(hook->curl, CURLINFO_RESPONSE_CODE, &status);
    /* A receiver has answered once the headers are there: a text without end changes nothing of
     * that, and the event would come twice. */
    if (code != CURLE_OK && !hook->has_body) {
        pb_sent_fail(why, "%s: %s", hook->notify->url,
                     hook->error[0] ? hook->error : curl_easy_strerror(code));
        return PB_SENT_NOT;
    }
    (void)curl_easy_getinfo(hook->curl, CURLINFO_RETRY_AFTER, &wait_s);
    if (status >= 200 && status < 300)
        return PB_SENT;
    why->wait_ms = (wait_s > WAIT_MAX_S ? WAIT_MAX_S : (int64_t)wait_s) * 1000;
    pb_sent_fail(why, "%s answers %ld%s%s", hook->notify->url, status, hook->n_reply ? ": " : "",
                 hook->reply);
    return is_about_the_event(status) ? PB_SENT_REFUSED : PB_SENT_NOT;
}

static enum pb_sent send_letter(void *sender, const struct pb_letter *letter,
                                struct pb_sent_why *why)
{
    struct webhook *hook = sender;
    struct pb_err err = {0};
    struct curl_slist *headers = headers_of(hook, letter, &err);
    if (headers == NULL) {
        pb_sent_fail(why, "%s [%s]", err.msg, pb_code_id(err.code));
        return PB_SENT_NOT;
    }
    hook->error[0] = hook->reply[0] = '\0';
    hook->n_reply = 0;
    hook->n_answer = 0;
    hook->has_body = false;
    set_options(hook, letter, headers);
    CURLcode code = curl_easy_perform(hook->curl);
    enum pb_sent sent = judge(hook, code, why);
    (void)curl_easy_setopt(hook->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return sent;
}

const struct pb_sender_kind pb_sender_webhook = {create, send_letter, NULL, destroy};

void pb_webhooks_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void pb_webhooks_fini(void)
{
    curl_global_cleanup();
}
