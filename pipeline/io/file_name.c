/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_name.h"

#include "config/base/archive_name.h"
#include "config/base/text_clean.h"
#include "pipeline/io/sha256.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SUFFIX_BYTES_MAX 20
#define TAG_DIGITS       12

/* Returns true if a name may contain the character: not one that a terminal would interpret. */
static bool may_hold(uint32_t code)
{
    return !pb_text_is_control(code) && code != '/';
}

bool pb_file_name_is_utf8(const char *name)
{
    uint32_t code;
    for (const char *s = name; *s != '\0';) {
        size_t step = pb_text_character(s, &code);
        if (step == 0)
            return false;
        s += step;
    }
    return true;
}

bool pb_file_name_is_clean(const char *name)
{
    uint32_t code;
    for (const char *s = name; *s != '\0';) {
        size_t step = pb_text_character(s, &code);
        if (step == 0 || !may_hold(code))
            return false;
        s += step;
    }
    return name[0] != '\0' && name[0] != '.' && strlen(name) <= NAME_MAX;
}

/* Length of the text limited to `bytes`, not cut within a character. */
static size_t cut(const char *text, size_t length, size_t bytes)
{
    if (length <= bytes)
        return length;
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
        bytes--;
    return bytes;
}

/* Replaces forbidden bytes; returns true if the name changed. */
static bool replace_bytes(const char *name, char *out, size_t bytes)
{
    size_t n = 0;
    bool changed = false;
    const char *s = name;
    while (*s != '\0' && n + 5 < bytes) {
        uint32_t code = 0;
        size_t step = pb_text_character(s, &code);
        if (step == 0 || !may_hold(code)) {
            out[n++] = '_';
            s += step > 0 ? step : 1;
            changed = true;
            continue;
        }
        (void)memcpy(out + n, s, step);
        n += step;
        s += step;
    }
    out[n] = '\0';
    return changed || *s != '\0';
}

static void hash_tag(const char *name, char out[TAG_DIGITS + 1])
{
    char hex[65] = "000000000000"; /* without memory for a hash the name is only less distinct */
    struct pb_sha256 *sum = pb_sha256_create();
    pb_sha256_add(sum, name, strlen(name));
    (void)pb_sha256_hex(sum, hex);
    pb_sha256_destroy(sum);
    (void)snprintf(out, TAG_DIGITS + 1, "%.*s", TAG_DIGITS, hex);
}

void pb_file_name_clean(const char *name, char out[256])
{
    char clean[512], tag[TAG_DIGITS + 1];
    bool changed = replace_bytes(name, clean, sizeof clean);
    size_t n = strlen(clean);
    if (!changed && n <= PB_FILE_NAME_BYTES_MAX) {
        (void)snprintf(out, 256, "%.*s", PB_FILE_NAME_BYTES_MAX, clean);
        return;
    }
    const char *suffix = strrchr(clean, '.');
    if (suffix == NULL || suffix == clean || strlen(suffix) > SUFFIX_BYTES_MAX)
        suffix = clean + n;
    size_t room = PB_FILE_NAME_BYTES_MAX - strlen(suffix) - TAG_DIGITS - 1;
    size_t keep = cut(clean, (size_t)(suffix - clean), room);
    hash_tag(name, tag);
    (void)snprintf(out, 256, "%.*s-%s%s", (int)keep, clean, tag, suffix);
}

void pb_file_name_scene(const char *path, char *out, size_t bytes)
{
    char clean[256];
    const char *slash = strrchr(path, '/');
    pb_file_name_clean(slash ? slash + 1 : path, clean);
    size_t stem = pb_archive_name_stem(clean);
    if (stem > 0)
        clean[stem] = '\0';
    char *dot = strrchr(clean, '.');
    if (dot != NULL && dot != clean && (stem == 0 || strcasecmp(dot, ".SAFE") == 0))
        *dot = '\0';
    if (clean[0] == '.')
        clean[0] = '_';
    (void)snprintf(out, bytes, "%s", clean[0] != '\0' ? clean : "scene");
}

void pb_file_name_place(const char *scene, unsigned n, char out[256])
{
    char version[16] = "";
    if (n > 1)
        (void)snprintf(version, sizeof version, "~%u", n);
    size_t keep = cut(scene, strlen(scene), NAME_MAX - strlen(version));
    (void)snprintf(out, 256, "%.*s%s", (int)keep, scene, version);
}

bool pb_file_name_is_place(const char *directory, const char *scene)
{
    char place[256];
    const char *mark = strrchr(directory, '~');
    unsigned long n = 1;
    if (mark != NULL && mark[1] >= '1' && mark[1] <= '9' &&
        strspn(mark + 1, "0123456789") == strlen(mark + 1) && strlen(mark + 1) <= 9)
        n = strtoul(mark + 1, NULL, 10);
    pb_file_name_place(scene, (unsigned)n, place);
    if (strcmp(directory, place) == 0)
        return true;
    pb_file_name_place(scene, 1, place); /* a scene that is named "x~2" itself */
    return strcmp(directory, place) == 0;
}
