/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ERR_H
#define PB_ERR_H
/* Errors for the user: a code of one list (err_codes.def), the place, the message; the hint (what
 * to do) belongs to the code. Plain memory owned by the caller; zero-initialised means "no error".
 * Not shared between threads without the caller's lock. */
#include <stdbool.h>

enum pb_code {
    PB_OK,
#define PB_ERR(code, id, rc, class, hint) PB_E_##code,
#include "config/base/err_codes.def"
#undef PB_ERR
    PB_E_COUNT
};

/* The cause of an error, which decides what follows. */
enum pb_code_class {
    PB_CLASS_INPUT,   /* the file's own: the job fails, its input goes to quarantine */
    PB_CLASS_CONFIG,  /* the configuration does not fit the file: the job waits for another one, or
                         fails when the configuration fits others */
    PB_CLASS_MACHINE, /* disk, memory, device: the job waits and is tried again */
    PB_CLASS_REQUEST  /* a config, command or request: reported to its author */
};

struct pb_err {
    enum pb_code code;
    char file[256]; /* file that the message is about, or ""; for display only */
    int line, col;  /* 1-based; 0 = not known */
    char msg[512];
};

/* Fills *err and returns the code's negative errno. The first error wins: when err already holds
 * one, it stays and its errno is returned. err may be NULL. Control characters become '?'. Thread:
 * any. */
int pb_fail(struct pb_err *err, enum pb_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with the place in a file (borrowed for the call; line and col 0 when not known). */
int pb_fail_at(struct pb_err *err, enum pb_code code, const char *file, int line, int col,
               const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Dotted word such as "input.truncated", and the advice that goes with it. Static strings. */
const char *pb_code_id(enum pb_code code);
const char *pb_code_hint(enum pb_code code);
/* Negative errno of a code. */
int pb_code_errno(enum pb_code code);
enum pb_code_class pb_code_class(enum pb_code code);
/* The code of a dotted word; PB_E_COUNT = there is none of that name. */
enum pb_code pb_code_find(const char *id);
/* The class of a dotted word; an unknown one counts as the input's. */
enum pb_code_class pb_code_class_of(const char *id);

/* Writes "file:line:col: message; hint" (parts that are known) into out, NUL-terminated. */
void pb_err_text(const struct pb_err *err, char *out, unsigned long out_bytes);
#endif
