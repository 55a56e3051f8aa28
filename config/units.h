/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_UNITS_H
#define PB_UNITS_H
/* Scalars with units: 512MiB, 2s, yes, 1e-4. Strict: the whole text must fit, so 64x is not 64.
 * Readers return 0, -EINVAL (not of this form) or -ERANGE (too large to hold) and write only on
 * success. Pure; any thread. */
#include <stdbool.h>
#include <stdint.h>

#define PB_UNITS_TEXT 48

/* A decimal number; no hexadecimal, no infinities. nan, NaN, .nan and .NaN only if allowed. */
int pb_units_number(const char *text, bool allow_nan, double *out_value);
/* A whole number of at most 2^53 either side; 2e11 is one too. */
int pb_units_int(const char *text, int64_t *out_value);
/* Bytes: B, KiB MiB GiB TiB (1024), kB MB GB TB (1000), upper or lower case; none = bytes. Parts of
 * a byte are rounded. */
int pb_units_size(const char *text, uint64_t *out_bytes);
/* Milliseconds from ms, s, m (or min), h, d; several may follow each other: 1h30m. 0 needs no
 * unit. */
int pb_units_duration(const char *text, int64_t *out_ms);

/* The shortest text that reads back the same. Both return out. */
const char *pb_units_size_text(uint64_t bytes, char out[PB_UNITS_TEXT]);
const char *pb_units_duration_text(int64_t ms, char out[PB_UNITS_TEXT]);
const char *pb_units_number_text(double value, char out[PB_UNITS_TEXT]); /* .nan for NaN */
#endif
