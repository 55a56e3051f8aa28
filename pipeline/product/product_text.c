/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product_text.h"

#include "pipeline/io/file_out.h"

#include <stdio.h>
#include <stdlib.h>

int pb_product_text(const struct pb_product_env *env, struct pb_json *json, struct pb_err *err,
                    struct pb_product_result *result)
{
    struct pb_file_out *file = NULL;
    char *path = NULL, checksum[PB_CHECKSUM_TEXT_BYTES];
    size_t bytes;
    const char *text = pb_json_document(json, &bytes);
    if (text == NULL || asprintf(&path, "%s/%s", env->directory, result->file) < 0)
        return pb_fail(err, PB_E_MEMORY, "no memory to write %s", result->file);
    int rc = pb_file_out_create(path, env->checksum, err, &file);
    if (rc == 0) {
        pb_file_out_watch(file, env->progress);
        rc = pb_file_out_add(file, text, bytes, err);
    }
    if (rc == 0)
        rc = pb_file_out_finish(file, err, checksum);
    if (rc == 0) {
        result->bytes = bytes;
        (void)snprintf(result->checksum, sizeof result->checksum, "%s", checksum);
    }
    pb_file_out_destroy(file);
    free(path);
    return rc;
}
