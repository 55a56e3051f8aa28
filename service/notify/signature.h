/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SIGNATURE_H
#define PB_SIGNATURE_H
/* Signatures of webhooks as standardwebhooks.com describes them. Thread: any. */
#include "service/notify/secret.h"

#include <stddef.h>
#include <stdint.h>

#define PB_SIGNATURE_BYTES 64

/* "v1,<base64>": HMAC with SHA-256 of "<id>.<time>.<body>". The key is the secret as it stands in
 * its file, or, of one that begins with "whsec_", what its base64 stands for. 0 or -EINVAL (that is
 * no base64), -ENOMEM. */
int pb_signature_make(const struct pb_secret *secret, const char *id, int64_t time_s,
                      const char *body, size_t bytes, char out[PB_SIGNATURE_BYTES]);
#endif
