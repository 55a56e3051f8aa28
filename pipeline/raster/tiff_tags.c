/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/tiff_tags.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES 12

static uint16_t u16_at(const unsigned char *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint32_t u32_at(const unsigned char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static size_t type_bytes(uint16_t type)
{
    static const unsigned char bytes[14] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    return type < sizeof bytes ? bytes[type] : 0;
}

/* Returns the entries of the first directory, or NULL if it is not valid. */
static const unsigned char *entries(const unsigned char *bytes, size_t n_bytes, size_t *out_n)
{
    const uint16_t one = 1;
    bool little = *(const unsigned char *)&one == 1;
    if (n_bytes < 8 || memcmp(bytes, little ? "II" : "MM", 2) != 0 || u16_at(bytes + 2) != 42)
        return NULL;
    size_t at = u32_at(bytes + 4);
    if (at > n_bytes - 2)
        return NULL;
    size_t n = u16_at(bytes + at);
    if (n * ENTRY_BYTES > n_bytes - 2 - at)
        return NULL;
    *out_n = n;
    return bytes + at + 2;
}

static bool is_wanted(uint16_t tag, const uint16_t *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (wanted[i] == tag)
            return true;
    }
    return false;
}

static int take(const unsigned char *bytes, size_t n_bytes, const unsigned char *entry,
                struct pb_tiff_tag *out)
{
    uint16_t type = u16_at(entry + 2);
    size_t count = u32_at(entry + 4), each = type_bytes(type);
    if (each == 0 || count == 0)
        return -EINVAL;
    const unsigned char *value = entry + 8;
    if (count > 4 / each) {
        size_t at = u32_at(entry + 8);
        if (at > n_bytes || count > (n_bytes - at) / each)
            return -EINVAL;
        value = bytes + at;
    }
    void *copy = malloc(count * each);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, value, count * each);
    *out = (struct pb_tiff_tag){u16_at(entry), type, count, copy};
    return 0;
}

int pb_tiff_tags_take(const void *bytes, size_t n_bytes, const uint16_t *wanted, size_t n_wanted,
                      struct pb_tiff_tags *out_tags)
{
    size_t n = 0;
    const unsigned char *entry = entries(bytes, n_bytes, &n);
    if (entry == NULL)
        return -EINVAL;
    struct pb_tiff_tags tags = {calloc(n_wanted + 1, sizeof *tags.tag), 0};
    int rc = tags.tag ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < n && tags.n < n_wanted; i++, entry += ENTRY_BYTES) {
        if (!is_wanted(u16_at(entry), wanted, n_wanted))
            continue;
        rc = take(bytes, n_bytes, entry, &tags.tag[tags.n]);
        tags.n += rc == 0;
    }
    if (rc < 0)
        pb_tiff_tags_free(&tags);
    else
        *out_tags = tags;
    return rc;
}

void pb_tiff_tags_free(struct pb_tiff_tags *tags)
{
    if (tags == NULL)
        return;
    for (size_t i = 0; i < tags->n; i++)
        free(tags->tag[i].value);
    free(tags->tag);
    *tags = (struct pb_tiff_tags){NULL, 0};
}
