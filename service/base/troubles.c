/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/troubles.h"

#include "config/base/text_clean.h"
#include "config/base/clock.h"
#include "service/base/log.h"

#include <string.h>

static struct pb_trouble *find(struct pb_troubles *troubles, const char *key)
{
    for (size_t i = 0; i < troubles->n; i++) {
        if (strcmp(troubles->at[i].key, key) == 0)
            return &troubles->at[i];
    }
    return NULL;
}

static void changed(struct pb_troubles *troubles)
{
    if (troubles->on_change != NULL)
        troubles->on_change(troubles->user);
}

static void log_raised(const char *key, enum pb_code code, const char *text)
{
    const char *hint = pb_code_hint(code);
    pb_log(PB_LOG_ERROR, "trouble (%s, %s): %s%s%s", key, pb_code_id(code), text,
           hint[0] != '\0' ? "; " : "", hint);
}

static struct pb_trouble *add(struct pb_troubles *troubles, const char *key)
{
    struct pb_trouble *trouble = &troubles->at[troubles->n++];
    (void)snprintf(trouble->key, sizeof trouble->key, "%s", key);
    trouble->since_ms = pb_clock_wall_ms();
    return trouble;
}

void pb_trouble_raise(struct pb_troubles *troubles, const char *key, enum pb_code code,
                      const char *text)
{
    if (troubles == NULL)
        return;
    char clean[sizeof troubles->at[0].text];
    (void)pb_text_clean(text, clean, sizeof clean);
    struct pb_trouble *trouble = find(troubles, key);
    if (trouble != NULL && trouble->code == code && strcmp(trouble->text, clean) == 0)
        return;
    if (trouble == NULL && troubles->n == PB_TROUBLES_MAX) {
        log_raised(key, code, clean);
        return;
    }
    bool is_new = trouble == NULL || trouble->code != code;
    if (trouble == NULL)
        trouble = add(troubles, key);
    trouble->code = code;
    (void)memcpy(trouble->text, clean, sizeof clean);
    if (is_new || pb_clock_mono_ms() - trouble->logged_ms >= PB_TROUBLE_REPEAT_MS) {
        trouble->logged_ms = pb_clock_mono_ms();
        log_raised(key, code, clean);
    }
    changed(troubles);
}

void pb_trouble_clear(struct pb_troubles *troubles, const char *key)
{
    struct pb_trouble *trouble = troubles ? find(troubles, key) : NULL;
    if (trouble == NULL)
        return;
    pb_log(PB_LOG_NOTICE, "trouble (%s, %s) is over; it was: %s", trouble->key,
           pb_code_id(trouble->code), trouble->text);
    size_t after = (size_t)(&troubles->at[troubles->n] - (trouble + 1));
    (void)memmove(trouble, trouble + 1, after * sizeof *trouble);
    (void)memset(&troubles->at[--troubles->n], 0, sizeof *trouble);
    changed(troubles);
}

const struct pb_trouble *pb_trouble_find(const struct pb_troubles *troubles, const char *key)
{
    for (size_t i = 0; troubles != NULL && i < troubles->n; i++) {
        if (strcmp(troubles->at[i].key, key) == 0)
            return &troubles->at[i];
    }
    return NULL;
}

void pb_troubles_print(const struct pb_troubles *troubles, struct pb_json *json, const char *key)
{
    char since[PB_CLOCK_TEXT_BYTES];
    pb_json_array(json, key);
    for (size_t i = 0; troubles != NULL && i < troubles->n; i++) {
        const struct pb_trouble *trouble = &troubles->at[i];
        pb_clock_text(trouble->since_ms, since);
        pb_json_object(json, NULL);
        pb_json_string(json, "key", trouble->key);
        pb_json_string(json, "code", pb_code_id(trouble->code));
        pb_json_string(json, "message", trouble->text);
        pb_json_string(json, "hint", pb_code_hint(trouble->code));
        pb_json_string(json, "since", since);
        pb_json_end(json);
    }
    pb_json_end(json);
}

void pb_troubles_metrics(const struct pb_troubles *troubles, FILE *out)
{
    (void)fputs("# HELP pushbroom_trouble Conditions that the service waits out, 1 while each "
                "lasts.\n# TYPE pushbroom_trouble gauge\n",
                out);
    for (size_t i = 0; troubles != NULL && i < troubles->n; i++)
        (void)fprintf(out, "pushbroom_trouble{key=\"%s\",code=\"%s\"} 1\n", troubles->at[i].key,
                      pb_code_id(troubles->at[i].code));
}

void pb_troubles_summary(const struct pb_troubles *troubles, char *out, size_t bytes)
{
    char more[48] = "", text[300];
    out[0] = '\0';
    if (troubles == NULL || troubles->n == 0)
        return;
    if (troubles->n > 1)
        (void)snprintf(more, sizeof more, " (and %zu more)", troubles->n - 1);
    (void)pb_text_clean(troubles->at[0].text, text, sizeof text);
    (void)snprintf(out, bytes, "trouble: %s%s; ", text, more);
}
