/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_LINK_INSIDE_H
#define WIC_LINK_INSIDE_H
/* Inside of a link, for backend_*.cu alone. One block of pinned memory holds control, started,
 * done, doorbell and the tiles' user bytes, each on cache lines of its own, as different sides
 * write them; one of device memory holds state, ready board and the counters. */
#include "wic/device/cuda_errno.h"
#include "wic/device/link.h"

#include <cuda.h>

constexpr size_t wic_link_line = 128;
static_assert(sizeof(wic_link_state) <= wic_link_line, "a report lands on one line");

struct wic_link {
    wic_view view;
    int gpu;
    const void *kernel, *argument;
    unsigned threads;
    size_t shared_bytes;
    cudaStream_t stream, transport, back; // of the kernel; of copies to the device; of copies back
    cudaEvent_t left;
    bool stuck;                // work on the device did not end within its time limit
    wic_link_control *control; // pinned, and the five behind it
    wic_link_state *landing;   // where a report arrives
    uint64_t *started, *done, *doorbell;
    unsigned char *user;
    unsigned char *device; // the device's block
    size_t device_bytes;
    unsigned char *in; // as the host sees them
    unsigned char *out;
    bool pinned_in, pinned_out;                  // by us
    unsigned char *copies;                       // WIC_COPY: the slots in device memory
    decltype(&cuStreamWriteValue64) write_value; // what posts to the ready board
    // WIC_PREFETCH, by ring entry: tile + 1 whose input slot is being returned, and the event of
    // its arrival.
    uint64_t *returning;
    cudaEvent_t *returned;
};

inline uint64_t wic_link_entries(const wic_link *link)
{
    return static_cast<uint64_t>(link->view.ring_mask) + 1;
}

// The structs that C and the device share have plain words; the host reads and writes them by these
// functions only.
inline void wic_link_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

inline uint64_t wic_link_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// backend_life.cu. Waits until a stream is idle, at most until that time of CLOCK_MONOTONIC. 0,
// -ETIMEDOUT, -EIO.
int wic_link_drain(cudaStream_t stream, int64_t until_ns);
int64_t wic_link_now_ns();

// backend_memory.cu. After a failure the caller calls wic_link_free, once no work of the link is
// queued or running on the device.
int wic_link_allocate(wic_link *link, const wic_link_options *options);
void wic_link_free(wic_link *link);
#endif
