/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the lines of a worker that runs a job. An accepted value must be readable, in range,
 * never fall, be below the job's own directory, and be JSON if its type is JSON. */
#include "fuzz_check.h"
#include "config/base/text_clean.h"
#include "config/base/json_reader.h"
#include "service/worker/worker_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require_clean(const char *text)
{
    char clean[2048];
    (void)pb_text_clean(text, clean, sizeof clean);
    require(strcmp(text, clean) == 0, "a text that is not clean");
}

static void require_json(const char *text, bool array)
{
    struct pb_json_value *value = NULL;
    require(text != NULL && pb_json_parse(text, strlen(text), 8u << 20, &value) == 0, "no JSON");
    require(array ? pb_json_is_array(value) : pb_json_is_object(value), "another kind of JSON");
    pb_json_release(value);
}

static void check(const struct pb_worker_line *line, struct pb_worker_numbers *before)
{
    const struct pb_worker_numbers *now = &line->numbers;
    require_clean(line->device);
    require_clean(line->why);
    require_clean(line->stage);
    require_clean(line->error.message);
    if (line->event == PB_WORKER_SAYS_PROGRESS) {
        require(now->tiles_done >= before->tiles_done && now->tiles_done <= now->tiles_total &&
                    now->tiles_total <= UINT32_MAX && now->bytes_read >= before->bytes_read &&
                    now->bytes_written >= before->bytes_written &&
                    now->elapsed_ms >= before->elapsed_ms,
                "numbers");
        *before = *now;
    }
    if (line->event == PB_WORKER_SAYS_FAILED)
        require(pb_code_find(line->error.code) != PB_E_COUNT, "an unknown code");
    if (line->event != PB_WORKER_SAYS_DONE)
        return;
    require(strncmp(line->directory, "/p/s", 4) == 0 && strstr(line->directory, "..") == NULL,
            "a directory elsewhere");
    require_json(line->products, true);
    require_json(line->report, false);
    require(strlen(line->report) < (2u << 20), "a report without end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct pb_job job = {
        .id = "20261121-081530-4f2a", .scene = "s", .pipeline = "veg", .epoch = 1};
    struct pb_worker_lines lines;
    struct pb_worker_numbers before = {0};
    pb_worker_lines_reset(&lines);
    pb_worker_lines_begin(&lines, &job, "/p", NULL, true);
    lines.permit = true;
    int64_t now = 1;
    int permits = 0;
    while (bytes > 0) {
        struct pb_worker_line line;
        char why[PB_WORKER_WHY_BYTES];
        const uint8_t *end = memchr(data, '\n', bytes);
        size_t part = end ? (size_t)(end - data) : bytes;
        if (!pb_worker_lines_admit(&lines, part, now++))
            break;
        int rc = pb_worker_lines_take(&lines, (const char *)data, part, why, &line);
        if (rc == 0) {
            check(&line, &before);
            permits += line.event == PB_WORKER_SAYS_PERMIT;
            require(permits <= 1, "a second permit");
        } else {
            require(rc == 1 || why[0] != '\0', "a refusal without words");
        }
        pb_worker_line_fini(&line);
        data += part + (end != NULL);
        bytes -= part + (end != NULL);
    }
    return 0;
}
