/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/notify/http.h"

#include "config/notify_config.h"
#include "service/notify/secret.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WAIT_MAX_S   3600
#define REPLY_BYTES  200 /* maximum text of a refusal, for the log */
#define HEADER_BYTES (PB_SECRET_BYTES + 40)
#define ANSWER_MOST  (UINT64_C(64) << 10) /* maximum bytes of an answer, with its headers */

struct pb_http {
    const struct pb_notify_config *notify;
    const struct pb_stop *stop;
    CURL *curl;
    char error[CURL_ERROR_SIZE];
    char reply[REPLY_BYTES + 1];
    size_t n_reply;
    uint64_t n_answer;
    /* true if all headers were received, so that the status is the final answer's */
    bool has_body;
};

void pb_http_destroy(struct pb_http *http)
{
    curl_easy_cleanup(http->curl);
    free(http);
}

struct pb_http *pb_http_create(const struct pb_notify_config *notify, const struct pb_stop *stop)
{
    struct pb_http *http = calloc(1, sizeof *http);
    if (http == NULL)
        return NULL;
    http->notify = notify;
    http->stop = stop;
    http->curl = curl_easy_init();
    if (http->curl != NULL)
        return http;
    free(http);
    return NULL;
}

const struct pb_notify_config *pb_http_notify(const struct pb_http *http)
{
    return http->notify;
}

/* libcurl calls it about once a second. */
static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct pb_http *http = user;
    (void)a, (void)b, (void)c, (void)d;
    return pb_stop_is_set(http->stop);
}

/* Any other result than the given number of bytes ends the transfer. */
static size_t count(struct pb_http *http, size_t bytes)
{
    http->n_answer += bytes;
    return http->n_answer <= ANSWER_MOST ? bytes : 0;
}

static size_t on_header(char *text, size_t size, size_t n, void *user)
{
    (void)text;
    return count(user, size * n);
}

/* Keeps the beginning of a reply and drops the rest. */
static size_t on_reply(char *text, size_t size, size_t n, void *user)
{
    struct pb_http *http = user;
    size_t bytes = size * n, room = REPLY_BYTES - http->n_reply;
    http->has_body = true;
    size_t kept = bytes < room ? bytes : room;
    (void)memcpy(http->reply + http->n_reply, text, kept);
    http->n_reply += kept;
    http->reply[http->n_reply] = '\0';
    return count(http, bytes);
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

static int add_token(struct pb_http *http, struct curl_slist **list, struct pb_err *err)
{
    struct pb_secret token;
    char line[HEADER_BYTES];
    int rc = pb_secret_read(http->notify->token, &token, err);
    if (rc != 0)
        return rc;
    if (strcspn(token.text, "\r\n") != token.bytes)
        rc = pb_fail(err, PB_E_NOTIFY_SECRET, "%s: a token is one line", http->notify->token);
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s", token.text);
    if (rc == 0 && !add(list, line))
        rc = pb_fail(err, PB_E_MEMORY, "out of memory");
    explicit_bzero(line, sizeof line);
    pb_secret_wipe(&token);
    return rc;
}

/* NULL and *err. */
static struct curl_slist *headers_of(struct pb_http *http, const struct pb_http_request *request,
                                     struct pb_err *err)
{
    struct curl_slist *list = NULL;
    char type[120];
    (void)snprintf(type, sizeof type, "Content-Type: %s", request->type);
    bool ok = add(&list, type) && add(&list, "Expect:");
    for (size_t i = 0; i < request->n_headers && ok; i++)
        ok = add(&list, request->headers[i]);
    if (!ok) {
        (void)pb_fail(err, PB_E_MEMORY, "out of memory");
        return NULL;
    }
    if (http->notify->token != NULL && add_token(http, &list, err) != 0) {
        curl_slist_free_all(list);
        return NULL;
    }
    return list;
}

static void set_options(struct pb_http *http, const struct pb_http_request *request,
                        struct curl_slist *headers)
{
    CURL *curl = http->curl;
    curl_easy_reset(curl); /* keeps connections open */
    (void)curl_easy_setopt(curl, CURLOPT_URL, request->url);
    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    (void)curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (http->notify->ca_file != NULL)
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, http->notify->ca_file);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)http->notify->timeout_ms);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, http);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, http);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_reply);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->error);
    (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "pushbroom-notify/" PB_VERSION);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->bytes);
}

/* Returns the status of the answer, 0 = no answer. A receiver has answered once the headers are
 * complete: a text without end does not change that, and a repeated event would be delivered
 * twice. */
static int judge(struct pb_http *http, CURLcode code, const char *url, struct pb_sent_why *why)
{
    long status = 0;
    curl_off_t wait_s = 0;
    (void)curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK && !http->has_body) {
        pb_sent_fail(why, "%s: %s", url, http->error[0] ? http->error : curl_easy_strerror(code));
        return 0;
    }
    (void)curl_easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &wait_s);
    why->wait_ms = (wait_s > WAIT_MAX_S ? WAIT_MAX_S : (int64_t)wait_s) * 1000;
    pb_sent_fail(why, "%s answers %ld%s%s", url, status, http->n_reply ? ": " : "", http->reply);
    return (int)status;
}

int pb_http_send(struct pb_http *http, const struct pb_http_request *request,
                 struct pb_sent_why *why)
{
    struct pb_err err = {0};
    struct curl_slist *headers = headers_of(http, request, &err);
    if (headers == NULL) {
        pb_sent_fail(why, "%s [%s]", err.msg, pb_code_id(err.code));
        return 0;
    }
    http->error[0] = http->reply[0] = '\0';
    http->n_reply = 0;
    http->n_answer = 0;
    http->has_body = false;
    set_options(http, request, headers);
    int status = judge(http, curl_easy_perform(http->curl), request->url, why);
    (void)curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return status;
}

void pb_http_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void pb_http_fini(void)
{
    curl_global_cleanup();
}
