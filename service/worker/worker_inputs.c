/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/worker/worker_inputs.h"

#include <stdio.h>
#include <string.h>

struct pb_json *pb_worker_inputs_command(const struct pb_input_files *inputs)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "inputs");
    pb_json_string(json, "folder", inputs->folder);
    pb_json_array(json, "files");
    for (size_t i = 0; i < inputs->n; i++) {
        const struct pb_input_file *file = &inputs->file[i];
        pb_json_object(json, NULL);
        pb_json_string(json, "role", pb_input_role_name(file->role));
        pb_json_string(json, "name", file->name);
        pb_json_int(json, "bytes", (int64_t)file->bytes);
        pb_json_string(json, "checksum", file->checksum);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    return json;
}

static bool take(const struct pb_json_value *value, const char *key, char *out, size_t bytes)
{
    const char *text = pb_json_get_text(value, key);
    return text != NULL && (size_t)snprintf(out, bytes, "%s", text) < bytes;
}

static bool take_file(const struct pb_json_value *value, struct pb_input_file *out)
{
    const char *role = pb_json_get_text(value, "role");
    enum pb_checksum kind;
    const char *digits;
    int64_t bytes = -1;
    for (int i = PB_INPUT_PIXELS; role != NULL && i <= PB_INPUT_SOURCE; i++)
        if (strcmp(role, pb_input_role_name((enum pb_input_role)i)) == 0)
            out->role = (enum pb_input_role)i;
    bool good = take(value, "name", out->name, sizeof out->name) &&
                take(value, "checksum", out->checksum, sizeof out->checksum) &&
                pb_checksum_parse(out->checksum, &kind, &digits) == 0 && digits != NULL &&
                pb_json_get_int(value, "bytes", &bytes) == 0 && bytes >= 0;
    out->bytes = (uint64_t)bytes;
    return good;
}

bool pb_worker_inputs_read(const struct pb_json_value *command, struct pb_input_files *out)
{
    const struct pb_json_value *files = pb_json_get(command, "files", NULL);
    struct pb_input_files read = {.n = 0};
    size_t n = pb_json_count(files);
    bool good = n > 0 && n <= PB_INPUT_FILES_MAX &&
                take(command, "folder", read.folder, sizeof read.folder);
    for (; good && read.n < n; read.n++)
        good = take_file(pb_json_at(files, read.n), &read.file[read.n]);
    if (good)
        *out = read;
    return good;
}
