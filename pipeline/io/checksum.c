/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/checksum.h"
#include "pipeline/io/sha256.h"

#include <blake3.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 64 };

static const struct {
    const char *name, *multihash;
} kinds[] = {
    [PB_CHECKSUM_BLAKE3] = {"blake3", "1e20"},   /* blake3, 32 bytes */
    [PB_CHECKSUM_SHA2_256] = {"sha256", "1220"}, /* sha2-256, 32 bytes */
    [PB_CHECKSUM_NONE] = {"", ""},
};

struct pb_sum {
    enum pb_checksum kind;
    struct pb_sha256 *sha256;
    blake3_hasher blake3;
};

const char *pb_checksum_name(enum pb_checksum kind)
{
    return kinds[kind].name;
}

struct pb_sum *pb_sum_create(enum pb_checksum kind)
{
    struct pb_sum *sum = calloc(1, sizeof *sum);
    if (sum == NULL)
        return NULL;
    sum->kind = kind;
    if (kind == PB_CHECKSUM_SHA2_256)
        sum->sha256 = pb_sha256_create();
    else
        blake3_hasher_init(&sum->blake3);
    return sum;
}

void pb_sum_add(struct pb_sum *sum, const void *data, size_t bytes)
{
    if (sum->kind == PB_CHECKSUM_SHA2_256)
        pb_sha256_add(sum->sha256, data, bytes);
    else if (sum->kind == PB_CHECKSUM_BLAKE3)
        blake3_hasher_update(&sum->blake3, data, bytes);
}

void pb_checksum_text(enum pb_checksum kind, const unsigned char raw[32],
                      char out_text[PB_CHECKSUM_TEXT_BYTES])
{
    int n = snprintf(out_text, PB_CHECKSUM_TEXT_BYTES, "%s:", kinds[kind].name);
    for (int i = 0; i < DIGITS / 2; i++)
        n += snprintf(out_text + n, PB_CHECKSUM_TEXT_BYTES - (size_t)n, "%02x", raw[i]);
}

int pb_sum_text(struct pb_sum *sum, char out_text[PB_CHECKSUM_TEXT_BYTES])
{
    char hex[DIGITS + 1];
    unsigned char raw[BLAKE3_OUT_LEN];
    if (sum == NULL)
        return -ENOMEM;
    if (sum->kind == PB_CHECKSUM_SHA2_256) {
        if (pb_sha256_hex(sum->sha256, hex) != 0)
            return -ENOMEM;
        (void)snprintf(out_text, PB_CHECKSUM_TEXT_BYTES, "%s:%s", kinds[sum->kind].name, hex);
    } else if (sum->kind == PB_CHECKSUM_BLAKE3) {
        blake3_hasher_finalize(&sum->blake3, raw, sizeof raw);
        pb_checksum_text(sum->kind, raw, out_text);
    } else {
        out_text[0] = '\0';
    }
    return 0;
}

void pb_sum_destroy(struct pb_sum *sum)
{
    if (sum == NULL)
        return;
    pb_sha256_destroy(sum->sha256);
    free(sum);
}

int pb_checksum_parse(const char *text, enum pb_checksum *out_kind, const char **out_digits)
{
    for (int kind = 0; kind < PB_CHECKSUM_NONE; kind++) {
        size_t n = strlen(kinds[kind].name);
        if (strncmp(text, kinds[kind].name, n) != 0 || text[n] != ':' ||
            strspn(text + n + 1, "0123456789abcdef") != DIGITS || text[n + 1 + DIGITS] != '\0')
            continue;
        *out_kind = (enum pb_checksum)kind;
        *out_digits = text + n + 1;
        return 0;
    }
    if (text[0] != '\0')
        return -EINVAL;
    *out_kind = PB_CHECKSUM_NONE;
    *out_digits = NULL;
    return 0;
}

const char *pb_checksum_digits(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon != NULL ? colon + 1 : "";
}

bool pb_checksum_multihash(const char *text, char out[PB_CHECKSUM_MULTIHASH_BYTES])
{
    enum pb_checksum kind;
    const char *digits;
    if (pb_checksum_parse(text, &kind, &digits) != 0 || digits == NULL)
        return false;
    (void)snprintf(out, PB_CHECKSUM_MULTIHASH_BYTES, "%s%s", kinds[kind].multihash, digits);
    return true;
}
