/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SHA256_H
#define PB_SHA256_H
/* SHA-256 of a stream of bytes, as lower-case hex, by libcrypto. One thread per object. */
#include <stddef.h>

struct pb_sha256;
struct pb_sha256 *pb_sha256_create(void); /* NULL = out of memory; the calls below accept NULL */
void pb_sha256_add(struct pb_sha256 *sum, const void *data, size_t bytes);
/* Writes 64 hex digits and NUL. Returns 0, or -ENOMEM if the object is NULL or broken. Frees
 * nothing. */
int pb_sha256_hex(struct pb_sha256 *sum, char out_hex[65]);
void pb_sha256_destroy(struct pb_sha256 *sum);

/* Digests of delivered checksum files, instead of SHA-256. */
enum pb_digest { PB_DIGEST_MD5, PB_DIGEST_SHA256, PB_DIGEST_SHA512 };
#define PB_DIGEST_HEX_BYTES 129
struct pb_sha256 *pb_digest_create(enum pb_digest digest);
/* The same as pb_sha256_hex, with as many digits as the digest has. */
int pb_digest_hex(struct pb_sha256 *sum, char out_hex[PB_DIGEST_HEX_BYTES]);
#endif
