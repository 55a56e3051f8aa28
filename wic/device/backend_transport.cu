// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Posts tiles to a running kernel and returns their slots. Tiles that the kernel pulls or reads in
// place are announced by a doorbell word. Where a copy engine brings the tile, the same stream
// posts it to the ready board after the bytes; that write has a system-wide barrier before it, so a
// reader that sees the ticket sees the tile. Nothing here blocks.
#include "wic/device/link_inside.h"

#include <cstring>

namespace
{
cudaError_t copy_slot(wic_link *link, size_t at, size_t bytes)
{
    return cudaMemcpyAsync(link->copies + at, link->in + at, bytes, cudaMemcpyHostToDevice,
                           link->transport);
}

// An empty tile needs no prefetch, and CUDA does not document a prefetch of 0 bytes.
cudaError_t prefetch_slot(wic_link *link, size_t at, size_t bytes)
{
    if (bytes == 0) {
        return cudaSuccess;
    }
    const cudaMemLocation device = {cudaMemLocationTypeDevice, link->gpu};
    return cudaMemPrefetchAsync(link->in + at, bytes, device, 0, link->transport);
}

// Moves the slot's pages to the host's memory and discards their content: the next producer
// overwrites it.
cudaError_t return_slot(wic_link *link, size_t at)
{
    cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    void *slot = link->in + at;
    size_t bytes = link->view.in_stride, first = 0;
    return cudaMemDiscardAndPrefetchBatchAsync(&slot, &bytes, 1, &host, &first, 1, 0, link->back);
}

size_t slot_of(const wic_link *link, uint64_t tile)
{
    const wic_view &view = link->view;
    return (view.in_first + tile) % view.in_slots * view.in_stride;
}

// The kernel checks nothing: more units than this would be lost, or read and written beyond the
// slot.
bool fits(const wic_view &view, const wic_link_tile &tile)
{
    const wic_transfer_plan &plan = view.plan;
    const uint64_t units = tile.units;
    return units <= static_cast<uint64_t>(plan.pieces) * plan.piece_units &&
           units * plan.in_unit <= view.in_stride && units * plan.out_unit <= view.out_stride &&
           tile.bytes <= view.in_stride;
}

// Queues the write of the ticket after all that is queued before.
int post_to_ready_board(wic_link *link, uint64_t tile, uint64_t word)
{
    const auto at =
        reinterpret_cast<CUdeviceptr>(&link->view.ready_board[tile & link->view.ring_mask]);
    return link->write_value(link->transport, at, word, CU_STREAM_WRITE_VALUE_DEFAULT) ==
                   CUDA_SUCCESS
               ? 0
               : -EIO;
}

// Starts to move the input slot of a finished tile back to the host's memory, where its next
// producer writes. Returns whether it has arrived.
bool bring_back(wic_link *link, uint64_t tile)
{
    const uint64_t entry = tile & link->view.ring_mask;
    if (link->returning[entry] != tile + 1) {
        // If this fails, the pages migrate on demand.
        if (return_slot(link, slot_of(link, tile)) != cudaSuccess) {
            (void)cudaGetLastError();
        }
        (void)cudaEventRecord(link->returned[entry], link->back);
        link->returning[entry] = tile + 1;
    }
    return cudaEventQuery(link->returned[entry]) != cudaErrorNotReady;
}
} // namespace

int wic_link_post(wic_link *link, const wic_link_tile *tile)
{
    const wic_view &view = link->view;
    if (!fits(view, *tile)) {
        return -EINVAL;
    }
    const uint64_t entry = tile->number & view.ring_mask;
    const uint64_t number = static_cast<uint32_t>(tile->number + 1);
    const uint64_t word = number << 32 | tile->units;
    if (view.plan.user_bytes > 0) {
        memcpy(link->user + entry * view.plan.user_bytes, tile->user, view.plan.user_bytes);
    }
    const size_t at = slot_of(link, tile->number);
    cudaError_t error = cudaSuccess;
    switch (view.plan.transport) {
    case WIC_COPY:
        error = copy_slot(link, at, tile->bytes);
        break;
    case WIC_PREFETCH:
        error = prefetch_slot(link, at, tile->bytes);
        break;
    default:
        wic_link_store(&link->doorbell[entry], word);
        return 0;
    }
    return error ? wic_cuda_errno(error) : post_to_ready_board(link, tile->number, word);
}

bool wic_link_computed(wic_link *link, uint64_t tile)
{
    return wic_link_load(&link->done[tile & link->view.ring_mask]) == tile + 1;
}

bool wic_link_done(wic_link *link, uint64_t tile)
{
    if (!wic_link_computed(link, tile)) {
        return false;
    }
    return link->view.plan.transport != WIC_PREFETCH || bring_back(link, tile);
}

void wic_link_beat(wic_link *link)
{
    __atomic_fetch_add(&link->control->beat, 1, __ATOMIC_RELAXED);
}

void wic_link_close(wic_link *link, uint64_t tiles)
{
    uint64_t open = WIC_LINK_OPEN; // not over an abort
    __atomic_compare_exchange_n(&link->control->end, &open, tiles, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

void wic_link_abort(wic_link *link)
{
    wic_link_store(&link->control->end, WIC_LINK_ABORT);
}
