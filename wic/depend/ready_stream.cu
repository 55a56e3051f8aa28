// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The host's side of rings on a device: a stream writes the words, behind the copies that are in
// it. The default flag of such a write is a barrier: what the stream did before is visible first.
#include "wic/depend/ready.h"
#include "wic/device/link_inside.h"

namespace
{
int write_behind(const void *word, uint64_t value, void *stream)
{
    static decltype(&cuStreamWriteValue64) write_value;
    const int rc = write_value ? 0 : wic_find_write_value(&write_value);
    if (rc < 0) {
        return rc;
    }
    const CUresult result =
        write_value(static_cast<CUstream>(stream), reinterpret_cast<CUdeviceptr>(word), value,
                    CU_STREAM_WRITE_VALUE_DEFAULT);
    return result == CUDA_SUCCESS ? 0 : -EIO;
}
} // namespace

int wic_ready_push_behind(const struct wic_ready *ready, uint32_t ring, uint64_t brought,
                          void *stream)
{
    return write_behind(&ready->line->brought[ring], brought, stream);
}

int wic_ready_stop_behind(const struct wic_ready *ready, enum wic_ready_stop why, void *stream)
{
    return write_behind(ready->stop, static_cast<uint64_t>(why), stream); // it has 64 bits
}
