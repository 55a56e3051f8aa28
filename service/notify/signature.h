/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SIGNATURE_H
#define PB_SIGNATURE_H
/* Signatures of webhooks as standardwebhooks.com describes them. Thread: any. */
#include "service/notify/secret.h"

#include <stddef.h>
#include <stdint.h>

#define PB_SIGNATURE_BYTES 64

/* "v1,<base64>": HMAC with SHA-256 of "<id>.<time>.<body>". The key is the text of the secret's
 * file, or, if that begins with "whsec_", the decoded base64 after it. 0 or -EINVAL (no base64),
 * -ENOMEM. */
int pb_signature_make(const struct pb_secret *secret, const char *id, int64_t time_s,
                      const char *body, size_t bytes, char out[PB_SIGNATURE_BYTES]);
#endif
