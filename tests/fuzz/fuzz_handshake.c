/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The words of a writer of a stream: a request, or, if the data begin with '#', the header of a
 * group and its times. Required: all values that are taken are in their limits, and a refusal has a
 * reason. */
#include "service/stream/handshake.h"
#include "tests/fuzz/fuzz_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_request(const struct pb_stream_request *request)
{
    const size_t bytes = pb_stream_slot_bytes(&request->format);
    require(bytes > pb_stream_pixels_offset(&request->format), "a group without pixels");
    require(bytes - pb_stream_pixels_offset(&request->format) ==
                request->format.group_lines * pb_stream_line_bytes(&request->format),
            "the pixels do not fill the slot");
    require(pb_type_bytes(request->type) == pb_stream_type_bytes(request->format.type),
            "the types differ");
    for (size_t i = 0; i < 6; i++)
        require(isfinite(request->transform[i]), "a transform without a place");
}

static void parse_request(const char *data, size_t n)
{
    struct pb_stream_request request;
    char why[PB_HANDSHAKE_WHY_BYTES] = "", answer[PB_STREAM_HANDSHAKE_BYTES];
    const int rc = pb_handshake_parse(data, n, &request, why);
    require(rc == 0 || rc == -EINVAL, "another error");
    require((why[0] != '\0') == (rc != 0), "a refusal without a reason");
    if (rc == 0)
        check_request(&request);
    const size_t bytes = pb_handshake_refuse("invalid", why, answer);
    require(bytes > 0 && bytes <= sizeof answer && answer[bytes - 1] == '\n' &&
                memchr(answer, '\n', bytes) == answer + bytes - 1,
            "the answer is not one line");
}

static void parse_group(const unsigned char *data, size_t n)
{
    static const struct pb_stream_format format = {
        .type = PB_STREAM_UINT8, .bands = 1, .samples = 1, .group_lines = 4};
    unsigned char slot[64 + 4 * 8] = {0};
    struct pb_stream_group group = {.lines = 0};
    int64_t times_ns[4];
    char why[PB_HANDSHAKE_WHY_BYTES] = "";
    memcpy(slot, data, n < sizeof slot ? n : sizeof slot);
    const int rc = pb_handshake_group(slot, &format, &group, times_ns, why);
    require((why[0] != '\0') == (rc != 0), "a refusal without a reason");
    if (rc != 0)
        return;
    require(group.lines >= 1 && group.lines <= format.group_lines, "lines beyond the group");
    require(group.line + group.lines <= INT64_MAX, "a line number without a successor");
    for (uint32_t i = 0; i < format.group_lines; i++)
        require(times_ns[i] >= 0 && (i < group.lines || times_ns[i] == 0), "a time from nowhere");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n > 0 && data[0] == '#')
        parse_group(data + 1, n - 1);
    else
        parse_request((const char *)data, n);
    return 0;
}
