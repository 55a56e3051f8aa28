/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* One table row a code, made from the same list as the enum. */
#include "config/base/err.h"
#include "config/base/text_clean.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct code_row {
    const char *id, *hint;
    int rc;
    enum pb_code_class class;
};

static const struct code_row rows[PB_E_COUNT] = {
    [PB_OK] = {"ok", "", 0, PB_CLASS_REQUEST},
#define PB_ERR(code, id, rc, class, hint) [PB_E_##code] = {id, hint, rc, PB_CLASS_##class},
#include "config/base/err_codes.def"
#undef PB_ERR
};

static const struct code_row *row_of(enum pb_code code)
{
    return &rows[(unsigned)code < PB_E_COUNT ? code : PB_E_SYSTEM];
}

const char *pb_code_id(enum pb_code code)
{
    return row_of(code)->id;
}

const char *pb_code_hint(enum pb_code code)
{
    return row_of(code)->hint;
}

int pb_code_errno(enum pb_code code)
{
    return -row_of(code)->rc;
}

enum pb_code_class pb_code_class(enum pb_code code)
{
    return row_of(code)->class;
}

enum pb_code pb_code_find(const char *id)
{
    for (unsigned code = PB_OK + 1u; code < PB_E_COUNT; code++) {
        if (strcmp(rows[code].id, id) == 0)
            return (enum pb_code)code;
    }
    return PB_E_COUNT;
}

enum pb_code_class pb_code_class_of(const char *id)
{
    const enum pb_code code = pb_code_find(id);
    return code == PB_E_COUNT ? PB_CLASS_INPUT : pb_code_class(code);
}

/* File names and messages of libraries may contain control characters, which a terminal would
 * interpret. */
static void defuse(char *text)
{
    for (char *s = text; *s != '\0';) {
        uint32_t code = 0;
        size_t n = pb_text_character(s, &code);
        if (n > 0 && pb_text_is_control(code))
            memset(s, '?', n);
        s += n > 0 ? n : 1;
    }
}

static int fill(struct pb_err *err, enum pb_code code, const char *format, va_list args)
{
    err->code = code;
    (void)vsnprintf(err->msg, sizeof err->msg, format, args);
    defuse(err->msg);
    return pb_code_errno(code);
}

int pb_fail(struct pb_err *err, enum pb_code code, const char *format, ...)
{
    if (err == NULL)
        return pb_code_errno(code);
    if (err->code != PB_OK)
        return pb_code_errno(err->code);
    va_list args;
    va_start(args, format);
    int rc = fill(err, code, format, args);
    va_end(args);
    return rc;
}

int pb_fail_at(struct pb_err *err, enum pb_code code, const char *file, int line, int col,
               const char *format, ...)
{
    if (err == NULL)
        return pb_code_errno(code);
    if (err->code != PB_OK)
        return pb_code_errno(err->code);
    (void)snprintf(err->file, sizeof err->file, "%s", file ? file : "");
    defuse(err->file);
    err->line = line;
    err->col = col;
    va_list args;
    va_start(args, format);
    int rc = fill(err, code, format, args);
    va_end(args);
    return rc;
}

void pb_err_text(const struct pb_err *err, char *out, unsigned long out_bytes)
{
    char place[300] = "";
    if (err->file[0] && err->line > 0)
        (void)snprintf(place, sizeof place, "%s:%d:%d: ", err->file, err->line, err->col);
    else if (err->file[0])
        (void)snprintf(place, sizeof place, "%s: ", err->file);
    /* An error with a line has a message that needs no hint. */
    const char *hint = err->line <= 0 ? pb_code_hint(err->code) : "";
    (void)snprintf(out, out_bytes, "%s%s%s%s", place, err->msg, *hint ? "; " : "", hint);
}
