/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a line on the status socket: parsed, and answered when they cannot be served. An
 * answer must itself be JSON. */
#include "config/base/json_reader.h"
#include "service/status/status_proto.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct pb_request request;
    struct pb_fault fault;
    struct pb_err err = {0};
    int rc = pb_request_parse((const char *)data, bytes, &request, &fault);
    struct pb_json *reply = pb_json_create(false);
    (void)pb_fail(&err, PB_E_JOB_UNKNOWN, "%s", request.job ? request.job : "none");
    if (rc != 0)
        pb_reply_fault(reply, &request, &fault);
    else
        pb_reply_error(reply, &request, &err);
    size_t n = 0;
    struct pb_json_value *value = NULL;
    const char *text = pb_json_text(reply, &n);
    if (text == NULL || pb_json_parse(text, n, 1 << 20, &value) != 0)
        abort();
    pb_json_release(value);
    pb_json_destroy(reply);
    pb_request_fini(&request);
    return 0;
}
