/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IO_CHECKSUM_H
#define PB_IO_CHECKSUM_H
/* Checksum of a file that is read or written: BLAKE3 by its authors'
 * implementation, SHA-256 by libcrypto, or none. One thread per object. */
#include "config/base/checksum_kind.h"

#include <stdbool.h>
#include <stddef.h>

/* Count of kinds with digits: those before PB_CHECKSUM_NONE. */
#define PB_CHECKSUM_KINDS PB_CHECKSUM_NONE

/* "blake3:", "sha256:" and 64 lower-case hex digits, or "" for NONE or unknown. */
#define PB_CHECKSUM_TEXT_BYTES 72

struct pb_sum;
struct pb_sum *pb_sum_create(enum pb_checksum kind); /* NULL = out of memory */
void pb_sum_add(struct pb_sum *sum, const void *data, size_t bytes);
/* Call once, at the end. Returns 0, or -ENOMEM if the object is NULL or broken. Frees nothing. */
int pb_sum_text(struct pb_sum *sum, char out_text[PB_CHECKSUM_TEXT_BYTES]);
void pb_sum_destroy(struct pb_sum *sum); /* NULL is fine */

/* Writes the text of a checksum of 32 bytes; kind: not NONE. */
void pb_checksum_text(enum pb_checksum kind, const unsigned char raw[32],
                      char out_text[PB_CHECKSUM_TEXT_BYTES]);
/* Splits a checksum's text into kind and digits. *out_digits: NULL for NONE. Returns 0, or
 * -EINVAL: not such a text. */
int pb_checksum_parse(const char *text, enum pb_checksum *out_kind, const char **out_digits);
/* Digits of a checksum's text, "" for NONE. */
const char *pb_checksum_digits(const char *text);
/* "blake3", "sha256"; "" for NONE. Static. */
const char *pb_checksum_name(enum pb_checksum kind);
/* Writes the text as a multihash in hex; returns false if it has no digits. */
#define PB_CHECKSUM_MULTIHASH_BYTES 69
bool pb_checksum_multihash(const char *text, char out[PB_CHECKSUM_MULTIHASH_BYTES]);
#endif
