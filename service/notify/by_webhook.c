/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Webhooks: the event is posted, with a signature if the entry has a key. */
#include "config/base/clock.h"
#include "config/notify_config.h"
#include "service/notify/http.h"
#include "service/notify/secret.h"
#include "service/notify/sender.h"
#include "service/notify/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNED_HEADERS = 3, HEADER_BYTES = 300 };

static void destroy(void *sender)
{
    pb_http_destroy(sender);
}

static void *create(const struct pb_notify_config *notify, const struct pb_stop *stop)
{
    return pb_http_create(notify, stop);
}

static int sign(const struct pb_http *http, const struct pb_letter *letter,
                char line[SIGNED_HEADERS][HEADER_BYTES], struct pb_err *err)
{
    char signature[PB_SIGNATURE_BYTES];
    struct pb_secret secret;
    int64_t now_s = pb_clock_wall_ms() / 1000;
    int rc = pb_secret_read(pb_http_notify(http)->secret, &secret, err);
    if (rc != 0)
        return rc;
    rc = pb_signature_make(&secret, letter->id, now_s, letter->body, letter->bytes, signature);
    pb_secret_wipe(&secret);
    if (rc != 0)
        return pb_fail(err, PB_E_NOTIFY_SECRET, "%s: the text after whsec_ is not base64",
                       pb_http_notify(http)->secret);
    (void)snprintf(line[0], HEADER_BYTES, "webhook-id: %s", letter->id);
    (void)snprintf(line[1], HEADER_BYTES, "webhook-timestamp: %lld", (long long)now_s);
    (void)snprintf(line[2], HEADER_BYTES, "webhook-signature: %s", signature);
    return 0;
}

/* An error of the event itself remains at the next try. */
static bool is_about_the_event(int status)
{
    return status == 400 || status == 413 || status == 422;
}

static enum pb_sent send_letter(void *sender, const struct pb_letter *letter,
                                struct pb_sent_why *why)
{
    struct pb_http *http = sender;
    struct pb_err err = {0};
    char line[SIGNED_HEADERS][HEADER_BYTES];
    const char *const headers[SIGNED_HEADERS] = {line[0], line[1], line[2]};
    const bool is_signed = pb_http_notify(http)->secret != NULL;
    if (is_signed && sign(http, letter, line, &err) != 0) {
        pb_sent_fail(why, "%s [%s]", err.msg, pb_code_id(err.code));
        return PB_SENT_NOT;
    }
    const struct pb_http_request request = {.method = "POST",
                                            .url = pb_http_notify(http)->url,
                                            .type = "application/cloudevents+json; charset=UTF-8",
                                            .headers = headers,
                                            .n_headers = is_signed ? SIGNED_HEADERS : 0,
                                            .body = letter->body,
                                            .bytes = letter->bytes};
    const int status = pb_http_send(http, &request, why);
    if (status >= 200 && status < 300)
        return PB_SENT;
    return is_about_the_event(status) ? PB_SENT_REFUSED : PB_SENT_NOT;
}

const struct pb_sender_kind pb_sender_webhook = {create, send_letter, NULL, destroy};
