/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct pb_sha256 {
    EVP_MD_CTX *context;
    int ok;
};

static struct pb_sha256 *create(const EVP_MD *digest)
{
    struct pb_sha256 *sum = calloc(1, sizeof *sum);
    if (sum == NULL)
        return NULL;
    sum->context = EVP_MD_CTX_new();
    sum->ok = sum->context != NULL && EVP_DigestInit_ex(sum->context, digest, NULL) == 1;
    return sum;
}

struct pb_sha256 *pb_sha256_create(void)
{
    return create(EVP_sha256());
}

struct pb_sha256 *pb_digest_create(enum pb_digest digest)
{
    return create(digest == PB_DIGEST_MD5      ? EVP_md5()
                  : digest == PB_DIGEST_SHA512 ? EVP_sha512()
                                               : EVP_sha256());
}

void pb_sha256_add(struct pb_sha256 *sum, const void *data, size_t bytes)
{
    if (sum != NULL && sum->ok)
        sum->ok = EVP_DigestUpdate(sum->context, data, bytes) == 1;
}

int pb_sha256_hex(struct pb_sha256 *sum, char out_hex[65])
{
    char hex[PB_DIGEST_HEX_BYTES];
    int rc = pb_digest_hex(sum, hex);
    if (rc != 0 || strlen(hex) != 64)
        return -ENOMEM;
    (void)memcpy(out_hex, hex, 65);
    return 0;
}

int pb_digest_hex(struct pb_sha256 *sum, char out_hex[PB_DIGEST_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (sum == NULL || !sum->ok || EVP_DigestFinal_ex(sum->context, raw, &n) != 1 || n > 64)
        return -ENOMEM;
    sum->ok = 0;
    for (unsigned i = 0; i < n; i++) {
        out_hex[2 * i] = digits[raw[i] >> 4];
        out_hex[2 * i + 1] = digits[raw[i] & 15];
    }
    out_hex[2 * n] = '\0';
    return 0;
}

void pb_sha256_destroy(struct pb_sha256 *sum)
{
    if (sum == NULL)
        return;
    EVP_MD_CTX_free(sum->context);
    free(sum);
}
