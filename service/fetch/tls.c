/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/fetch/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

enum { SOON_DAYS = 30, DAY_S = 86400, CERTIFICATES_MAX = 16 };

struct checking {
    const struct pb_fetch_config *config;
    const char *node;
    void (*visit)(void *user, const struct pb_store_point *point);
    void *user;
    int n_mend;
};

static void report(struct checking *checking, const char *name, enum pb_store_grade grade,
                   const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    checking->n_mend += grade == PB_STORE_MEND;
    checking->visit(checking->user, &(struct pb_store_point){name, grade, text});
}

static void free_list(gnutls_x509_crt_t *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(list[i]);
}

/* Reads the certificates of a file; reports a failure and returns 0. */
static unsigned read_list(struct checking *checking, const char *name, const char *path,
                          gnutls_x509_crt_t list[CERTIFICATES_MAX])
{
    gnutls_datum_t text = {NULL, 0};
    unsigned n = CERTIFICATES_MAX;
    int rc = gnutls_load_file(path, &text);
    if (rc == 0)
        rc = gnutls_x509_crt_list_import(list, &n, &text, GNUTLS_X509_FMT_PEM, 0);
    gnutls_free(text.data);
    if (rc > 0)
        return (unsigned)rc;
    report(checking, name, PB_STORE_MEND,
           "%s cannot be read (%s): make the files of this node (deploy/README.md, Certificates of "
           "nodes)",
           path, rc == GNUTLS_E_FILE_ERROR ? strerror(errno) : gnutls_strerror(rc));
    return 0;
}

/* Reports the times of a certificate. */
static void check_times(struct checking *checking, const char *name, const char *path,
                        gnutls_x509_crt_t certificate)
{
    const time_t now = time(NULL), end = gnutls_x509_crt_get_expiration_time(certificate);
    const time_t begin = gnutls_x509_crt_get_activation_time(certificate);
    const long long days = (long long)(end - now) / DAY_S;
    struct tm tm;
    char date[32];
    (void)strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(begin > now ? &begin : &end, &tm));
    if (begin > now)
        report(checking, name, PB_STORE_MEND,
               "%s is valid from %s on: correct the clock of this machine, or make a new one", path,
               date);
    else if (end <= now)
        report(checking, name, PB_STORE_MEND,
               "%s has expired on %s, and other nodes refuse it: make a new one, which is used "
               "without a restart",
               path, date);
    else if (days < SOON_DAYS)
        report(checking, name, PB_STORE_NOTE,
               "%s expires on %s, in %lld days: make a new one, which is used without a restart",
               path, date, days);
    else
        report(checking, name, PB_STORE_FINE, "%s is valid until %s, for %lld days", path, date,
               days);
}

static void check_name(struct checking *checking, gnutls_x509_crt_t certificate)
{
    const char *path = checking->config->certificate, *node = checking->node;
    char name[PB_TLS_NAME_BYTES];
    if (!read_name(certificate, name))
        report(checking, "certificate name", PB_STORE_MEND,
               "%s has no DNS name (subjectAltName): make one with DNS:%s", path, node);
    else if (strcmp(name, node) != 0)
        report(checking, "certificate name", PB_STORE_MEND,
               "%s is for %s, and this node is %s (service.node): make one with the name DNS:%s",
               path, name, node, node);
    else
        report(checking, "certificate name", PB_STORE_FINE, "%s is for this node, %s", path, node);
}

/* Reports whether the authority has signed the certificate. */
static void check_signer(struct checking *checking, gnutls_x509_crt_t *list, unsigned n,
                         gnutls_x509_crt_t *ca, unsigned n_ca)
{
    const struct pb_fetch_config *config = checking->config;
    const unsigned times = GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED | GNUTLS_CERT_INVALID;
    gnutls_x509_trust_list_t trusted = NULL;
    unsigned status = 0;
    int rc = gnutls_x509_trust_list_init(&trusted, 0);
    if (rc == 0 && gnutls_x509_trust_list_add_cas(trusted, ca, n_ca, 0) < (int)n_ca)
        rc = GNUTLS_E_INTERNAL_ERROR;
    rc = rc ? rc : gnutls_x509_trust_list_verify_crt(trusted, list, n, 0, &status, NULL);
    if (trusted != NULL)
        gnutls_x509_trust_list_deinit(trusted, 0);
    const bool is_expired = (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED)) != 0;
    if (rc != 0 || (status & ~times) != 0 || (status != 0 && !is_expired))
        report(checking, "certificate signer", PB_STORE_MEND,
               "%s is not signed by an authority in %s: sign it with the one that all nodes have "
               "as service.fetch.ca",
               config->certificate, config->ca);
    else
        report(checking, "certificate signer", PB_STORE_FINE, "%s is signed by %s",
               config->certificate, config->ca);
}

/* Reports who may read the key. Returns false if this process may not. */
static bool check_key_rights(struct checking *checking)
{
    const struct pb_fetch_config *config = checking->config;
    const char *name = config->user != NULL ? config->user : "";
    const struct passwd *user = name[0] != '\0' ? getpwnam(name) : NULL;
    struct stat st;
    if (stat(config->key, &st) != 0) {
        report(checking, "key", PB_STORE_MEND,
               "%s cannot be read (%s): make the files of this node (deploy/README.md, "
               "Certificates of nodes)",
               config->key, strerror(errno));
        return false;
    }
    if ((st.st_mode & 077) != 0)
        report(checking, "key", PB_STORE_MEND,
               "%s can be read or written by other users (mode %04o): chmod 0400; make a new key "
               "and certificate if they may have read it",
               config->key, (unsigned)st.st_mode & 07777);
    else if (user != NULL && user->pw_uid != st.st_uid)
        report(checking, "key", PB_STORE_MEND, "%s cannot be read by pushbroom-fetch: chown %s %s",
               config->key, name, config->key);
    else if (access(config->key, R_OK) != 0)
        report(checking, "key", PB_STORE_NOTE,
               "%s cannot be read by this user: repeat the check as root", config->key);
    else
        return true;
    return access(config->key, R_OK) == 0;
}

static void check_key(struct checking *checking)
{
    const struct pb_fetch_config *config = checking->config;
    gnutls_certificate_credentials_t files = NULL;
    if (!check_key_rights(checking) || gnutls_certificate_allocate_credentials(&files) != 0)
        return;
    const int rc = gnutls_certificate_set_x509_key_file(files, config->certificate, config->key,
                                                        GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(files);
    if (rc < 0)
        report(checking, "key pair", PB_STORE_MEND,
               "%s is not the key of %s (%s): install the pair that was made together", config->key,
               config->certificate, gnutls_strerror(rc));
    else
        report(checking, "key pair", PB_STORE_FINE, "%s is the key of the certificate",
               config->key);
}

int pb_tls_check(const struct pb_fetch_config *config, const char *node,
                 void (*visit)(void *user, const struct pb_store_point *point), void *user)
{
    struct checking checking = {config, node, visit, user, 0};
    gnutls_x509_crt_t list[CERTIFICATES_MAX], ca[CERTIFICATES_MAX];
    const unsigned n = read_list(&checking, "certificate", config->certificate, list);
    const unsigned n_ca = read_list(&checking, "authority", config->ca, ca);
    if (n > 0) {
        check_name(&checking, list[0]);
        check_times(&checking, "certificate", config->certificate, list[0]);
    }
    if (n > 0 && n_ca > 0)
        check_signer(&checking, list, n, ca, n_ca);
    if (n_ca > 0)
        check_times(&checking, "authority", config->ca, ca[0]);
    if (n > 0)
        check_key(&checking);
    free_list(list, n);
    free_list(ca, n_ca);
    return checking.n_mend;
}
