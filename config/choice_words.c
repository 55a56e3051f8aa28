/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/choice_words.h"

#include <ctype.h>
#include <string.h>

static const char *skip(const char *text, const char *end)
{
    while (text < end && strchr("-_+ ", *text) != NULL)
        text++;
    return text;
}

/* Whether [a, a_end) is the same word as [b, b_end). */
static bool is_alike(const char *a, const char *a_end, const char *b, const char *b_end)
{
    for (;;) {
        a = skip(a, a_end);
        b = skip(b, b_end);
        if (a == a_end || b == b_end)
            return a == a_end && b == b_end;
        if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++))
            return false;
    }
}

/* Whether the word is one of those before the '=' at `end`. */
static bool has(const char *names, const char *end, const char *word)
{
    bool found = false;
    while (names < end && !found) {
        const char *space = memchr(names, ' ', (size_t)(end - names));
        const char *name_end = space != NULL ? space : end;
        found = is_alike(names, name_end, word, word + strlen(word));
        names = name_end + (space != NULL);
    }
    return found;
}

size_t pb_choice_called(const char *called, const char *word, const char **out)
{
    while (called != NULL && *called != '\0') {
        const char *equals = strchr(called, '='), *end = called + strcspn(called, "|");
        if (equals != NULL && equals < end && has(called, equals, word)) {
            *out = equals + 1;
            return (size_t)(end - equals - 1);
        }
        called = end + (*end == '|');
    }
    return 0;
}
