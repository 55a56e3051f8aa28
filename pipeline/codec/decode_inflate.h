/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DECODE_INFLATE_H
#define PB_DECODE_INFLATE_H
/* Verifies a deflate block that is too large for memory: it gets the input in parts, and the output
 * is counted and discarded. Memory is some 100 KiB. Thread: its one user. */
#include <stddef.h>
#include <stdint.h>

struct pb_inflate;

int pb_inflate_create(struct pb_inflate **out_inflate); /* 0 or -ENOMEM */
void pb_inflate_destroy(struct pb_inflate *inflate);    /* NULL is fine */
/* 1: the stream has ended, its Adler-32 is right, and it gave at least `least` bytes; 0: it is
 * incomplete; -EBADMSG and the error in *out_why (static), also when it gives more than `most`. */
int pb_inflate_feed(struct pb_inflate *inflate, const uint8_t *in, size_t bytes, uint64_t least,
                    uint64_t most, const char **out_why);
#endif
