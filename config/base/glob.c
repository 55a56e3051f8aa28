/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A place is a number of bytes of the name. From a set of places at which a part of the pattern may
 * begin, advance() makes the set at which it may end: bytes and brackets move places by one, a star
 * adds all to the right, a group adds what its alternatives reach. A group that repeats goes on
 * from places that are new only, so it ends. */
#include "config/base/glob.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORDS     ((PB_GLOB_FITS_MAX + 1) / 64)
#define STEPS_MAX (UINT32_C(1) << 22) /* some milliseconds */

struct places {
    uint64_t word[WORDS];
};

struct match {
    const char *name;
    size_t n, n_words; /* bytes of the name; words of a set that are used */
    unsigned flags;
    uint32_t steps; /* words of sets that were made */
};

static void advance(struct match *m, const char *pattern, const char *end, struct places *at);

/* --- sets ------------------------------------------------------------------------------------- */

static bool has(const struct places *set, size_t at)
{
    return (set->word[at / 64] >> at % 64 & 1) != 0;
}

static void add(struct places *set, size_t at)
{
    set->word[at / 64] |= UINT64_C(1) << at % 64;
}

static void clear(const struct match *m, struct places *set)
{
    memset(set->word, 0, m->n_words * sizeof *set->word);
}

static void copy(const struct match *m, struct places *to, const struct places *from)
{
    memcpy(to->word, from->word, m->n_words * sizeof *to->word);
}

static bool is_empty(const struct match *m, const struct places *set)
{
    uint64_t any = 0;
    for (size_t i = 0; i < m->n_words; i++)
        any |= set->word[i];
    return any == 0;
}

/* Adds those of `from`; in `from` only those stay that were not there. */
static void merge(const struct match *m, struct places *set, struct places *from)
{
    for (size_t i = 0; i < m->n_words; i++) {
        from->word[i] &= ~set->word[i];
        set->word[i] |= from->word[i];
    }
}

/* False when the steps are used up; nothing fits then. */
static bool may_go_on(struct match *m, struct places *at)
{
    m->steps += (uint32_t)m->n_words;
    if (m->steps <= STEPS_MAX)
        return true;
    clear(m, at);
    return false;
}

/* --- bytes and brackets ----------------------------------------------------------------------- */

static unsigned char fold(const struct match *m, char c)
{
    const unsigned char byte = (unsigned char)c;
    return m->flags & PB_GLOB_ANY_CASE && byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte;
}

static bool is_of_class(const char *class, size_t length, unsigned char c)
{
    static const struct {
        const char *name;
        int (*is)(int);
    } classes[] = {{"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum},
                   {"upper", isupper}, {"lower", islower}, {"space", isspace},
                   {"blank", isblank}, {"punct", ispunct}, {"print", isprint},
                   {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == length && strncmp(class, classes[i].name, length) == 0)
            return c < 0x80 && classes[i].is(c) != 0;
    return false;
}

/* The end of [:class:] at p, behind its ']'; NULL = it is none. */
static const char *class_end(const char *p, const char *end)
{
    if (end - p < 4 || p[0] != '[' || p[1] != ':')
        return NULL;
    for (const char *c = p + 2; c + 1 < end && (isalpha((unsigned char)*c) || *c == ':'); c++)
        if (c[0] == ':')
            return c[1] == ']' ? c + 2 : NULL;
    return NULL;
}

/* Behind the bracket's ']'; NULL = it has no end, and stands for itself. p: behind '['. */
static const char *bracket_end(const char *p, const char *end)
{
    p += p < end && (*p == '!' || *p == '^');
    for (const char *first = p; p < end; p++) {
        const char *class = class_end(p, end);
        if (*p == ']' && p > first)
            return p + 1;
        if (class != NULL)
            p = class - 1;
        else if (*p == '\\' && p + 1 < end)
            p++;
    }
    return NULL;
}

static unsigned char bracket_byte(const struct match *m, const char **p, const char *end)
{
    *p += **p == '\\' && *p + 1 < end;
    return fold(m, *(*p)++);
}

/* p: behind '['; end: behind ']'. */
static bool is_in_bracket(const struct match *m, const char *p, const char *end, char c)
{
    const bool inverted = *p == '!' || *p == '^';
    const unsigned char folded = fold(m, c);
    bool found = false;
    p += inverted;
    for (const char *last = end - 1; p < last;) {
        const char *class = class_end(p, last);
        if (class != NULL) {
            found = found || is_of_class(p + 2, (size_t)(class - p) - 4, (unsigned char)c);
            p = class;
            continue;
        }
        const unsigned char low = bracket_byte(m, &p, last);
        unsigned char high = low;
        if (p + 1 < last && *p == '-') {
            p++;
            high = bracket_byte(m, &p, last);
        }
        found = found || (folded >= low && folded <= high);
    }
    return found != inverted;
}

/* An element of the pattern that fits one byte. */
struct one {
    const char *begin, *end; /* of a bracket, behind '[' and behind ']' */
    char byte;               /* else; with any, all fit */
    bool any;
};

static bool fits_one(const struct match *m, const struct one *one, char c)
{
    if (c == '/' && m->flags & PB_GLOB_PATH && (one->any || one->begin != NULL))
        return false;
    return one->any             ? true
           : one->begin != NULL ? is_in_bracket(m, one->begin, one->end, c)
                                : fold(m, one->byte) == fold(m, c);
}

static void move(const struct match *m, const struct one *one, struct places *at)
{
    struct places next;
    clear(m, &next);
    for (size_t i = 0; i < m->n; i++)
        if (has(at, i) && fits_one(m, one, m->name[i]))
            add(&next, i + 1);
    copy(m, at, &next);
}

/* Adds all places to the right. */
static void extend(const struct match *m, struct places *at)
{
    bool on = false;
    for (size_t i = 0; i <= m->n; i++) {
        on = on || has(at, i);
        if (on)
            add(at, i);
        if (i < m->n && m->name[i] == '/' && m->flags & PB_GLOB_PATH)
            on = false;
    }
}

/* --- groups ----------------------------------------------------------------------------------- */

static bool begins_group(const char *p, const char *end)
{
    return end - p > 2 && strchr("?*+@!", *p) != NULL && p[1] == '(';
}

/* The ')' of a group, or the '|' before it; NULL = there is none. p: behind '(' or '|'. */
static const char *part_end(const char *p, const char *end)
{
    int depth = 0;
    for (; p < end; p++) {
        const char *bracket = *p == '[' ? bracket_end(p + 1, end) : NULL;
        if (depth == 0 && (*p == ')' || *p == '|'))
            return p;
        if (bracket != NULL)
            p = bracket - 1;
        else if (*p == '\\' && p + 1 < end)
            p++;
        else if (begins_group(p, end)) {
            depth++;
            p++;
        } else if (*p == ')')
            depth--;
    }
    return NULL;
}

static const char *group_end(const char *p, const char *end)
{
    const char *part = part_end(p + 2, end);
    while (part != NULL && *part == '|')
        part = part_end(part + 1, end);
    return part != NULL ? part + 1 : NULL;
}

/* What the alternatives of the group at p reach from `from`. */
static void take_one(struct match *m, const char *p, const char *end, const struct places *from,
                     struct places *out)
{
    struct places at;
    clear(m, out);
    for (const char *part = p + 2; may_go_on(m, out);) {
        const char *stop = part_end(part, end);
        copy(m, &at, from);
        advance(m, part, stop, &at);
        merge(m, out, &at);
        if (*stop == ')')
            break;
        part = stop + 1;
    }
}

static void repeat(struct match *m, const char *p, const char *end, struct places *at)
{
    struct places fresh, reached;
    copy(m, &fresh, at);
    do {
        take_one(m, p, end, &fresh, &reached);
        merge(m, at, &reached);
        copy(m, &fresh, &reached);
    } while (!is_empty(m, &fresh));
}

/* From each place on its own: all to the right that no alternative reaches. */
static void exclude(struct match *m, const char *p, const char *end, struct places *at)
{
    struct places out, from, reached, all;
    clear(m, &out);
    for (size_t i = 0; i <= m->n; i++) {
        if (!has(at, i))
            continue;
        clear(m, &from);
        add(&from, i);
        copy(m, &all, &from);
        extend(m, &all);
        take_one(m, p, end, &from, &reached);
        if (m->steps > STEPS_MAX)
            break;
        for (size_t k = 0; k < m->n_words; k++)
            out.word[k] |= all.word[k] & ~reached.word[k];
    }
    copy(m, at, &out);
}

static void take_group(struct match *m, const char *p, const char *end, struct places *at)
{
    struct places reached;
    if (*p == '!') {
        exclude(m, p, end, at);
        return;
    }
    if (*p != '*') {
        take_one(m, p, end, at, &reached);
        if (*p == '?')
            merge(m, at, &reached);
        else
            copy(m, at, &reached);
    }
    if (*p == '*' || *p == '+')
        repeat(m, p, end, at);
}

/* --- patterns --------------------------------------------------------------------------------- */

static void advance(struct match *m, const char *pattern, const char *end, struct places *at)
{
    for (const char *p = pattern; p < end && !is_empty(m, at) && may_go_on(m, at);) {
        const char *group =
            m->flags & PB_GLOB_GROUPS && begins_group(p, end) ? group_end(p, end) : NULL;
        if (group != NULL) {
            take_group(m, p, group, at);
            p = group;
            continue;
        }
        struct one one = {.byte = *p, .any = *p == '?'};
        const char *bracket = *p == '[' ? bracket_end(p + 1, end) : NULL;
        const bool is_star = *p == '*';
        if (bracket != NULL) {
            one.begin = p + 1;
            one.end = bracket;
        } else if (*p == '\\' && p + 1 < end) {
            one.byte = *++p;
        }
        p = bracket != NULL ? bracket : p + 1;
        if (is_star)
            extend(m, at);
        else
            move(m, &one, at);
    }
}

bool pb_glob_fits(const char *pattern, const char *name, unsigned flags)
{
    const size_t length = strlen(pattern), n = strlen(name);
    struct match m = {.name = name, .n = n, .n_words = n / 64 + 1, .flags = flags};
    struct places at;
    if (length > PB_GLOB_FITS_MAX || n > PB_GLOB_FITS_MAX)
        return false;
    clear(&m, &at);
    add(&at, 0);
    advance(&m, pattern, pattern + length, &at);
    return has(&at, n);
}

const char *pb_glob_wrong(const char *pattern)
{
    const char *end = pattern + strlen(pattern);
    int depth = 0;
    if (end - pattern > PB_GLOB_PATTERN_MAX)
        return "is a pattern of more than 500 bytes";
    for (const char *p = pattern; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        else if (begins_group(p, end) && ++depth > PB_GLOB_DEPTH_MAX)
            return "has more than 4 groups inside each other";
        else if (*p == ')' && depth > 0)
            depth--;
    }
    return NULL;
}
