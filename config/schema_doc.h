/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SCHEMA_DOC_H
#define PB_SCHEMA_DOC_H
/* The documentation of a table of keys: for the commented default file, 'pushbroom operators' and
 * other output about keys. Any thread. */
#include "kernels/key.h"

/* How a value of a type is written: "number", "[A, B] or {OUT: IN}". Static. */
const char *pb_key_form(enum pb_key_type type);
/* "0 to 100", "16MiB to 16TiB"; NULL where any value goes, or nearly any. Returns out. */
const char *pb_key_range(const struct pb_key *key, char *out, size_t out_bytes);
#endif
