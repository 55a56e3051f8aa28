/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/described.h"

#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/base/text_clean.h"
#include "pipeline/metadata/meta_time.h"
#include "config/base/err_json.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 16384

void pb_described_fail(struct pb_described *out, enum pb_code code, const char *message)
{
    *out = (struct pb_described){.code = code};
    (void)pb_text_clean(message, out->message, sizeof out->message);
}

void pb_described_fail_err(struct pb_described *out, const struct pb_err *err)
{
    char message[sizeof err->file + sizeof err->msg + 40];
    pb_err_words(err, message, sizeof message);
    pb_described_fail(out, err->code, message);
}

struct pb_json *pb_described_line(const struct pb_described *described)
{
    const bool failed = described->code != PB_OK;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "described");
    if (failed) {
        pb_json_object(json, "error");
        pb_json_string(json, "code", pb_code_id(described->code));
        pb_json_string(json, "message", described->message);
        pb_json_end(json);
    }
    if (!failed && described->facts.date[0] != '\0')
        pb_json_string(json, "date", described->facts.date);
    if (!failed && described->facts.tile[0] != '\0')
        pb_json_string(json, "tile", described->facts.tile);
    pb_json_end(json);
    return json;
}

static bool take_date(const char *text, char out[PB_GROUP_FACT_BYTES])
{
    return text == NULL ||
           (pb_meta_time(text, out, PB_GROUP_FACT_BYTES) == 0 && strcmp(text, out) == 0);
}

/* Takes the tile, which becomes a part of the name of a folder. */
static bool take_tile(const char *text, char out[PB_GROUP_FACT_BYTES])
{
    bool good = text == NULL || strlen(text) < PB_GROUP_FACT_BYTES;
    for (const char *p = text; good && p != NULL && *p != '\0'; p++)
        good = isalnum((unsigned char)*p) || strchr("-_.", *p) != NULL;
    if (good && text != NULL)
        (void)snprintf(out, PB_GROUP_FACT_BYTES, "%s", text);
    return good;
}

static bool take(const struct pb_json_value *value, struct pb_described *out)
{
    const char *event = pb_json_get_text(value, "event");
    const struct pb_json_value *error = pb_json_get(value, "error", NULL);
    const char *code = pb_json_get_text(error, "code");
    const char *message = pb_json_get_text(error, "message");
    if (event == NULL || strcmp(event, "described") != 0)
        return false;
    if (error == NULL)
        return take_date(pb_json_get_text(value, "date"), out->facts.date) &&
               take_tile(pb_json_get_text(value, "tile"), out->facts.tile);
    if (code == NULL || pb_code_find(code) == PB_E_COUNT || pb_code_find(code) == PB_OK)
        return false;
    pb_described_fail(out, pb_code_find(code),
                      message != NULL ? message : "the worker gave no reason");
    return true;
}

int pb_described_parse(const char *line, size_t bytes, struct pb_described *out)
{
    struct pb_described read = {.facts = {.date = ""}};
    struct pb_json_value *value = NULL;
    bool good = pb_json_parse(line, bytes, LINE_MAX_BYTES, &value) == 0 && take(value, &read);
    pb_json_release(value);
    if (good)
        *out = read;
    return good ? 0 : -EPROTO;
}
