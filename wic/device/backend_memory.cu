// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory of a link: pinned slots, the block that both sides read and write, the device's block,
// the slots' copies, the streams. All of it is allocated before the kernel starts.
#include "wic/device/link_inside.h"

#include <cstdlib>

namespace
{
size_t aligned(size_t bytes)
{
    return (bytes + wic_link_line - 1) / wic_link_line * wic_link_line;
}

uint32_t ring_entries(const wic_link_options *options)
{
    uint32_t entries = 32; // the Monitor reads 30 entries at a time
    while (entries < options->in_slots || entries < options->out_slots) {
        entries *= 2;
    }
    return entries;
}

// Pins memory that is neither pinned nor managed yet.
cudaError_t pin(void *memory, size_t bytes, bool *out_ours)
{
    cudaPointerAttributes found;
    cudaError_t error = cudaPointerGetAttributes(&found, memory);
    if (error || found.type != cudaMemoryTypeUnregistered) {
        return error;
    }
    error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    *out_ours = !error;
    return error;
}

// The device pointer of a buffer of the host.
cudaError_t device_view(void *host, void **out_device)
{
    cudaPointerAttributes found;
    const cudaError_t error = cudaPointerGetAttributes(&found, host);
    *out_device = found.devicePointer;
    return error ? error : found.devicePointer ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t make_shared(wic_link *link, const wic_link_options *o, uint32_t entries)
{
    const size_t ring = aligned(entries * sizeof(uint64_t));
    void *pinned = nullptr;
    const cudaError_t error =
        cudaHostAlloc(&pinned, 3 * wic_link_line + 2 * ring + entries * o->plan.user_bytes,
                      cudaHostAllocMapped | cudaHostAllocPortable);
    if (error) {
        return error;
    }
    unsigned char *at = static_cast<unsigned char *>(pinned);
    link->control = reinterpret_cast<wic_link_control *>(at);
    link->started = reinterpret_cast<uint64_t *>(at + wic_link_line);
    link->landing = reinterpret_cast<wic_link_state *>(at + 2 * wic_link_line);
    at += 3 * wic_link_line;
    link->done = reinterpret_cast<uint64_t *>(at);
    link->doorbell = reinterpret_cast<uint64_t *>(at + ring);
    link->user = at + 2 * ring;
    return cudaSuccess;
}

cudaError_t make_own(wic_link *link, const wic_link_options *o, uint32_t entries)
{
    const size_t ring = aligned(entries * sizeof(uint64_t));
    link->device_bytes = aligned(sizeof(wic_link_state)) + ring + aligned(entries * 4) +
                         o->plan.blocks * sizeof(uint64_t);
    void *device = nullptr;
    const cudaError_t error = cudaMalloc(&device, link->device_bytes);
    link->device = static_cast<unsigned char *>(device);
    wic_view &view = link->view;
    unsigned char *at = link->device;
    view.state = reinterpret_cast<wic_link_state *>(at);
    view.ready_board = reinterpret_cast<uint64_t *>(at += aligned(sizeof(wic_link_state)));
    view.arrived = reinterpret_cast<uint32_t *>(at += ring);
    view.passed = reinterpret_cast<uint64_t *>(at += aligned(entries * 4));
    return error;
}

cudaError_t make_queues(wic_link *link)
{
    cudaError_t error = cudaStreamCreateWithFlags(&link->stream, cudaStreamNonBlocking);
    if (!error) {
        error = cudaStreamCreateWithFlags(&link->transport, cudaStreamNonBlocking);
    }
    if (!error) {
        error = cudaStreamCreateWithFlags(&link->back, cudaStreamNonBlocking);
    }
    if (!error) {
        error = cudaEventCreateWithFlags(&link->left, cudaEventDisableTiming);
    }
    return error;
}

// cuStreamWriteValue64 has no counterpart in the runtime, and the driver is not linked.
int find_write_value(wic_link *link)
{
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry,
                                                               12000, cudaEnableDefault, &found);
    if (error) {
        return wic_cuda_errno(error);
    }
    link->write_value = reinterpret_cast<decltype(&cuStreamWriteValue64)>(entry);
    return found == cudaDriverEntryPointSuccess && entry ? 0 : -EOPNOTSUPP;
}

// The device may map inputs in place until their prefetch is done. Results stay in the host's
// memory: the device's stores go there as they go to pinned memory, and no page of them ever moves.
cudaError_t advise(const wic_link_options *o, int gpu)
{
    const cudaMemLocation device = {cudaMemLocationTypeDevice, gpu};
    const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    const size_t in = o->in_slots * o->in_stride, out = o->out_slots * o->out_stride;
    cudaError_t error = cudaMemAdvise(o->in, in, cudaMemAdviseSetAccessedBy, device);
    if (!error) {
        error = cudaMemAdvise(o->out, out, cudaMemAdviseSetPreferredLocation, host);
    }
    if (!error) {
        error = cudaMemAdvise(o->out, out, cudaMemAdviseSetAccessedBy, device);
    }
    return error;
}

cudaError_t make_events(wic_link *link)
{
    const uint64_t entries = wic_link_entries(link);
    link->returning = static_cast<uint64_t *>(calloc(entries, sizeof(uint64_t)));
    link->returned = static_cast<cudaEvent_t *>(calloc(entries, sizeof(cudaEvent_t)));
    cudaError_t error = link->returning && link->returned ? cudaSuccess : cudaErrorMemoryAllocation;
    for (uint64_t i = 0; i < entries && !error; i++) {
        error = cudaEventCreateWithFlags(&link->returned[i], cudaEventDisableTiming);
    }
    return error;
}

// Whether the device supports stream writes to the ready board shows only when it executes one.
int try_write_value(wic_link *link)
{
    const int64_t until = wic_link_now_ns() + static_cast<int64_t>(WIC_LINK_BEAT_NS);
    const CUresult result =
        link->write_value(link->transport, reinterpret_cast<CUdeviceptr>(link->view.ready_board), 0,
                          CU_STREAM_WRITE_VALUE_DEFAULT);
    return result == CUDA_ERROR_NOT_SUPPORTED ? -EOPNOTSUPP
           : result != CUDA_SUCCESS           ? -EIO
                                              : wic_link_drain(link->transport, until);
}

// Allocates what the transports by copy engine need.
int make_transport(wic_link *link, const wic_link_options *o)
{
    int rc = find_write_value(link);
    rc = rc ? rc : try_write_value(link);
    if (rc == 0 && o->plan.transport == WIC_COPY) {
        void *copies = nullptr;
        rc = wic_cuda_errno(cudaMalloc(&copies, o->in_slots * o->in_stride));
        link->copies = static_cast<unsigned char *>(copies);
        link->view.in = link->copies;
    }
    if (rc == 0 && o->plan.transport == WIC_PREFETCH) {
        rc = wic_cuda_errno(advise(o, link->gpu));
        rc = rc ? rc : wic_cuda_errno(make_events(link));
    }
    return rc;
}

cudaError_t fill_view(wic_link *link, const wic_link_options *o)
{
    void *in = nullptr, *out = nullptr, *base = nullptr;
    cudaError_t error = device_view(o->in, &in);
    if (!error) {
        error = device_view(o->out, &out);
    }
    if (!error) {
        error = device_view(link->control, &base);
    }
    const auto seen = [&](const void *host) {
        return static_cast<unsigned char *>(base) +
               (static_cast<const unsigned char *>(host) -
                reinterpret_cast<unsigned char *>(link->control));
    };
    wic_view &view = link->view;
    view.in = static_cast<const unsigned char *>(in);
    view.out = static_cast<unsigned char *>(out);
    view.in_stride = o->in_stride;
    view.out_stride = o->out_stride;
    view.in_slots = o->in_slots;
    view.out_slots = o->out_slots;
    view.plan = o->plan;
    view.doorbell = reinterpret_cast<uint64_t *>(seen(link->doorbell));
    view.control = reinterpret_cast<wic_link_control *>(seen(link->control));
    view.user = seen(link->user);
    view.done = reinterpret_cast<uint64_t *>(seen(link->done));
    view.started = reinterpret_cast<uint64_t *>(seen(link->started));
    view.beat_ns = o->beat_ns ? o->beat_ns : WIC_LINK_BEAT_NS;
    view.first_tile = o->first_tile;
    view.first_round = o->first_round;
    return error;
}
} // namespace

int wic_link_allocate(wic_link *link, const wic_link_options *options)
{
    const uint32_t entries = ring_entries(options);
    link->view.ring_mask = entries - 1;
    link->in = static_cast<unsigned char *>(options->in);
    link->out = static_cast<unsigned char *>(options->out);
    cudaError_t error = pin(options->in, options->in_slots * options->in_stride, &link->pinned_in);
    if (!error) {
        error = pin(options->out, options->out_slots * options->out_stride, &link->pinned_out);
    }
    if (!error) {
        error = make_shared(link, options, entries);
    }
    if (!error) {
        error = make_own(link, options, entries);
    }
    if (!error) {
        error = make_queues(link);
    }
    if (!error) {
        error = fill_view(link, options);
    }
    const bool engine =
        options->plan.transport == WIC_COPY || options->plan.transport == WIC_PREFETCH;
    return error ? wic_cuda_errno(error) : engine ? make_transport(link, options) : 0;
}

void wic_link_free(wic_link *link)
{
    for (uint64_t i = 0; link->returned && i < wic_link_entries(link); i++) {
        if (link->returned[i]) {
            cudaEventDestroy(link->returned[i]);
        }
    }
    for (cudaStream_t stream : {link->stream, link->transport, link->back}) {
        if (stream) {
            cudaStreamDestroy(stream);
        }
    }
    if (link->left) {
        cudaEventDestroy(link->left);
    }
    free(link->returned);
    free(link->returning);
    cudaFree(link->copies);
    cudaFree(link->device);
    cudaFreeHost(link->control);
    if (link->pinned_in) {
        cudaHostUnregister(link->in);
    }
    if (link->pinned_out) {
        cudaHostUnregister(link->out);
    }
}
