/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config/group_pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATCH_LIMIT 100000u

struct pb_group_pattern {
    pcre2_code *code;
    pcre2_match_context *context;
    int scene; /* number of the group */
};

struct pb_group_pattern *pb_group_pattern_create(const char *pattern, char *text, size_t bytes)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    struct pb_group_pattern *group = calloc(1, sizeof *group);
    text[0] = '\0';
    if (group == NULL)
        return NULL;
    group->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_ANCHORED | PCRE2_CASELESS, &error, &at, NULL);
    group->context = pcre2_match_context_create(NULL);
    if (group->code == NULL) {
        PCRE2_UCHAR why[200] = "";
        (void)pcre2_get_error_message(error, why, sizeof why);
        (void)snprintf(text, bytes, "%s, at character %zu", (const char *)why, (size_t)at + 1);
    } else {
        group->scene = pcre2_substring_number_from_name(group->code, (PCRE2_SPTR) "scene");
        if (group->scene <= 0)
            (void)snprintf(text, bytes,
                           "it has no group (?<scene>...), which tells the scenes "
                           "apart");
    }
    if (text[0] == '\0' && group->context != NULL) {
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

bool pb_group_pattern_fits(const struct pb_group_pattern *group, const char *name, char *out_scene)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(group->code, NULL);
    bool fits = data != NULL && pcre2_match(group->code, (PCRE2_SPTR)name, PCRE2_ZERO_TERMINATED, 0,
                                            PCRE2_ENDANCHORED, data, group->context) > 0;
    const PCRE2_SIZE *span = fits ? pcre2_get_ovector_pointer(data) + 2 * group->scene : NULL;
    size_t n = fits && span[0] != PCRE2_UNSET && span[1] > span[0] ? span[1] - span[0] : 0;
    /* The scene names a folder, and hidden ones are no inputs. */
    fits = n > 0 && n < 256 && name[span[0]] != '.' && memchr(name + span[0], '/', n) == NULL;
    if (fits)
        (void)snprintf(out_scene, 256, "%.*s", (int)n, name + span[0]);
    pcre2_match_data_free(data);
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
