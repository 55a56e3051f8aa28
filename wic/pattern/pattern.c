/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The registry of patterns: the built-in ones, then those registered (by wic/pattern/plugin.c),
 * which stay until the process ends. */
#include "wic/pattern/pattern.h"

#include "wic/pattern/schedule.h"
#include "wic/pattern/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* The layout that a device reads must be the same for every compiler. */
_Static_assert(sizeof(struct wic_step) == 64, "a step is 64 bytes for ever");
_Static_assert(offsetof(struct wic_step, reserved) == 60, "a step has no holes");
_Static_assert(offsetof(struct wic_pattern, size) == 4, "abi and size must stay first");

static const struct wic_pattern *const built_in[] = {&wic_pattern_unidirectional};

#define SIZE_MAX_PLAUSIBLE 4096 /* of a later version's struct */
#define BUILT_IN           (sizeof(built_in) / sizeof(built_in[0]))

static struct {
    pthread_mutex_t lock; /* protects all below */
    const struct wic_pattern *patterns[WIC_PATTERNS_MAX - BUILT_IN];
    size_t count;
} registered = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool name_good(const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, WIC_PATTERN_NAME_MAX);
    return length > 0 && length < WIC_PATTERN_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static bool doc_good(const char *doc)
{
    return doc != NULL && strnlen(doc, WIC_PATTERN_DOC_MAX) < WIC_PATTERN_DOC_MAX;
}

static const struct wic_pattern_arg *arg_of(const struct wic_pattern *pattern, const char *name)
{
    for (uint64_t i = 0; i < pattern->arg_count; i++) {
        if (strcmp(pattern->args[i].name, name) == 0) {
            return &pattern->args[i];
        }
    }
    return NULL;
}

/* The pattern's name is good. */
static int check_args(const struct wic_pattern *pattern, char *text, size_t text_bytes)
{
    if (pattern->arg_count > WIC_PATTERN_ARGS_MAX ||
        (pattern->arg_count > 0 && pattern->args == NULL)) {
        return wic_fail(-EINVAL, text, text_bytes, "pattern %s has more than %d arguments, or none",
                        pattern->name, WIC_PATTERN_ARGS_MAX);
    }
    for (uint64_t i = 0; i < pattern->arg_count; i++) {
        const struct wic_pattern_arg *arg = &pattern->args[i];
        if (!name_good(arg->name) || strcmp(arg->name, "pattern") == 0 || !doc_good(arg->doc) ||
            arg->min > arg->def || arg->def > arg->max) {
            return wic_fail(-EINVAL, text, text_bytes,
                            "pattern %s: argument %llu has a bad name, doc or range", pattern->name,
                            (unsigned long long)i);
        }
        if (arg_of(pattern, arg->name) != arg) {
            return wic_fail(-EINVAL, text, text_bytes, "pattern %s has two arguments %s",
                            pattern->name, arg->name);
        }
    }
    return 0;
}

int wic_pattern_check(const struct wic_pattern *pattern, char *text, size_t text_bytes)
{
    if (pattern == NULL) {
        return wic_fail(-EINVAL, text, text_bytes, "there is no pattern");
    }
    if (pattern->abi != WIC_PATTERN_ABI) {
        return wic_fail(-EPROTO, text, text_bytes,
                        "the pattern was made for ABI %u, this program has %u; build it again",
                        pattern->abi, WIC_PATTERN_ABI);
    }
    /* A larger size is accepted: members after the known ones belong to a later version and are
     * optional. */
    if (pattern->size < sizeof(struct wic_pattern) || pattern->size > SIZE_MAX_PLAUSIBLE) {
        return wic_fail(-EPROTO, text, text_bytes, "the pattern's struct has %u bytes, not %zu",
                        pattern->size, sizeof(struct wic_pattern));
    }
    if (!name_good(pattern->name)) {
        return wic_fail(-EINVAL, text, text_bytes,
                        "the pattern's name is not a-z followed by a-z 0-9 _");
    }
    if (!doc_good(pattern->doc)) {
        return wic_fail(-EINVAL, text, text_bytes, "pattern %s has no doc, or too long a one",
                        pattern->name);
    }
    if (pattern->create == NULL || pattern->next == NULL || pattern->destroy == NULL) {
        return wic_fail(-EINVAL, text, text_bytes,
                        "pattern %s lacks one of create, next and destroy", pattern->name);
    }
    return check_args(pattern, text, text_bytes);
}

void wic_pattern_defaults(const struct wic_pattern *pattern, uint64_t *args)
{
    for (uint64_t i = 0; i < pattern->arg_count; i++) {
        args[i] = pattern->args[i].def;
    }
}

int wic_pattern_set(const struct wic_pattern *pattern, uint64_t *args, const char *name,
                    uint64_t value, char *text, size_t text_bytes)
{
    const struct wic_pattern_arg *arg = name == NULL ? NULL : arg_of(pattern, name);
    if (arg == NULL) {
        return wic_fail(-ENOENT, text, text_bytes, "pattern %s has no argument '%.80s'",
                        pattern->name, name == NULL ? "" : name);
    }
    if (value < arg->min || value > arg->max) {
        return wic_fail(-ERANGE, text, text_bytes,
                        "pattern %s: %s is %llu; allowed are %llu to %llu", pattern->name, name,
                        (unsigned long long)value, (unsigned long long)arg->min,
                        (unsigned long long)arg->max);
    }
    args[arg - pattern->args] = value;
    return 0;
}

/* With the lock held. */
static const struct wic_pattern *at(size_t i)
{
    if (i < BUILT_IN) {
        return built_in[i];
    }
    return i - BUILT_IN < registered.count ? registered.patterns[i - BUILT_IN] : NULL;
}

static const struct wic_pattern *find(const char *name)
{
    const struct wic_pattern *pattern;
    for (size_t i = 0; (pattern = at(i)) != NULL; i++) {
        if (strcmp(pattern->name, name) == 0) {
            return pattern;
        }
    }
    return NULL;
}

const struct wic_pattern *wic_pattern_at(size_t i)
{
    pthread_mutex_lock(&registered.lock);
    const struct wic_pattern *pattern = at(i);
    pthread_mutex_unlock(&registered.lock);
    return pattern;
}

const struct wic_pattern *wic_pattern_find(const char *name)
{
    pthread_mutex_lock(&registered.lock);
    const struct wic_pattern *pattern = name == NULL ? NULL : find(name);
    pthread_mutex_unlock(&registered.lock);
    return pattern;
}

int wic_pattern_register(const struct wic_pattern *pattern, char *text, size_t text_bytes)
{
    int rc = wic_pattern_check(pattern, text, text_bytes);
    if (rc != 0) {
        return rc;
    }
    pthread_mutex_lock(&registered.lock);
    const struct wic_pattern *same = find(pattern->name);
    if (same != NULL && same != pattern) {
        rc = wic_fail(-EEXIST, text, text_bytes, "there is another pattern %s", pattern->name);
    } else if (same == NULL && registered.count == WIC_PATTERNS_MAX - BUILT_IN) {
        rc = wic_fail(-ENOSPC, text, text_bytes, "pattern %s: there are %d already", pattern->name,
                      WIC_PATTERNS_MAX);
    } else if (same == NULL) {
        registered.patterns[registered.count++] = pattern;
    }
    pthread_mutex_unlock(&registered.lock);
    return rc;
}
