// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Tiles on their way to a running kernel and back. Pulled pieces and slots that both sides share
// need a word at the doorbell. Where a copy engine brings the tile, the same stream posts it to the
// board behind the bytes: the write has a system-wide barrier before it, so whoever sees the ticket
// sees the tile. Nothing here waits.
#include "wic/device/link_inside.h"

#include <cstring>

namespace
{
cudaError_t copy_slot(wic_link *link, size_t at, size_t bytes)
{
    return cudaMemcpyAsync(link->copies + at, link->in + at, bytes, cudaMemcpyHostToDevice,
                           link->transport);
}

// Of an empty tile there is nothing to prefetch; that the call takes no bytes is nowhere promised.
cudaError_t prefetch_slot(wic_link *link, size_t at, size_t bytes)
{
    if (bytes == 0) {
        return cudaSuccess;
    }
    const cudaMemLocation device = {cudaMemLocationTypeDevice, link->gpu};
    return cudaMemPrefetchAsync(link->in + at, bytes, device, 0, link->transport);
}

// Back to the host's memory, without what is in it: the next holder of the slot writes it anew.
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

// The kernel believes what it is told: more units than this would be lost, or read and written in
// the slots behind.
bool fits(const wic_view &view, const wic_link_tile &tile)
{
    const wic_chunk_plan &plan = view.plan;
    const uint64_t units = tile.units;
    return units <= static_cast<uint64_t>(plan.pieces) * plan.piece_units &&
           units * plan.in_unit <= view.in_stride && units * plan.out_unit <= view.out_stride &&
           tile.bytes <= view.in_stride;
}

// The ticket, behind all that is queued before it.
int post_to_board(wic_link *link, uint64_t tile, uint64_t word)
{
    const auto at = reinterpret_cast<CUdeviceptr>(&link->view.board[tile & link->view.ring_mask]);
    return link->write_value(link->transport, at, word, CU_STREAM_WRITE_VALUE_DEFAULT) ==
                   CUDA_SUCCESS
               ? 0
               : -EIO;
}

// The input of a tile that is done goes back to the host's memory, so that its next producer finds
// it there. The results have not left it. Has it arrived?
bool bring_back(wic_link *link, uint64_t tile)
{
    const uint64_t entry = tile & link->view.ring_mask;
    if (link->returning[entry] != tile + 1) {
        // Should the transport refuse, the pages come back one by one when they are touched.
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
    const uint64_t mark = static_cast<uint32_t>(tile->number + 1);
    const uint64_t word = mark << 32 | tile->units;
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
    return error ? wic_cuda_errno(error) : post_to_board(link, tile->number, word);
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
