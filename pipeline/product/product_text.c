/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product_text.h"

#include "pipeline/io/file_out.h"

#include <stdio.h>
#include <stdlib.h>

int pb_product_write(const struct pb_product_env *env, const char *const *text, const size_t *bytes,
                     size_t n, struct pb_err *err, struct pb_product_result *result)
{
    struct pb_file_out *file = NULL;
    char *path = NULL, checksum[PB_CHECKSUM_TEXT_BYTES];
    uint64_t all = 0;
    bool has_memory = true;
    if (asprintf(&path, "%s/%s", env->directory, result->file) < 0) {
        path = NULL;
        has_memory = false;
    }
    for (size_t i = 0; i < n; i++)
        has_memory = has_memory && text[i] != NULL;
    int rc = has_memory ? pb_file_out_create(path, env->checksum, err, &file)
                        : pb_fail(err, PB_E_MEMORY, "no memory to write %s", result->file);
    if (rc == 0)
        pb_file_out_watch(file, env->progress);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = pb_file_out_add(file, text[i], bytes[i], err);
        all += bytes[i];
    }
    if (rc == 0)
        rc = pb_file_out_finish(file, err, checksum);
    if (rc == 0) {
        result->bytes = all;
        (void)snprintf(result->checksum, sizeof result->checksum, "%s", checksum);
    }
    pb_file_out_destroy(file);
    free(path);
    return rc;
}

int pb_product_text(const struct pb_product_env *env, struct pb_json *json, struct pb_err *err,
                    struct pb_product_result *result)
{
    size_t bytes = 0;
    const char *text = pb_json_document(json, &bytes);
    return pb_product_write(env, &text, &bytes, 1, err, result);
}
