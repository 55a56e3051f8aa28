/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config/group_pattern.h"

#include <ctype.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MATCH_LIMIT 100000u
#define NAME_BYTES  33 /* of a group: PCRE2's limit */

struct pb_group_pattern {
    pcre2_code *code;
    pcre2_match_context *context;
    const char *by;
    bool asks; /* it has parts that metadata tell */
};

static const struct {
    const char *word, *pattern;
} families[] = {
    {"sentinel2", "(?<scene>T(?<tile>\\d\\d[A-Z]{3})_(?<date>\\d{8}T\\d{6}))"
                  "_(B\\d[\\dA]|SCL|TCI|AOT|WVP|PVI)(_[126]0m)?\\.(jp2|tiff?)"},
    {"landsat", "(?<scene>L[COTEM]0\\d_L[12][A-Z]{2}_(?<tile>\\d{6})_(?<date>\\d{8})_\\d{8}"
                "_0[12]_(RT|T[12]))_\\w+\\.(tif|txt|xml|json)"},
};

static const char *expression_of(const char *pattern)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].word, pattern) == 0)
            return families[i].pattern;
    return pattern;
}

static const char *template_of(const char *by)
{
    static const struct {
        const char *word, *text;
    } words[] = {{"date", "{date:%Y%m%d}"},
                 {"tile", "{tile}"},
                 {"meta.date", "{meta.date:%Y%m%d}"},
                 {"meta.tile", "{meta.tile}"}};
    for (size_t i = 0; by != NULL && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, by) == 0)
            return words[i].text;
    return by != NULL ? by : "{scene}";
}

/* --- input.by ---------------------------------------------------------------------------------*/

struct part {
    char name[NAME_BYTES], format[64]; /* format "": none is given */
};

/* "{NAME}" or "{NAME:FORMAT}" at the brace; the character behind it, or NULL. */
static const char *read_part(const char *brace, struct part *out)
{
    const char *end = strchr(brace, '}');
    const char *colon = end ? memchr(brace, ':', (size_t)(end - brace)) : NULL;
    const char *stop = colon ? colon : end;
    if (end == NULL || stop - brace - 1 >= NAME_BYTES || stop == brace + 1 || end - stop >= 64 ||
        (colon != NULL && colon + 1 == end))
        return NULL;
    (void)snprintf(out->name, NAME_BYTES, "%.*s", (int)(stop - brace - 1), brace + 1);
    (void)snprintf(out->format, 64, "%.*s", colon ? (int)(end - colon - 1) : 0,
                   colon ? colon + 1 : "");
    return end + 1;
}

static bool has_group(const struct pb_group_pattern *group, const char *name)
{
    return pcre2_substring_number_from_name(group->code, (PCRE2_SPTR)name) !=
           PCRE2_ERROR_NOSUBSTRING;
}

static bool is_fact(const char *name)
{
    return strncmp(name, "meta.", strlen("meta.")) == 0;
}

/* What metadata say under that name of input.by; NULL: there is no such fact. */
static const char *fact_of(const struct pb_group_facts *facts, const char *name)
{
    return strcmp(name, "meta.date") == 0   ? facts->date
           : strcmp(name, "meta.tile") == 0 ? facts->tile
                                            : NULL;
}

static void check_part(const struct pb_group_pattern *group, bool is_given, const struct part *part,
                       struct pb_group_wrong *wrong)
{
    static const struct pb_group_facts none = {.date = ""};
    const bool dated = strcmp(part->name, "date") == 0 || strcmp(part->name, "meta.date") == 0;
    char *text = wrong->text;
    wrong->of_by = is_fact(part->name) || (part->format[0] != '\0' && !dated);
    if (is_fact(part->name) && fact_of(&none, part->name) == NULL)
        (void)snprintf(text, sizeof wrong->text,
                       "input.by: {%s} is not read from metadata; {meta.date} and {meta.tile} are",
                       part->name);
    else if (!is_fact(part->name) && !has_group(group, part->name) && is_given)
        (void)snprintf(text, sizeof wrong->text,
                       "it has no group (?<%s>...), which input.by '%.80s' is made of", part->name,
                       group->by);
    else if (!is_fact(part->name) && !has_group(group, part->name))
        (void)snprintf(
            text, sizeof wrong->text,
            "it has no group (?<scene>...), which distinguishes scenes; or write input.by");
    else if (part->format[0] != '\0' && !dated)
        (void)snprintf(text, sizeof wrong->text,
                       "input.by: a format is for {date:%%Y%%m} and {meta.date:%%Y%%m}, not for "
                       "{%s}",
                       part->name);
}

/* Whether all parts can be filled in; else why. Learns whether it asks. */
static bool check_by(struct pb_group_pattern *group, bool is_given, struct pb_group_wrong *wrong)
{
    struct part part;
    const char *p = strchr(group->by, '{');
    const bool has_slash = strchr(group->by, '/') != NULL;
    wrong->of_by = p == NULL || has_slash;
    if (has_slash)
        (void)snprintf(wrong->text, sizeof wrong->text,
                       "input.by: '%.80s' has a slash, and a scene is the name of a folder",
                       group->by);
    else if (p == NULL && has_group(group, group->by))
        (void)snprintf(wrong->text, sizeof wrong->text,
                       "input.by: '%.80s' lacks its braces: write \"{%.80s}\"", group->by,
                       group->by);
    else if (p == NULL)
        (void)snprintf(wrong->text, sizeof wrong->text,
                       "input.by: '%.80s' names no group in braces", group->by);
    for (; p != NULL && wrong->text[0] == '\0'; p = strchr(p, '{')) {
        p = read_part(p, &part);
        if (p == NULL) {
            wrong->of_by = true;
            (void)snprintf(wrong->text, sizeof wrong->text,
                           "input.by: a brace in '%.80s' contains no name of a group, or no format "
                           "after its colon",
                           group->by);
            break;
        }
        check_part(group, is_given, &part, wrong);
        group->asks = group->asks || is_fact(part.name);
    }
    return wrong->text[0] == '\0';
}

/* Year, month and day from the digits of a date. */
static bool read_date(const char *date, struct tm *out)
{
    char digits[9] = "";
    size_t n = 0;
    for (const char *p = date; *p != '\0' && n < 8; p++)
        if (isdigit((unsigned char)*p))
            digits[n++] = *p;
    *out = (struct tm){.tm_isdst = 0};
    const char *end = n == 8 ? strptime(digits, "%Y%m%d", out) : NULL;
    struct tm same = *out;
    return end != NULL && *end == '\0' && timegm(&same) != -1 && same.tm_mday == out->tm_mday;
}

/* Of a fact, with the time of day. */
static bool read_time(const char *date, struct tm *out)
{
    *out = (struct tm){.tm_isdst = 0};
    if (strptime(date, "%Y-%m-%dT%H:%M:%S", out) == NULL)
        return false;
    (void)timegm(out); /* the day of the week and of the year */
    return true;
}

/* Where the value of a part comes from. */
struct sources {
    pcre2_match_data *groups;
    const struct pb_group_facts *facts;
};

/* The value of one part behind the text that is there: false when there is none or no room. */
static bool add_part(const struct sources *from, const struct part *part, char *out)
{
    const char *format = is_fact(part->name) && part->format[0] == '\0' ? "%Y%m%d" : part->format;
    const char *fact = fact_of(from->facts, part->name);
    char value[256];
    PCRE2_SIZE bytes = sizeof value;
    struct tm tm;
    size_t used = strlen(out);
    if (fact != NULL)
        (void)snprintf(value, sizeof value, "%s", fact);
    else if (pcre2_substring_copy_byname(from->groups, (PCRE2_SPTR)part->name, (PCRE2_UCHAR *)value,
                                         &bytes) != 0)
        return false;
    if (value[0] == '\0')
        return false;
    if (format[0] != '\0' && fact != from->facts->tile) {
        char formatted[256];
        if (!(fact != NULL ? read_time(value, &tm) : read_date(value, &tm)) ||
            strftime(formatted, sizeof formatted, format, &tm) == 0)
            return false;
        (void)snprintf(value, sizeof value, "%s", formatted);
    }
    return (size_t)snprintf(out + used, 256 - used, "%s", value) < 256 - used;
}

static bool fill(const struct pb_group_pattern *group, const struct sources *from, char out[256])
{
    struct part part;
    bool ok = true;
    out[0] = '\0';
    for (const char *p = group->by; ok && *p != '\0';) {
        const size_t used = strlen(out), plain = strcspn(p, "{");
        ok = used + plain < 256;
        if (ok)
            (void)snprintf(out + used, 256 - used, "%.*s", (int)plain, p);
        p += plain;
        if (ok && *p == '{') {
            p = read_part(p, &part);
            ok = p != NULL && add_part(from, &part, out);
        }
    }
    return ok;
}

/* --- the expression ---------------------------------------------------------------------------*/

struct pb_group_pattern *pb_group_pattern_create(const char *pattern, const char *by,
                                                 struct pb_group_wrong *out_wrong)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    struct pb_group_pattern *group = calloc(1, sizeof *group);
    *out_wrong = (struct pb_group_wrong){.text = ""};
    if (group == NULL)
        return NULL;
    group->by = template_of(by);
    group->code = pcre2_compile((PCRE2_SPTR)expression_of(pattern), PCRE2_ZERO_TERMINATED,
                                PCRE2_ANCHORED | PCRE2_CASELESS, &error, &at, NULL);
    group->context = pcre2_match_context_create(NULL);
    if (group->code == NULL) {
        PCRE2_UCHAR why[120] = "";
        (void)pcre2_get_error_message(error, why, sizeof why);
        (void)snprintf(out_wrong->text, sizeof out_wrong->text, "%s, at character %zu",
                       (const char *)why, (size_t)at + 1);
    } else {
        (void)check_by(group, by != NULL, out_wrong);
    }
    if (out_wrong->text[0] == '\0' && group->context != NULL) {
        (void)pcre2_set_match_limit(group->context, MATCH_LIMIT);
        (void)pcre2_set_depth_limit(group->context, MATCH_LIMIT);
        return group;
    }
    pb_group_pattern_destroy(group);
    return NULL;
}

void pb_group_pattern_destroy(struct pb_group_pattern *group)
{
    if (group == NULL)
        return;
    pcre2_code_free(group->code);
    pcre2_match_context_free(group->context);
    free(group);
}

/* NULL: it does not fit. The caller frees it. */
static pcre2_match_data *match(const struct pb_group_pattern *group, const char *name)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(group->code, NULL);
    if (data != NULL && pcre2_match(group->code, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0,
                                    PCRE2_ENDANCHORED, data, group->context) > 0)
        return data;
    pcre2_match_data_free(data);
    return NULL;
}

const char *pb_group_pattern_by(const struct pb_group_pattern *group)
{
    return group->by;
}

bool pb_group_pattern_asks(const struct pb_group_pattern *group)
{
    return group->asks;
}

const char *pb_group_pattern_lacks(const struct pb_group_pattern *group,
                                   const struct pb_group_facts *facts)
{
    struct part part;
    for (const char *p = group->by; (p = strchr(p, '{')) != NULL && (p = read_part(p, &part));) {
        const char *fact = fact_of(facts, part.name);
        if (fact != NULL && fact[0] == '\0')
            return fact == facts->date ? "meta.date" : "meta.tile";
    }
    return NULL;
}

bool pb_group_pattern_fits(const struct pb_group_pattern *group, const char *name,
                           const struct pb_group_facts *facts, char *out_scene)
{
    static const struct pb_group_facts any = {.date = "2000-01-01T00:00:00Z", .tile = "x"};
    const bool known = facts != NULL && pb_group_pattern_lacks(group, facts) == NULL;
    const bool asks = group->asks && !known;
    char scene[256];
    struct sources from = {.groups = match(group, name), .facts = known ? facts : &any};
    /* The scene names a folder, and hidden ones are no inputs. */
    bool fits = from.groups != NULL && fill(group, &from, scene) && scene[0] != '\0' &&
                scene[0] != '.' && strchr(scene, '/') == NULL;
    if (fits)
        memcpy(out_scene, asks ? "" : scene, asks ? 1 : strlen(scene) + 1);
    pcre2_match_data_free(from.groups);
    return fits;
}

bool pb_group_pattern_begins(const struct pb_group_pattern *group, const char *text, size_t length)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(group->code, NULL);
    bool begins =
        data != NULL && pcre2_match(group->code, (PCRE2_SPTR)text, length, 0, PCRE2_PARTIAL_HARD,
                                    data, group->context) == PCRE2_ERROR_PARTIAL;
    pcre2_match_data_free(data);
    return begins;
}

bool pb_group_pattern_has_date(const struct pb_group_pattern *group)
{
    return has_group(group, "date");
}

void pb_group_pattern_date(const struct pb_group_pattern *group, const char *name,
                           char out[PB_GROUP_DATE_BYTES])
{
    char value[256] = "";
    PCRE2_SIZE bytes = sizeof value;
    size_t n = 0;
    pcre2_match_data *data = match(group, name);
    if (data != NULL &&
        pcre2_substring_copy_byname(data, (PCRE2_SPTR) "date", (PCRE2_UCHAR *)value, &bytes) != 0)
        value[0] = '\0';
    for (const char *p = value; *p != '\0' && n + 1 < PB_GROUP_DATE_BYTES; p++)
        if (isdigit((unsigned char)*p) || (n == 8 && *p == 'T'))
            out[n++] = *p;
    out[n] = '\0';
    pcre2_match_data_free(data);
}
