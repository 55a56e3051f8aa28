/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/notify/signature.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "whsec_"

/* Decodes the bytes of the key, or returns -EINVAL. EVP_DecodeBlock counts the padding as bytes. */
static int key_of(const struct pb_secret *secret, unsigned char out[PB_SECRET_BYTES + 1])
{
    const size_t skip = sizeof PREFIX - 1;
    if (secret->bytes < skip || memcmp(secret->text, PREFIX, skip) != 0) {
        (void)memcpy(out, secret->text, secret->bytes);
        return (int)secret->bytes;
    }
    size_t n = secret->bytes - skip;
    const char *text = secret->text + skip;
    int got = n > 0 ? EVP_DecodeBlock(out, (const unsigned char *)text, (int)n) : -1;
    for (size_t i = 0; got > 0 && i < 2 && text[n - 1 - i] == '='; i++)
        got--;
    return got > 0 ? got : -EINVAL;
}

int pb_signature_make(const struct pb_secret *secret, const char *id, int64_t time_s,
                      const char *body, size_t bytes, char out[PB_SIGNATURE_BYTES])
{
    unsigned char key[PB_SECRET_BYTES + 1], raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char *signed_text = NULL;
    int key_bytes = key_of(secret, key);
    if (key_bytes < 0)
        return key_bytes;
    int head = asprintf(&signed_text, "%s.%" PRId64 ".", id, time_s);
    char *whole = head > 0 ? realloc(signed_text, (size_t)head + bytes) : NULL;
    bool ok = whole != NULL;
    if (ok) {
        (void)memcpy(whole + head, body, bytes);
        ok = HMAC(EVP_sha256(), key, key_bytes, (const unsigned char *)whole, (size_t)head + bytes,
                  raw, &n) != NULL;
    }
    explicit_bzero(key, sizeof key);
    if (whole != NULL)
        free(whole);
    else if (head > 0)
        free(signed_text);
    if (!ok)
        return -ENOMEM;
    (void)memcpy(out, "v1,", 4);
    (void)EVP_EncodeBlock((unsigned char *)out + 3, raw, (int)n);
    return 0;
}
