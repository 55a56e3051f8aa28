/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the device's decoders as host code: the first byte selects the codec, the shape and the
 * order of threads, the second the size that a block declares. The host accepts all accepted
 * streams, with the same bytes. */
#include "pipeline/codec/decode.h"
#include "tests/device/emulate_codecs.h"

#include "fuzz_check.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { BYTES_MAX = 1 << 13, OUT_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void *context[2];
    static const struct pb_decode *const decoders[] = {&pb_decode_deflate, &pb_decode_lzw};
    const char *why = NULL;
    if (bytes < 2 || bytes - 2 > BYTES_MAX)
        return 0;
    const unsigned which = data[0] & 1, shape = 1 + (data[0] >> 1 & 1), order = data[0] >> 2;
    const uint32_t n = (uint32_t)bytes - 2, most = 1 + (uint32_t)data[1] * data[1];
    uint8_t *in = aligned_alloc(16, (n + 15) / 16 * 16 + 16);
    uint8_t *out = aligned_alloc(16, (most + 15) / 16 * 16), *want = malloc(OUT_MAX + 1);
    uint32_t made = 0;
    require(in != NULL && out != NULL && want != NULL, "memory");
    if (context[which] == NULL)
        require(decoders[which]->create(&context[which]) == 0, "memory");
    if (n > 0)
        memcpy(in, data + 2, n);
    const struct pb_decode_stream stream = {in, out, n, most, most, 0};
    const uint32_t status = emulate_decode(which == 0 ? PB_DEVICE_DEFLATE : PB_DEVICE_LZW, shape,
                                           order, &stream, NULL, NULL, &made);
    bool good = decoders[which]->run(context[which], in, n, want, most, most, &why) == 0;
    require(status <= PB_DECODE_HOST, "no status");
    if (status == PB_DECODED)
        require(good && made == most && memcmp(out, want, most) == 0, "not what the host makes");
    free(in);
    free(out);
    free(want);
    return 0;
}
