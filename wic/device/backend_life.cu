// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Create, start and end of a link, and the check that all blocks of its kernel can be resident
// together.
#include "wic/device/link_inside.h"
#include "wic/device/stay.h"

#include <cstdlib>
#include <cstring>
#include <ctime>

namespace
{
constexpr int64_t start_limit_ns = WIC_LINK_START_NS;
constexpr int64_t drain_limit_ns = WIC_LINK_BEAT_NS; // for copies, which wait for nothing
constexpr int64_t destroy_limit_ns = 1000000000;
constexpr int64_t alert_ns = 200000; // a wait spins for this long, then it sleeps between polls

void nap(int64_t since_ns)
{
    const timespec time = {0, 50000};
    if (wic_link_now_ns() - since_ns > alert_ns) {
        nanosleep(&time, nullptr);
    }
}

bool is_multiple(size_t n)
{
    return n % 16 == 0;
}

bool is_plan(const wic_transfer_plan &p)
{
    const bool pulled = p.transport < WIC_COPY;
    return p.piece_units && p.pieces && p.depth - 1u < WIC_PLAN_DEPTH_MAX && p.blocks &&
           p.pulls - 1u < p.blocks && p.warps - 1u < 32 - WIC_SERVICE_WARPS &&
           p.user_bytes <= WIC_PLAN_USER_MAX && is_multiple(p.user_bytes) &&
           is_multiple(p.in_piece) && is_multiple(p.out_piece) && pulled == (p.in_piece > 0) &&
           p.piece_units * size_t{p.in_unit} == p.in_piece &&
           p.piece_units * size_t{p.out_unit} == p.out_piece &&
           (p.out_unit > 0 || p.results == WIC_PUSH_STORES);
}

bool is_valid(const wic_link_options *o)
{
    return o->in && o->out && (o->kernel || o->launch) && o->in_slots - 1u < WIC_LINK_RING_MAX &&
           o->out_slots - 1u < WIC_LINK_RING_MAX && is_multiple(o->in_stride) &&
           is_multiple(o->out_stride) && is_multiple(reinterpret_cast<uintptr_t>(o->in)) &&
           is_multiple(reinterpret_cast<uintptr_t>(o->out)) && is_plan(o->plan) &&
           o->share.way <= WIC_SHARE_GREEN;
}

// The words of doorbell and ready board begin with the number of the tile before the first.
void clear_words(wic_link *link)
{
    const uint64_t none = static_cast<uint64_t>(static_cast<uint32_t>(link->view.first_tile)) << 32;
    wic_link_store(&link->control->end, WIC_LINK_OPEN);
    wic_link_store(link->started, 0);
    for (uint64_t i = 0; i < wic_link_entries(link); i++) {
        wic_link_store(&link->doorbell[i], none);
        wic_link_store(&link->done[i], 0);
    }
}

// Queues the initial values of the device's words, before the kernel: one copy of a pinned image.
// (A memset of device memory may run as a kernel, which needs room among resident ones.)
cudaError_t clear_device(wic_link *link)
{
    memset(link->image, 0, link->device_bytes);
    *reinterpret_cast<wic_link_state *>(link->image) = {WIC_LINK_OPEN, 0, 0, 0, 0, 0};
    memcpy(link->image +
               (reinterpret_cast<const unsigned char *>(link->view.ready_board) - link->device),
           link->doorbell, wic_link_entries(link) * sizeof(uint64_t));
    return cudaMemcpyAsync(link->device, link->image, link->device_bytes, cudaMemcpyHostToDevice,
                           link->stream);
}

cudaError_t launch(wic_link *link)
{
    void *arguments[] = {&link->view, const_cast<void *>(link->argument)};
    const cudaError_t error =
        cudaLaunchKernel(link->kernel, dim3(link->view.plan.blocks), dim3(link->threads), arguments,
                         link->shared_bytes, link->stream);
    return error ? error : cudaEventRecord(link->left, link->stream);
}

// Copies that were queued for an earlier kernel must not land beside those of the next.
int drain_copies(wic_link *link, int64_t until)
{
    int rc = 0;
    for (const wic_copies *copies : {&link->to, &link->back}) {
        for (cudaStream_t stream : copies->stream) {
            rc = rc || !stream ? rc : wic_link_drain(stream, until);
        }
    }
    return rc;
}

// 0 once the stream is idle; -EBUSY: not before the time limit.
int wait_for_stream(wic_link *link, int64_t until)
{
    const int rc = wic_link_drain(link->stream, until);
    return rc == -ETIMEDOUT ? -EBUSY : rc;
}

int wait_until_started(wic_link *link, int64_t until)
{
    while (wic_link_load(link->started) == 0) {
        const int running = wic_link_running(link);
        if (running < 0) {
            return running;
        }
        // The word is read once more after the limit, as this process may have been suspended.
        if (wic_link_now_ns() > until && wic_link_load(link->started) == 0) {
            wic_link_abort(link);
            return -EBUSY;
        }
    }
    return 0;
}
} // namespace

// All blocks wait for the Monitor, and each tile for several blocks: a block that is not resident
// while the others are would make them wait without end.
int wic_prove_residency(int gpu, wic_residency *wanted, wic_shape *shape)
{
    int processors = 0, each = 0, most = 0, limited = 0;
    cudaFuncAttributes kernel = {};
    cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu);
    if (!error) {
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu);
    }
    if (!error) {
        error = cudaDeviceGetAttribute(&limited, cudaDevAttrKernelExecTimeout, gpu);
    }
    if (!error) {
        error = cudaFuncGetAttributes(&kernel, wanted->kernel);
    }
    if (error) {
        return wic_cuda_refuse(error, "the kernel cannot be examined");
    }
    const int rest = most - static_cast<int>(kernel.sharedSizeBytes);
    if (shape->share.way == WIC_SHARE_PADDED && rest > static_cast<int>(wanted->shared_bytes)) {
        wanted->shared_bytes = static_cast<size_t>(rest);
    }
    wic_stay stay = {limited != 0,
                     static_cast<uint32_t>(processors),
                     static_cast<uint32_t>(most),
                     static_cast<uint32_t>(kernel.maxThreadsPerBlock),
                     static_cast<uint32_t>(kernel.sharedSizeBytes),
                     wanted->blocks,
                     wanted->threads,
                     wanted->shared_bytes,
                     UINT32_MAX};
    const int rc = wic_stay_check(&stay);
    if (rc != 0) {
        return rc;
    }
    // The limit is the kernel's, not the link's: it is never lowered, as another link may launch
    // the same kernel again.
    const int bytes = static_cast<int>(wanted->shared_bytes);
    if (bytes > kernel.maxDynamicSharedSizeBytes) {
        error = cudaFuncSetAttribute(wanted->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     bytes);
    }
    if (!error) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, wanted->kernel, static_cast<int>(wanted->threads), wanted->shared_bytes);
    }
    if (error) {
        return wic_cuda_refuse(error, "the kernel cannot be examined");
    }
    const wic_share_room room = {static_cast<uint32_t>(processors),
                                 shape->part ? wic_part_multiprocessors(shape->part) : 0,
                                 static_cast<uint32_t>(each)};
    wic_share_settle(&shape->share, wanted->blocks, &room, &shape->shaped);
    stay.blocks_each = room.blocks_each;
    stay.blocks = wanted->blocks = shape->shaped.blocks;
    stay.multiprocessors = shape->shaped.multiprocessors;
    return wic_stay_check(&stay);
}

int wic_cuda_refuse(cudaError_t error, const char *what)
{
    return error ? wic_stay_refuse(wic_cuda_errno(error), "%s: %s (%s)", what,
                                   cudaGetErrorString(error), cudaGetErrorName(error))
                 : 0;
}

uint32_t wic_share_of(uint32_t all, uint32_t share)
{
    const uint32_t some = static_cast<uint32_t>(uint64_t{all} * share / WIC_SHARE_WHOLE);
    return some > 0 ? some : 1;
}

int wic_may_launch()
{
    const char *const wanted = getenv("CUDA_LAUNCH_BLOCKING");
    return wanted && atoi(wanted) != 0
               ? wic_stay_refuse(-EOPNOTSUPP, "CUDA_LAUNCH_BLOCKING is set, therefore a launch "
                                              "would wait for the end of a kernel that stays: "
                                              "unset it")
               : 0;
}

namespace
{
// Shapes a link with a kernel of its own.
int shape(wic_link *link, const wic_share &share)
{
    wic_residency wanted = {link->kernel, link->blocks, link->threads, link->shared_bytes};
    int rc = wic_shape_begin(share, link->blocks, &link->shape);
    rc = rc ? rc : wic_prove_residency(link->gpu, &wanted, &link->shape);
    link->blocks = wanted.blocks;
    link->pulls = link->pulls < wanted.blocks ? link->pulls : wanted.blocks;
    link->shared_bytes = wanted.shared_bytes;
    return rc;
}
} // namespace

int wic_link_create(const wic_link_options *options, wic_link **out_link)
{
    wic_stay_forget();
    if (!options || !out_link || !is_valid(options)) {
        return -EINVAL;
    }
    if (wic_may_launch() != 0) {
        return -EOPNOTSUPP;
    }
    wic_link *link = static_cast<wic_link *>(calloc(1, sizeof *link));
    if (!link) {
        return -ENOMEM;
    }
    link->launch = options->launch;
    link->kernel = options->kernel;
    link->argument = options->argument;
    link->argument_bytes = options->argument_bytes;
    link->blocks = options->plan.blocks;
    link->pulls = options->plan.pulls;
    link->threads = 32 * (options->plan.warps + WIC_SERVICE_WARPS);
    link->shared_bytes = wic_transfer_plan_shared_bytes(&options->plan);
    int rc = wic_cuda_refuse(cudaGetDevice(&link->gpu), "there is no current GPU");
    if (rc == 0 && link->launch &&
        !wic_launch_takes(link->launch, &options->plan, options->argument_bytes)) {
        rc = -ENOLCK;
    }
    if (rc == 0 && !link->launch) {
        rc = shape(link, options->share);
    }
    if (rc == 0) {
        rc = wic_link_allocate(link, options);
    }
    if (rc == 0 && link->launch) {
        rc = wic_launch_reserve(link->launch, link);
    }
    if (rc != 0) {
        wic_link_destroy(link);
        return rc;
    }
    *out_link = link;
    return 0;
}

int wic_link_destroy(wic_link *link)
{
    if (!link) {
        return 0;
    }
    const int64_t until = wic_link_now_ns() + (link->stuck ? 0 : destroy_limit_ns);
    // Copies of an aborted run may still be on their way.
    if ((link->stream && wic_link_drain(link->stream, until) == -ETIMEDOUT) ||
        drain_copies(link, until) == -ETIMEDOUT || link->launch_number != 0) {
        return -ETIMEDOUT;
    }
    if (link->launch) {
        wic_launch_release(link);
    }
    wic_link_free(link);
    free(link);
    return 0;
}

void wic_link_shaped(const wic_link *link, wic_shaped *out_shaped)
{
    *out_shaped = link->launch ? *wic_launch_shaped(link->launch) : link->shape.shaped;
}

void wic_link_share(wic_link *link, uint32_t share)
{
    link->view.plan.blocks = wic_share_of(link->blocks, share);
    link->view.plan.pulls = wic_share_of(link->pulls, share);
    if (link->launch) {
        wic_launch_share(link->launch, share);
    }
}

int wic_link_start(wic_link *link, uint64_t in_first, uint64_t out_first)
{
    const int64_t until = wic_link_now_ns() + start_limit_ns;
    int rc = wic_cuda_errno(cudaSetDevice(link->gpu));
    rc = rc ? rc
            : wait_for_stream(link, until); // a kernel that was told to leave may still be queued
    if (rc == 0) {
        rc = drain_copies(link, wic_link_now_ns() + drain_limit_ns);
        link->stuck = link->stuck || rc == -ETIMEDOUT;
    }
    if (rc != 0) {
        return rc;
    }
    link->view.in_first = in_first;
    link->view.out_first = out_first;
    clear_words(link);
    wic_engine_reset(link);
    wic_link_beat(link);
    rc = wic_cuda_errno(clear_device(link));
    rc = rc ? rc : wait_for_stream(link, until);
    if (rc == 0 && link->launch) {
        return wic_launch_open(link);
    }
    rc = rc ? rc : wic_cuda_refuse(launch(link), "the kernel cannot be launched");
    return rc ? rc : wait_until_started(link, until);
}

int64_t wic_link_now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int wic_link_drain(cudaStream_t stream, int64_t until_ns)
{
    const int64_t since = wic_link_now_ns();
    for (;;) {
        const bool last = wic_link_now_ns() > until_ns;
        const cudaError_t error = cudaStreamQuery(stream);
        if (error != cudaErrorNotReady) {
            return wic_cuda_errno(error);
        }
        (void)cudaGetLastError();
        if (last) {
            return -ETIMEDOUT;
        }
        nap(since);
    }
}

int wic_link_running(wic_link *link)
{
    if (link->failure) {
        return link->failure;
    }
    if (link->launch) {
        return wic_launch_running(link);
    }
    const cudaError_t error = cudaEventQuery(link->left);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return 1;
    }
    return wic_cuda_refuse(error, "the kernel failed");
}

namespace
{
// The kernel has left, or the lane, or it has failed. Copies of an aborted run must not land in
// slots that are used for something else then.
int part(wic_link *link, int running, int64_t until)
{
    int rc = link->launch ? wic_launch_part(link, until + drain_limit_ns) : 0;
    rc = rc ? rc : running < 0 ? running : drain_copies(link, until + drain_limit_ns);
    link->stuck = link->stuck || rc == -ETIMEDOUT;
    return running < 0 ? running : rc;
}
} // namespace

int wic_link_join(wic_link *link, int64_t timeout_ns)
{
    const int64_t limit = wic_link_now_ns() + timeout_ns;
    const timespec time = {0, 50000};
    for (;;) {
        const bool last = wic_link_now_ns() > limit;
        const int running = wic_link_running(link);
        if (running <= 0) {
            return part(link, running, limit);
        }
        if (last) {
            link->stuck = true;
            return -ETIMEDOUT;
        }
        nanosleep(&time, nullptr);
    }
}

int wic_link_report(wic_link *link, wic_link_state *out_state)
{
    int rc = wic_cuda_errno(cudaMemcpyAsync(link->landing, link->device, sizeof *link->landing,
                                            cudaMemcpyDeviceToHost, link->stream));
    rc = rc ? rc : wic_link_drain(link->stream, wic_link_now_ns() + drain_limit_ns);
    link->stuck = link->stuck || rc == -ETIMEDOUT;
    if (rc == 0) {
        *out_state = *link->landing;
    }
    return rc;
}

int wic_gpu_read(int device, wic_gpu *out_gpu)
{
    wic_stay_forget();
    cudaDeviceProp p;
    const cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error) {
        return wic_cuda_refuse(error, "the GPU cannot be read");
    }
    wic_gpu gpu = {};
    for (size_t i = 0; i + 1 < sizeof gpu.name && p.name[i]; i++) {
        gpu.name[i] = p.name[i];
    }
    gpu.compute = p.major * 10 + p.minor;
    gpu.multiprocessors = static_cast<uint32_t>(p.multiProcessorCount);
    gpu.shared_bytes = static_cast<uint32_t>(p.sharedMemPerMultiprocessor);
    gpu.shared_block_bytes = static_cast<uint32_t>(p.sharedMemPerBlockOptin);
    *out_gpu = gpu;
    return 0;
}
