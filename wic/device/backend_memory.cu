// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory of a link: pinned slots, the block that both sides read and write, the device's block,
// the slots' copies, the streams. All of it is allocated before the kernel starts.
#include "wic/device/link_inside.h"
#include "wic/device/stay.h"

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

// That may serve the link.
uint32_t blocks_of(const wic_link_options *o)
{
    return o->launch ? wic_launch_blocks(o->launch) : o->plan.blocks;
}

// Size of the device's block: state, landed words, ready board, arrived pieces, passed pieces.
size_t device_bytes_of(const wic_link_options *o, uint32_t entries)
{
    return aligned(aligned(sizeof(wic_link_state)) + wic_link_line +
                   aligned(entries * sizeof(uint64_t)) + aligned(entries * 4) +
                   blocks_of(o) * sizeof(uint64_t));
}

cudaError_t make_shared(wic_link *link, const wic_link_options *o, uint32_t entries)
{
    const size_t ring = aligned(entries * sizeof(uint64_t));
    const size_t users = aligned(entries * o->plan.user_bytes);
    const size_t image = device_bytes_of(o, entries);
    const size_t described = o->launch ? sizeof(wic_view) + o->argument_bytes : 0;
    constexpr size_t own_lines = 5;
    void *pinned = nullptr;
    const cudaError_t error =
        cudaHostAlloc(&pinned, own_lines * wic_link_line + 2 * ring + users + image + described,
                      cudaHostAllocMapped | cudaHostAllocPortable);
    if (error) {
        return error;
    }
    unsigned char *at = static_cast<unsigned char *>(pinned);
    link->control = reinterpret_cast<wic_link_control *>(at);
    link->started = reinterpret_cast<uint64_t *>(at + wic_link_line);
    link->landing = reinterpret_cast<wic_link_state *>(at + 2 * wic_link_line);
    link->back_landed = reinterpret_cast<uint64_t *>(at + 3 * wic_link_line);
    link->lane_left = reinterpret_cast<uint64_t *>(at + 4 * wic_link_line);
    *link->lane_left = 0;
    at += own_lines * wic_link_line;
    link->done = reinterpret_cast<uint64_t *>(at);
    link->doorbell = reinterpret_cast<uint64_t *>(at + ring);
    link->user = at + 2 * ring;
    link->image = link->user + users;
    link->described = link->image + image;
    return cudaSuccess;
}

cudaError_t make_own(wic_link *link, const wic_link_options *o, uint32_t entries)
{
    const size_t ring = aligned(entries * sizeof(uint64_t));
    link->device_bytes = device_bytes_of(o, entries);
    void *device = nullptr;
    const cudaError_t error = cudaMalloc(&device, link->device_bytes);
    link->device = static_cast<unsigned char *>(device);
    wic_view &view = link->view;
    unsigned char *at = link->device;
    view.state = reinterpret_cast<wic_link_state *>(at);
    link->to.landed = reinterpret_cast<uint64_t *>(at += aligned(sizeof(wic_link_state)));
    view.landed = link->to.landed;
    view.ready_board = reinterpret_cast<uint64_t *>(at += wic_link_line);
    view.arrived = reinterpret_cast<uint32_t *>(at += ring);
    view.passed = reinterpret_cast<uint64_t *>(at += aligned(entries * 4));
    return error;
}

// The stream of a lane has copies only.
int make_queues(wic_link *link)
{
    const int rc = wic_shape_stream(link->shape, &link->stream);
    return rc ? rc
              : wic_cuda_refuse(cudaEventCreateWithFlags(&link->left, cudaEventDisableTiming),
                                "an event cannot be made");
}

// Managed slots stay in the host's memory, where the device reads and writes them over the link as
// it does pinned ones: pages that move cost 0.6 us each.
cudaError_t advise(void *slots, size_t bytes, int gpu)
{
    const cudaMemLocation device = {cudaMemLocationTypeDevice, gpu};
    const cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    cudaError_t error = cudaMemAdvise(slots, bytes, cudaMemAdviseSetPreferredLocation, host);
    return error ? error : cudaMemAdvise(slots, bytes, cudaMemAdviseSetAccessedBy, device);
}

bool is_managed(const void *memory)
{
    cudaPointerAttributes found;
    return !cudaPointerGetAttributes(&found, memory) && found.type == cudaMemoryTypeManaged;
}

cudaError_t make_streams(wic_link *link)
{
    cudaError_t error = cudaSuccess;
    for (wic_copies *copies : {&link->to, &link->back}) {
        for (cudaStream_t &stream : copies->stream) {
            error = error ? error : cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        }
    }
    return error;
}

int no_write_value()
{
    return wic_stay_refuse(-EOPNOTSUPP, "the NVIDIA driver cannot write a word from a stream: "
                                        "update it, or choose a plan that pulls");
}

// Whether the device supports writes from a stream shows only when it executes one.
int try_write_value(wic_link *link)
{
    const int64_t until = wic_link_now_ns() + static_cast<int64_t>(WIC_LINK_BEAT_NS);
    const CUresult result =
        link->write_value(link->to.stream[0], reinterpret_cast<CUdeviceptr>(link->to.landed), 0,
                          CU_STREAM_WRITE_VALUE_DEFAULT);
    return result == CUDA_ERROR_NOT_SUPPORTED ? no_write_value()
           : result != CUDA_SUCCESS           ? -EIO
                                              : wic_link_drain(link->to.stream[0], until);
}

cudaError_t make_copies(wic_link *link, const wic_link_options *o)
{
    void *in = nullptr, *out = nullptr, *user = nullptr;
    cudaError_t error = cudaMalloc(&user, wic_link_entries(link) * o->plan.user_bytes + 16);
    link->view.user_copies = static_cast<unsigned char *>(user);
    error = error ? error : cudaMalloc(&in, o->in_slots * o->in_stride);
    link->view.in_copies = static_cast<unsigned char *>(in);
    error = error ? error : cudaMalloc(&out, o->out_slots * o->out_stride);
    link->view.out_copies = static_cast<unsigned char *>(out);
    return error;
}

void free_engine(wic_link *link)
{
    for (wic_copies *copies : {&link->to, &link->back}) {
        for (cudaStream_t &stream : copies->stream) {
            if (stream) {
                cudaStreamDestroy(stream);
            }
            stream = nullptr;
        }
    }
    cudaFree(const_cast<unsigned char *>(link->view.in_copies));
    cudaFree(link->view.out_copies);
    cudaFree(const_cast<unsigned char *>(link->view.user_copies));
    link->view.in_copies = link->view.out_copies = nullptr;
    link->view.user_copies = nullptr;
}

// What tiles that go by copy engine need. A plan that pulls does without if it cannot be had.
int make_engine(wic_link *link, const wic_link_options *o)
{
    int rc = wic_find_write_value(&link->write_value);
    rc = rc ? rc : wic_cuda_errno(make_streams(link));
    rc = rc ? rc : try_write_value(link);
    rc = rc ? rc : wic_cuda_errno(make_copies(link, o));
    if (o->plan.transport == WIC_COPY || (rc != -ENOMEM && rc != -EOPNOTSUPP)) {
        return rc;
    }
    (void)cudaGetLastError();
    free_engine(link);
    return 0;
}

cudaError_t fill_view(wic_link *link, const wic_link_options *o)
{
    void *in = nullptr, *out = nullptr, *base = nullptr;
    cudaError_t error = wic_device_pointer(o->in, &in);
    if (!error) {
        error = wic_device_pointer(o->out, &out);
    }
    if (!error) {
        error = wic_device_pointer(link->control, &base);
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
    view.plan.blocks = link->blocks;
    view.plan.pulls = link->pulls;
    view.doorbell = reinterpret_cast<uint64_t *>(seen(link->doorbell));
    view.control = reinterpret_cast<wic_link_control *>(seen(link->control));
    view.user = seen(link->user);
    view.done = reinterpret_cast<uint64_t *>(seen(link->done));
    view.started = reinterpret_cast<uint64_t *>(seen(link->started));
    view.left = reinterpret_cast<uint64_t *>(seen(link->lane_left));
    view.priority = o->priority;
    view.stage_bytes =
        o->plan.in_piece + (o->plan.results == WIC_PUSH_BULK ? o->plan.out_piece : 0);
    link->back.landed = reinterpret_cast<uint64_t *>(seen(link->back_landed));
    view.beat_ns = o->beat_ns ? o->beat_ns : WIC_LINK_BEAT_NS;
    view.first_tile = o->first_tile;
    view.first_round = o->first_round;
    return error;
}
cudaError_t prepare_slots(wic_link *link, const wic_link_options *o)
{
    const size_t in = o->in_slots * o->in_stride, out = o->out_slots * o->out_stride;
    cudaError_t error = pin(o->in, in, &link->pinned_in);
    if (!error) {
        error = pin(o->out, out, &link->pinned_out);
    }
    if (!error && is_managed(o->in)) {
        error = advise(o->in, in, link->gpu);
    }
    if (!error && is_managed(o->out)) {
        error = advise(o->out, out, link->gpu);
    }
    return error;
}

// Copy engines bring managed memory at a tenth of the link.
bool uses_engine(const wic_link_options *o)
{
    const bool wanted = o->plan.transport == WIC_COPY ||
                        (o->plan.transport < WIC_COPY && o->plan.engine_backlog > 0);
    return wanted && !is_managed(o->in) && !is_managed(o->out);
}
} // namespace

cudaError_t wic_device_pointer(void *host, void **out_device)
{
    cudaPointerAttributes found;
    const cudaError_t error = cudaPointerGetAttributes(&found, host);
    *out_device = found.devicePointer;
    return error ? error : found.devicePointer ? cudaSuccess : cudaErrorInvalidValue;
}

// cuStreamWriteValue64 has no counterpart in the runtime, and the driver is not linked.
int wic_find_write_value(decltype(&cuStreamWriteValue64) *out)
{
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry,
                                                               12000, cudaEnableDefault, &found);
    if (error) {
        return wic_cuda_errno(error);
    }
    *out = reinterpret_cast<decltype(&cuStreamWriteValue64)>(entry);
    return found == cudaDriverEntryPointSuccess && entry ? 0 : no_write_value();
}

int wic_link_allocate(wic_link *link, const wic_link_options *options)
{
    const uint32_t entries = ring_entries(options);
    link->view.ring_mask = entries - 1;
    link->in = static_cast<unsigned char *>(options->in);
    link->out = static_cast<unsigned char *>(options->out);
    link->posted = static_cast<wic_posted *>(calloc(entries, sizeof(wic_posted)));
    cudaError_t error = link->posted ? prepare_slots(link, options) : cudaErrorMemoryAllocation;
    if (!error) {
        error = make_shared(link, options, entries);
    }
    if (!error) {
        error = make_own(link, options, entries);
    }
    if (!error) {
        error = fill_view(link, options);
    }
    if (error) {
        return wic_cuda_refuse(error, "the memory of the link cannot be allocated or pinned");
    }
    const int rc = make_queues(link);
    return rc ? rc : uses_engine(options) ? make_engine(link, options) : 0;
}

void wic_link_free(wic_link *link)
{
    free_engine(link);
    if (link->stream) {
        cudaStreamDestroy(link->stream);
    }
    if (link->left) {
        cudaEventDestroy(link->left);
    }
    wic_shape_end(&link->shape);
    free(link->posted);
    cudaFree(link->device);
    cudaFreeHost(link->control);
    if (link->pinned_in) {
        cudaHostUnregister(link->in);
    }
    if (link->pinned_out) {
        cudaHostUnregister(link->out);
    }
}
