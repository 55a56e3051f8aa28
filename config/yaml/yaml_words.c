/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A table of libyaml 0.2's messages. A message that is not in it is passed on as it is.
 * tests/unit/bad_configs.h has a file for each row, so that a test fails when libyaml changes a
 * message. */
#include "config/yaml/yaml_words.h"

#include <string.h>

struct words {
    const char *problem, *context; /* NULL context: any */
    const char *text;
    bool blames_context;
};

static const struct words table[] = {
    {"did not find expected alphabetic or numeric character", "while scanning an alias",
     "a word that starts with * is an alias; put a pattern in quotes, such as \"*.tif\"", false},
    {"did not find expected alphabetic or numeric character", "while scanning an anchor",
     "a word that starts with & is an anchor; put the text in quotes", false},
    {"found character that cannot start any token", NULL,
     "a value cannot start with this character; put a text that starts with @, % or ` in quotes",
     false},
    {"mapping values are not allowed in this context", NULL,
     "there is a second ':' in one entry; put a text with ': ' in quotes, or correct the "
     "indentation",
     false},
    {"could not find expected ':'", NULL,
     "this line is not 'key: value'; a ':' and a space are missing, or it belongs to the value "
     "above",
     true},
    {"did not find expected ',' or ']'", NULL, "this '[' is not closed; a ',' or ']' is missing",
     true},
    {"did not find expected ',' or '}'", NULL, "this '{' is not closed; a ',' or '}' is missing",
     true},
    {"did not find expected '-' indicator", NULL,
     "this line fits no list above; every entry starts with '- ' in the same column", false},
    {"did not find expected key", NULL,
     "the indentation of this line fits nothing above; keys of one map start in the same column",
     false},
    {"did not find expected node content", NULL,
     "a value is missing here; put a text that starts with a special character in quotes", false},
    {"found unexpected end of stream", "while scanning a quoted scalar",
     "this quote is never closed", true},
    {"found unexpected document indicator", "while scanning a quoted scalar",
     "this quote is never closed", true},
    {"found unknown escape character", NULL,
     "unknown escape after \\; write \\\\ for a backslash, or use single quotes", false},
    {"block sequence entries are not allowed in this context", NULL,
     "a list cannot start here; put '- ' on a line of its own, or correct the indentation", false},
    {"did not find expected <document start>", NULL,
     "the file should end here; check the indentation of this line", false},
    {"found a tab character that violates indentation", NULL,
     "a tab cannot indent; use spaces instead", false},
    {"found a tab character where an indentation space is expected", NULL,
     "a tab cannot indent; use spaces instead", false},
    {"control characters are not allowed", NULL,
     "there is a control character here; the file must be plain UTF-8 text", false},
    {"invalid leading UTF-8 octet", NULL, "this is not UTF-8; save the file as UTF-8 text", false},
    {"invalid trailing UTF-8 octet", NULL, "this is not UTF-8; save the file as UTF-8 text", false},
    {"incomplete UTF-8 octet sequence", NULL, "this is not UTF-8; save the file as UTF-8 text",
     false},
};

static const struct words *find(const char *problem, const char *context)
{
    for (size_t i = 0; problem && i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].problem, problem) == 0 &&
            (!table[i].context || (context && strcmp(table[i].context, context) == 0)))
            return &table[i];
    return NULL;
}

const char *pb_yaml_problem(const char *problem, const char *context)
{
    const struct words *words = find(problem, context);
    return words ? words->text : problem ? problem : "this is not YAML";
}

bool pb_yaml_blames_context(const char *problem, const char *context)
{
    const struct words *words = find(problem, context);
    return words && words->blames_context;
}

bool pb_yaml_printable(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < bytes; i++) {
        if ((p[i] < 0x20 && p[i] != '\t' && p[i] != '\n') || p[i] == 0x7F)
            return false;
        if (bytes - i >= 2 && p[i] == 0xC2 && p[i + 1] < 0xA0) /* U+0080 .. U+009F */
            return false;
        if (bytes - i >= 3 && p[i] == 0xE2 && p[i + 1] == 0x80 && (p[i + 2] & 0xFE) == 0xA8)
            return false; /* U+2028, U+2029: line breaks to YAML */
        if (bytes - i >= 3 && p[i] == 0xEF &&
            (memcmp(p + i, "\xEF\xBB\xBF", 3) == 0 || memcmp(p + i, "\xEF\xBF\xBE", 3) == 0 ||
             memcmp(p + i, "\xEF\xBF\xBF", 3) == 0))
            return false;
    }
    return true;
}
