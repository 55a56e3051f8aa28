/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/blob.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void pb_blob_print(struct pb_json *json, const char *key, const void *from, size_t bytes)
{
    const unsigned char *at = from;
    char *text = malloc(2 * bytes + 1);
    for (size_t i = 0; text != NULL && i < bytes; i++) {
        text[2 * i] = digits[at[i] >> 4];
        text[2 * i + 1] = digits[at[i] & 15];
    }
    if (text != NULL)
        text[2 * bytes] = '\0';
    pb_json_string(json, key, text);
    free(text);
}

bool pb_blob_take(const struct pb_json_value *object, const char *key, void *to, size_t bytes)
{
    const char *text = pb_json_get_text(object, key);
    unsigned char *at = to;
    if (text == NULL || strlen(text) != 2 * bytes || strspn(text, digits) != 2 * bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)((strchr(digits, text[2 * i]) - digits) << 4 |
                                (strchr(digits, text[2 * i + 1]) - digits));
    return true;
}
