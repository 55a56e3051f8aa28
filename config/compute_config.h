/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPUTE_CONFIG_H
#define PB_COMPUTE_CONFIG_H
/* The section `compute` of a configuration. Its owner is struct pb_config. Read-only; any thread.
 */
#include <stdint.h>

enum pb_device_kind { PB_DEVICE_AUTO, PB_DEVICE_CPU, PB_DEVICE_CUDA };
enum pb_buffers { PB_BUFFERS_AUTO, PB_BUFFERS_PINNED, PB_BUFFERS_MANAGED, PB_BUFFERS_HOST };
enum pb_sync { PB_SYNC_WIC, PB_SYNC_STREAM };
enum pb_codecs { PB_CODECS_AUTO, PB_CODECS_HOST, PB_CODECS_DEVICE };

struct pb_compute_config {
    enum pb_device_kind device;
    int32_t device_index; /* cuda:N, else -1 */
    uint64_t memory_bytes;
    enum pb_buffers buffers;
    enum pb_sync sync;
    enum pb_codecs codecs;
    uint64_t
        device_memory_bytes; /* for what codecs there hold; 0 = a quarter of what the GPU has */
    int32_t share_percent;   /* part of a GPU's multiprocessors; 0: all */
    int32_t threads;         /* 0 = all cores */
    int32_t tile_px;         /* side of a tile, 0 = chosen by the plan; power of two, 64 .. 8192 */
};
#endif
