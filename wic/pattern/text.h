/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_TEXT_H
#define WIC_TEXT_H
/* The reason of a failure as text, beside the errno. Inside wic/ only. */
#include <stddef.h>

/* Writes the text, cut to text_bytes (nothing when text is NULL), and returns rc. Thread: any. */
__attribute__((format(printf, 4, 5))) int wic_fail(int rc, char *text, size_t text_bytes,
                                                   const char *format, ...);

#endif
