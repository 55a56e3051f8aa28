/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PATTERN_LIMITS_H
#define WIC_PATTERN_LIMITS_H
/* Limits of a communication pattern's texts and arguments, for arrays in headers that need nothing
 * else of wic/pattern/pattern.h. */

#define WIC_PATTERN_NAME_MAX 32  /* with the terminator; a-z, then a-z 0-9 _ */
#define WIC_PATTERN_DOC_MAX  512 /* with the terminator */
#define WIC_PATTERN_ARGS_MAX 16
#endif
