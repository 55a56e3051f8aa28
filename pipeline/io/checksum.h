/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IO_CHECKSUM_H
#define PB_IO_CHECKSUM_H
/* The checksum of a file that is read or written: SHA-256 by libcrypto, BLAKE3 by its authors'
 * implementation, or none. One thread an object. */
#include "config/base/checksum_kind.h"

#include <stdbool.h>
#include <stddef.h>

/* How many kinds have digits: those before PB_CHECKSUM_NONE. */
#define PB_CHECKSUM_KINDS PB_CHECKSUM_NONE

/* "sha256:", "blake3:" and 64 lower-case hex digits, or "" for none, or not known. */
#define PB_CHECKSUM_TEXT_BYTES 72

struct pb_sum;
struct pb_sum *pb_sum_create(enum pb_checksum kind); /* NULL = out of memory */
void pb_sum_add(struct pb_sum *sum, const void *data, size_t bytes);
/* Once, at the end. 0, or -ENOMEM when the object is NULL or broken. Frees nothing. */
int pb_sum_text(struct pb_sum *sum, char out_text[PB_CHECKSUM_TEXT_BYTES]);
void pb_sum_destroy(struct pb_sum *sum); /* NULL is fine */

/* The kind and the digits of a checksum's text. *out_digits: NULL for none. Returns 0, or -EINVAL:
 * it is no such text. */
int pb_checksum_parse(const char *text, enum pb_checksum *out_kind, const char **out_digits);
/* The digits of a checksum's text, "" for none. */
const char *pb_checksum_digits(const char *text);
/* "sha256", "blake3"; "" for none. Static. */
const char *pb_checksum_name(enum pb_checksum kind);
/* The text as a multihash in hex; false: it has no digits. */
#define PB_CHECKSUM_MULTIHASH_BYTES 69
bool pb_checksum_multihash(const char *text, char out[PB_CHECKSUM_MULTIHASH_BYTES]);
#endif
