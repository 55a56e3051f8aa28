/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/report.h"

#include <limits.h>
#include <stdio.h>

void pb_report_products(struct pb_json *json, const struct pb_run_result *result)
{
    pb_json_array(json, "products");
    for (size_t i = 0; i < result->n_products; i++) {
        const struct pb_product_result *p = &result->products[i];
        char path[PATH_MAX + 310], checksum[80];
        (void)snprintf(path, sizeof path, "%s/%s", result->directory, p->file);
        (void)snprintf(checksum, sizeof checksum, "sha256:%s", p->sha256);
        pb_json_object(json, NULL);
        pb_json_string(json, "type", pb_product_kind_name(p->kind));
        if (p->name != NULL)
            pb_json_string(json, "name", p->name);
        pb_json_string(json, "path", path);
        pb_json_int(json, "bytes", (int64_t)p->bytes);
        pb_json_string(json, "checksum", checksum);
        pb_json_string(json, "media_type", p->media_type);
        pb_json_end(json);
    }
    pb_json_end(json);
}

void pb_report_stages(struct pb_json *json, const struct pb_run_report *report)
{
    pb_json_object(json, "report");
    pb_json_string(json, "device", report->device);
    pb_json_string(json, "buffers", report->buffers);
    pb_json_string(json, "sync", report->sync);
    pb_json_int(json, "memory_bytes", (int64_t)report->memory_bytes);
    pb_json_int(json, "tile_px", report->tile_px);
    pb_json_int(json, "elapsed_ms", report->elapsed_ms);
    pb_json_int(json, "publish_ms", report->publish_ms);
    pb_json_array(json, "stages");
    for (size_t i = 0; i < sizeof report->stage / sizeof report->stage[0]; i++) {
        const struct pb_stage_report *s = &report->stage[i];
        pb_json_object(json, NULL);
        pb_json_string(json, "stage", s->name);
        pb_json_int(json, "threads", s->threads);
        pb_json_int(json, "busy_ms", (int64_t)(s->busy_ns / 1000000));
        pb_json_int(json, "parked_ms", (int64_t)(s->parked_ns / 1000000));
        pb_json_int(json, "tiles", (int64_t)s->tiles);
        pb_json_int(json, "bytes", (int64_t)s->bytes);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
}

void pb_report_error(struct pb_json *json, const struct pb_err *err)
{
    pb_json_object(json, "error");
    pb_json_string(json, "code", pb_code_id(err->code));
    pb_json_string(json, "message", err->msg);
    pb_json_string(json, "hint", pb_code_hint(err->code));
    pb_json_end(json);
}
