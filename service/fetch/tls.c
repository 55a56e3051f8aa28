/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/fetch/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PRIORITY     "SECURE128:-VERS-ALL:+VERS-TLS1.3"
#define HANDSHAKE_MS 10000

struct pb_tls {
    gnutls_session_t session;
    gnutls_certificate_credentials_t files;
    char peer[PB_TLS_NAME_BYTES];
};

static int load(const struct pb_fetch_config *config, struct pb_err *err,
                gnutls_certificate_credentials_t *out)
{
    gnutls_certificate_credentials_t files = NULL;
    int rc = gnutls_certificate_allocate_credentials(&files);
    if (rc != 0)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    const char *wrong = config->ca;
    rc = gnutls_certificate_set_x509_trust_file(files, config->ca, GNUTLS_X509_FMT_PEM);
    if (rc == 0)
        rc = GNUTLS_E_NO_CERTIFICATE_FOUND;
    if (rc > 0) {
        wrong = config->certificate;
        rc = gnutls_certificate_set_x509_key_file(files, config->certificate, config->key,
                                                  GNUTLS_X509_FMT_PEM);
    }
    if (rc >= 0) {
        *out = files;
        return 0;
    }
    gnutls_certificate_free_credentials(files);
    return pb_fail(err, PB_E_INPUT_FETCH, "cannot use %.200s with key %.200s: %s", wrong,
                   config->key, gnutls_strerror(rc));
}

/* Reads the first DNS name. Returns false if it is absent or too long. */
static bool read_name(gnutls_x509_crt_t certificate, char out[PB_TLS_NAME_BYTES])
{
    for (unsigned i = 0;; i++) {
        size_t bytes = PB_TLS_NAME_BYTES - 1;
        const int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, out, &bytes, NULL);
        if (kind == GNUTLS_SAN_DNSNAME) {
            out[bytes] = '\0';
            return bytes > 0 && strlen(out) == bytes;
        }
        if (kind < 0)
            return false;
    }
}

static bool read_peer(struct pb_tls *tls)
{
    unsigned n = 0;
    gnutls_x509_crt_t certificate = NULL;
    const gnutls_datum_t *list = gnutls_certificate_get_peers(tls->session, &n);
    bool good = list != NULL && n > 0 && gnutls_x509_crt_init(&certificate) == 0;
    good = good && gnutls_x509_crt_import(certificate, &list[0], GNUTLS_X509_FMT_DER) == 0 &&
           read_name(certificate, tls->peer);
    if (certificate != NULL)
        gnutls_x509_crt_deinit(certificate);
    return good;
}

/* Describes a failed handshake. */
static int refuse(struct pb_tls *tls, int rc, struct pb_err *err)
{
    gnutls_datum_t text = {NULL, 0};
    const unsigned status = gnutls_session_get_verify_cert_status(tls->session);
    if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR && status != 0 &&
        gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) == 0) {
        (void)pb_fail(err, PB_E_INPUT_FETCH, "its certificate is refused: %.150s", text.data);
        gnutls_free(text.data);
    } else if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        (void)pb_fail(err, PB_E_INPUT_FETCH, "the other side refused TLS: %s",
                      gnutls_alert_get_name(gnutls_alert_get(tls->session)));
    } else {
        (void)pb_fail(err, PB_E_INPUT_FETCH, "no TLS connection: %s", gnutls_strerror(rc));
    }
    return pb_code_errno(PB_E_INPUT_FETCH);
}

static int shake_hands(struct pb_tls *tls, int socket, const char *node, struct pb_err *err)
{
    const bool is_server = node == NULL;
    int rc = gnutls_init(&tls->session, is_server ? GNUTLS_SERVER : GNUTLS_CLIENT);
    if (rc != 0) {
        tls->session = NULL;
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    }
    rc = gnutls_priority_set_direct(tls->session, PRIORITY, NULL);
    if (rc == 0)
        rc = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->files);
    if (is_server)
        gnutls_certificate_server_set_request(tls->session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert(tls->session, node, GNUTLS_VERIFY_DO_NOT_ALLOW_WILDCARDS);
    gnutls_transport_set_int(tls->session, socket);
    gnutls_handshake_set_timeout(tls->session, HANDSHAKE_MS);
    while (rc == 0 && (rc = gnutls_handshake(tls->session)) < 0 && gnutls_error_is_fatal(rc) == 0)
        rc = 0;
    if (rc != 0)
        return refuse(tls, rc, err);
    return read_peer(tls)
               ? 0
               : pb_fail(err, PB_E_INPUT_FETCH, "its certificate has no DNS name (subjectAltName)");
}

int pb_tls_open(const struct pb_fetch_config *config, int socket, const char *node,
                struct pb_err *err, struct pb_tls **out_tls)
{
    struct pb_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    int rc = load(config, err, &tls->files);
    rc = rc ? rc : shake_hands(tls, socket, node, err);
    if (rc == 0)
        *out_tls = tls;
    else
        pb_tls_close(tls);
    return rc;
}

const char *pb_tls_peer(const struct pb_tls *tls)
{
    return tls->peer;
}

static ssize_t result_of(ssize_t rc)
{
    if (rc >= 0)
        return rc;
    return gnutls_error_is_fatal((int)rc) == 0 ? PB_TLS_AGAIN : -EPIPE;
}

ssize_t pb_tls_receive(struct pb_tls *tls, void *to, size_t bytes)
{
    return result_of(gnutls_record_recv(tls->session, to, bytes));
}

ssize_t pb_tls_send(struct pb_tls *tls, const void *from, size_t bytes)
{
    return result_of(gnutls_record_send(tls->session, from, bytes));
}

bool pb_tls_has_more(const struct pb_tls *tls)
{
    return gnutls_record_check_pending(tls->session) > 0;
}

void pb_tls_end(struct pb_tls *tls)
{
    (void)gnutls_bye(tls->session, GNUTLS_SHUT_WR);
}

void pb_tls_close(struct pb_tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->session != NULL)
        gnutls_deinit(tls->session);
    if (tls->files != NULL)
        gnutls_certificate_free_credentials(tls->files);
    free(tls);
}

/* --- check ------------------------------------------------------------------------------------ */

/* Verifies the loaded certificate with the authorities of the same files. */
static int verify(gnutls_certificate_credentials_t files, const struct pb_fetch_config *config,
                  const char *node, struct pb_err *err, int64_t *out_expires_s)
{
    gnutls_x509_crt_t *list = NULL;
    unsigned n = 0, status = 0;
    char name[PB_TLS_NAME_BYTES];
    gnutls_x509_trust_list_t trusted = NULL;
    int rc = gnutls_certificate_get_x509_crt(files, 0, &list, &n);
    if (rc != 0 || n == 0)
        return pb_fail(err, PB_E_INPUT_FETCH, "%s has no certificate", config->certificate);
    const time_t expires = gnutls_x509_crt_get_expiration_time(list[0]);
    *out_expires_s = (int64_t)(expires - time(NULL));
    rc = 0;
    if (!read_name(list[0], name))
        rc = pb_fail(err, PB_E_INPUT_FETCH, "%s has no DNS name (subjectAltName)",
                     config->certificate);
    else if (strcmp(name, node) != 0)
        rc =
            pb_fail(err, PB_E_INPUT_FETCH, "%s is for %.64s, and this node is %.64s (service.node)",
                    config->certificate, name, node);
    else if (*out_expires_s <= 0)
        rc = pb_fail(err, PB_E_INPUT_FETCH, "%s has expired", config->certificate);
    else if (gnutls_x509_trust_list_init(&trusted, 0) != 0 ||
             gnutls_x509_trust_list_add_trust_file(trusted, config->ca, NULL, GNUTLS_X509_FMT_PEM,
                                                   0, 0) <= 0 ||
             gnutls_x509_trust_list_verify_crt(trusted, list, n, 0, &status, NULL) != 0 ||
             status != 0)
        rc = pb_fail(err, PB_E_INPUT_FETCH, "%s is not signed by %s, or not valid now",
                     config->certificate, config->ca);
    if (trusted != NULL)
        gnutls_x509_trust_list_deinit(trusted, 1);
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    return rc;
}

int pb_tls_check(const struct pb_fetch_config *config, const char *node, struct pb_err *err,
                 int64_t *out_expires_s)
{
    gnutls_certificate_credentials_t files = NULL;
    int rc = load(config, err, &files);
    if (rc != 0)
        return rc;
    rc = verify(files, config, node, err, out_expires_s);
    gnutls_certificate_free_credentials(files);
    return rc;
}
