/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/key.h"

#include <stdio.h>
#include <string.h>

bool pb_key_is_number(enum pb_key_type type)
{
    switch (type) {
    case PB_KEY_INT:
    case PB_KEY_ODD:
    case PB_KEY_POWER:
    case PB_KEY_PERCENT:
    case PB_KEY_COUNT:
    case PB_KEY_SIZE:
    case PB_KEY_DURATION:
    case PB_KEY_NUMBER:
    case PB_KEY_NODATA:
    case PB_KEY_PAIR:
    case PB_KEY_RANGE:
    case PB_KEY_NUMBERS:
    case PB_KEY_CONSTANTS:
    case PB_KEY_WEIGHTS:
    case PB_KEY_VECTORS:
        return true;
    default:
        return false;
    }
}

bool pb_key_may_tell(enum pb_key_type type)
{
    return (type >= PB_KEY_INT && type <= PB_KEY_CHOICE) || type == PB_KEY_PAIR ||
           type == PB_KEY_RANGE;
}

bool pb_key_is_given(const struct pb_key *key, const void *base)
{
    const char *const at = (const char *)base + key->offset;
    const char *const more = (const char *)base + key->more;

    switch (key->type) {
    case PB_KEY_TEXT:
    case PB_KEY_PATH:
    case PB_KEY_NAME:
    case PB_KEY_CRS:
        return *(char *const *)(const void *)at != NULL;
    case PB_KEY_PATTERNS:
    case PB_KEY_FILE_NAMES:
    case PB_KEY_PATHS:
    case PB_KEY_COMMAND:
    case PB_KEY_BANDS:
    case PB_KEY_BAND_MAP:
    case PB_KEY_SOURCES:
    case PB_KEY_FILES:
    case PB_KEY_INBOXES:
        return *(const size_t *)(const void *)more > 0;
    case PB_KEY_SECTION:
        return key->more == 0 || *(const bool *)more;
    case PB_KEY_NAMES:
    case PB_KEY_EXPRESSION:
    case PB_KEY_BAND:
    case PB_KEY_EXPRESSIONS:
    case PB_KEY_NUMBERS:
    case PB_KEY_CONSTANTS:
    case PB_KEY_WEIGHTS:
    case PB_KEY_VECTORS:
    case PB_KEY_WORDS:
        return ((const struct pb_items *)(const void *)at)->n > 0;
    default:
        return key->more == 0 || !pb_key_may_tell(key->type) || *(const bool *)more;
    }
}

const char *pb_key_choice(const char *choices, int index, size_t *out_length)
{
    for (; index > 0 && strchr(choices, '|') != NULL; index--)
        choices = strchr(choices, '|') + 1;
    *out_length = strcspn(choices, "|");
    return choices;
}

static double number_at(enum pb_key_type type, const void *at)
{
    switch (type) {
    case PB_KEY_INT:
    case PB_KEY_ODD:
    case PB_KEY_POWER:
    case PB_KEY_PERCENT:
        return *(const int32_t *)at;
    case PB_KEY_COUNT:
    case PB_KEY_SIZE:
        return (double)*(const uint64_t *)at;
    case PB_KEY_DURATION:
        return (double)*(const int64_t *)at;
    default:
        return *(const double *)at;
    }
}

static const char *text_at(const struct pb_key *key, const void *at, char *room, size_t bytes)
{
    size_t length;
    int index;

    if (key->type != PB_KEY_CHOICE)
        return *(char *const *)at;
    memcpy(&index, at, sizeof index);
    const char *const word = pb_key_choice(key->choices, index, &length);
    (void)snprintf(room, bytes, "%.*s", (int)length, word);
    return room;
}

struct pb_items pb_key_items(const struct pb_key *key, const void *base, struct pb_key_value *room)
{
    const void *const at = (const char *)base + key->offset;
    struct pb_items items = {room->item, 1, false};

    memset(room->item, 0, sizeof room->item);
    if (!pb_key_is_given(key, base))
        return (struct pb_items){NULL, 0, false};
    switch (key->type) {
    case PB_KEY_NAMES:
    case PB_KEY_EXPRESSION:
    case PB_KEY_BAND:
    case PB_KEY_EXPRESSIONS:
    case PB_KEY_NUMBERS:
    case PB_KEY_CONSTANTS:
    case PB_KEY_WEIGHTS:
    case PB_KEY_VECTORS:
    case PB_KEY_WORDS:
        return *(const struct pb_items *)at;
    case PB_KEY_DEVICE:
    case PB_KEY_PATTERNS:
    case PB_KEY_FILE_NAMES:
    case PB_KEY_PATHS:
    case PB_KEY_COMMAND:
    case PB_KEY_BANDS:
    case PB_KEY_BAND_MAP:
    case PB_KEY_SOURCES:
    case PB_KEY_FILES:
    case PB_KEY_INBOXES:
    case PB_KEY_SECTION:
        return (struct pb_items){NULL, 0, false};
    case PB_KEY_PAIR:
    case PB_KEY_RANGE:
        items.n = 2;
        room->item[1].num = ((const double *)at)[1];
        room->item[0].num = ((const double *)at)[0];
        break;
    default:
        if (pb_key_is_number(key->type))
            room->item[0].num = number_at(key->type, at);
        else
            room->item[0].text = text_at(key, at, room->text, sizeof room->text);
    }
    return items;
}

const struct pb_key *pb_key_of(const struct pb_section *section, const void *base,
                               const void *member)
{
    for (size_t i = 0; member != NULL && i < section->n; i++)
        if ((const char *)base + section->keys[i].offset == (const char *)member)
            return &section->keys[i];
    return NULL;
}

const char *pb_item_band(const struct pb_item *item)
{
    return item->key ? item->key : item->text;
}

size_t pb_items_of_vector(const struct pb_items *items, size_t first)
{
    size_t n = 1;

    while (first + n < items->n &&
           strcmp(items->items[first + n].key, items->items[first].key) == 0)
        n++;
    return n;
}
