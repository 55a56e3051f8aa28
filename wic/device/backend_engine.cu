// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Tiles that go by copy engine. A copy costs some microseconds however short it is, so as many
// tiles as are posted share one, in both directions; while it runs, more come together for the
// next. After each copy its stream writes how far it has come: to the device, for the Monitor, or
// to the host. That write has a system-wide barrier before it, so a reader that sees it sees the
// tiles. Two streams take turns, because the engine would idle between a copy and the write behind
// it.
#include "wic/device/link_inside.h"

#include <algorithm>

namespace
{
// One way of the link, and where its slots are.
struct direction {
    wic_copies *copies;
    unsigned char *host, *device;
    uint64_t first, stride;
    uint32_t slots;
    bool to_host;
};

direction to_device(wic_link *link)
{
    const wic_view &view = link->view;
    return {&link->to,     link->in,       const_cast<unsigned char *>(view.in_copies),
            view.in_first, view.in_stride, view.in_slots,
            false};
}

direction to_host(wic_link *link)
{
    const wic_view &view = link->view;
    return {&link->back,    link->out, view.out_copies, view.out_first, view.out_stride,
            view.out_slots, true};
}

// Tiles in slots side by side.
struct run {
    uint64_t first, tiles;
    size_t width; // of each as many bytes are copied as the longest has
};

size_t bytes_of(wic_link *link, const direction &way, uint64_t tile)
{
    const wic_posted &posted = wic_link_posted(link, tile);
    return way.to_host ? posted.out_bytes : posted.bytes;
}

// The next batch takes as many of the tiles that are ready as lie in front of the ring's end.
uint64_t batch_end(wic_link *link, const direction &way, size_t *out_bytes)
{
    const uint64_t first = way.copies->next;
    const uint64_t slots = way.slots - (way.first + first) % way.slots;
    const uint64_t end = std::min(way.copies->ready, first + slots);
    uint64_t tile = first;
    for (*out_bytes = 0; tile < end && *out_bytes < way.copies->batch_most; tile++) {
        *out_bytes += bytes_of(link, way, tile);
    }
    return tile;
}

// The tiles from `first` on that one copy can take without copying much that is not theirs.
run next_run(wic_link *link, const direction &way, uint64_t first, uint64_t end)
{
    run found = {first, 0, 0};
    size_t sum = 0;
    for (uint64_t tile = first; tile < end; tile++) {
        const size_t bytes = bytes_of(link, way, tile), width = std::max(found.width, bytes);
        sum += bytes;
        if ((found.tiles + 1) * width > sum + sum / 16) {
            break;
        }
        found.tiles++;
        found.width = width;
    }
    return found;
}

cudaError_t copy_run(const direction &way, const run &tiles, cudaStream_t stream)
{
    const size_t at = (way.first + tiles.first) % way.slots * way.stride;
    unsigned char *const to = (way.to_host ? way.host : way.device) + at;
    const unsigned char *const from = (way.to_host ? way.device : way.host) + at;
    const cudaMemcpyKind kind = way.to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
    if (tiles.width == 0) {
        return cudaSuccess;
    }
    if (tiles.width == way.stride || tiles.tiles == 1) {
        return cudaMemcpyAsync(to, from, tiles.tiles * tiles.width, kind, stream);
    }
    return cudaMemcpy2DAsync(to, way.stride, from, way.stride, tiles.width, tiles.tiles, kind,
                             stream);
}

// The user bytes of these tiles: the kernel's own reads of the host's memory would slow the engine.
cudaError_t copy_user_bytes(wic_link *link, uint64_t first, uint64_t end, cudaStream_t stream)
{
    const wic_view &view = link->view;
    const size_t each = view.plan.user_bytes;
    cudaError_t error = cudaSuccess;
    while (first < end && each > 0 && !error) {
        const uint64_t entry = first & view.ring_mask;
        const uint64_t n = std::min(end - first, wic_link_entries(link) - entry);
        error =
            cudaMemcpyAsync(const_cast<unsigned char *>(view.user_copies) + entry * each,
                            link->user + entry * each, n * each, cudaMemcpyHostToDevice, stream);
        first += n;
    }
    return error;
}

// Queues the copies of a batch and the write of how far they come.
void queue_batch(wic_link *link, const direction &way)
{
    wic_copies &copies = *way.copies;
    const cudaStream_t stream = copies.stream[copies.lane];
    size_t bytes;
    const uint64_t first = copies.next, end = batch_end(link, way, &bytes);
    cudaError_t error = cudaSuccess;
    for (uint64_t tile = first; tile < end && !error;) {
        const run tiles = next_run(link, way, tile, end);
        error = copy_run(way, tiles, stream);
        tile += tiles.tiles;
    }
    if (!error && !way.to_host) {
        error = copy_user_bytes(link, first, end, stream);
    }
    if (error) {
        link->failure = wic_cuda_errno(error);
    } else if (link->write_value(stream, reinterpret_cast<CUdeviceptr>(copies.landed + copies.lane),
                                 end, CU_STREAM_WRITE_VALUE_DEFAULT) != CUDA_SUCCESS) {
        link->failure = -EIO;
    }
    copies.batch[(copies.oldest + copies.count++) % WIC_BATCHES_MAX] = {first, end, copies.lane};
    copies.next = end;
    copies.ready_bytes -= bytes;
    copies.lane = (copies.lane + 1) % WIC_LINK_LANES;
}

bool is_due(const wic_copies &copies)
{
    return copies.ready > copies.next &&
           wic_batch_is_due(copies.count, copies.ready_bytes, copies.batch_most);
}

void retire(wic_copies *copies)
{
    copies->oldest = (copies->oldest + 1) % WIC_BATCHES_MAX;
    copies->count--;
}

void ring(wic_link *link, uint64_t tile, uint32_t lane)
{
    const uint32_t low =
        wic_link_posted(link, tile).size | WIC_LINK_ENGINE | (lane > 0 ? WIC_LINK_LANE : 0);
    const uint64_t number = static_cast<uint32_t>(tile + 1);
    wic_link_store(&link->doorbell[tile & link->view.ring_mask], number << 32 | low);
}

// Forgets the batches that have come back.
void settle_back(wic_link *link)
{
    wic_copies &back = link->back;
    while (back.count > 0 && wic_link_load(&link->back_landed[back.batch[back.oldest].lane]) >=
                                 back.batch[back.oldest].end) {
        retire(&back);
    }
    back.arrived = back.count > 0 ? back.batch[back.oldest].first : back.next;
}

// Finds the tiles that the kernel has computed since, up to one that is pulled: those need no copy.
void collect_computed(wic_link *link)
{
    wic_copies &back = link->back;
    // A tile that was handed over needs no copy, and its ring entry may be a later tile's by now.
    if (back.ready < link->finished) {
        back.next = back.ready = link->finished;
    }
    for (; back.ready < link->posted_end; back.ready++) {
        const wic_posted &tile = wic_link_posted(link, back.ready);
        if (!tile.engine && back.next == back.ready) {
            back.next++;
        } else if (tile.engine && wic_link_computed(link, back.ready)) {
            back.ready_bytes += tile.out_bytes;
        } else {
            return;
        }
    }
}
} // namespace

void wic_engine_send(wic_link *link)
{
    wic_copies &to = link->to;
    while (to.count > 0 && wic_link_computed(link, to.batch[to.oldest].end - 1)) {
        retire(&to);
    }
    if (is_due(to)) {
        const uint64_t first = to.next;
        const uint32_t lane = to.lane;
        queue_batch(link, to_device(link));
        for (uint64_t tile = first; tile < to.next; tile++) {
            ring(link, tile, lane);
        }
    }
}

void wic_engine_bring_back(wic_link *link)
{
    collect_computed(link);
    if (is_due(link->back)) {
        queue_batch(link, to_host(link));
    }
    settle_back(link);
}

void wic_engine_reset(wic_link *link)
{
    for (wic_copies *copies : {&link->to, &link->back}) {
        copies->oldest = copies->count = copies->lane = 0;
        copies->next = copies->ready = copies->arrived = link->view.first_tile;
        copies->ready_bytes = 0;
    }
    link->to.batch_most = wic_batch_most(link->view.in_slots, link->view.in_stride);
    link->back.batch_most = wic_batch_most(link->view.out_slots, link->view.out_stride);
    for (uint32_t lane = 0; lane < WIC_LINK_LANES; lane++) {
        link->back_landed[lane] = 0;
    }
    link->posted_end = link->finished = link->view.first_tile;
    link->backlog = 0;
    const bool copy = link->view.plan.transport == WIC_COPY;
    const bool may_change = link->view.in_copies && !copy;
    wic_way_reset(&link->way, may_change ? link->view.plan.engine_backlog : 0, copy);
}
