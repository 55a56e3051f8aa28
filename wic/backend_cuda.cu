// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The host side of a link: its memory, the launch, the proof that all its blocks fit on the device
// together, and the way out. One block of pinned memory holds control, done and door, each on lines
// of its own, for they are written by different sides; one of device memory holds state, board and
// the counters.
#include "wic/link.h"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <cuda_runtime.h>

namespace
{
constexpr size_t line = 128;
constexpr int64_t start_limit_ns = 2000000000;

int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int to_errno(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return 0;
    case cudaErrorMemoryAllocation:
        return -ENOMEM;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
        return -ENODEV;
    default:
        return -EIO;
    }
}

size_t aligned(size_t bytes)
{
    return (bytes + line - 1) / line * line;
}

// The host's words are plain in the struct that C and the device share; all access goes by these.
void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
} // namespace

struct wic_link {
    wic_view view;
    const void *kernel, *argument;
    unsigned threads;
    size_t shared_bytes;
    cudaStream_t stream;
    cudaEvent_t left;
    wic_link_control *control; // pinned, and the three behind it
    uint64_t *started, *done, *door;
    unsigned char *device; // the device's block
    size_t device_bytes;
};

static int check(const wic_link_options *o)
{
    const wic_chunk_plan &p = o->plan;
    const bool good =
        o->in && o->out && o->kernel && o->in_slots - 1u < WIC_LINK_RING_MAX &&
        o->out_slots - 1u < WIC_LINK_RING_MAX && o->in_stride % 16 == 0 &&
        o->out_stride % 16 == 0 && p.in_unit && p.out_unit && p.in_piece && p.in_piece % 16 == 0 &&
        p.out_piece % 16 == 0 && p.in_piece % p.in_unit == 0 &&
        p.in_piece / p.in_unit * p.out_unit == p.out_piece && p.pieces &&
        p.depth - 1u < WIC_PLAN_DEPTH_MAX && p.blocks && p.warps - 1u < 32 - WIC_SERVICE_WARPS &&
        reinterpret_cast<uintptr_t>(o->in) % 16 == 0 &&
        reinterpret_cast<uintptr_t>(o->out) % 16 == 0;
    return good ? 0 : -EINVAL;
}

// All blocks wait for the Monitor, and each tile for several blocks: a block that is not on the
// device while the others are would be waited for without end.
static int prove_residency(const wic_link *link, unsigned blocks)
{
    int device = 0, processors = 0, each = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (!error) {
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    }
    if (!error) {
        int most = 0;
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (!error && link->shared_bytes > static_cast<size_t>(most)) {
            return -E2BIG;
        }
    }
    if (!error) {
        error = cudaFuncSetAttribute(link->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(link->shared_bytes));
    }
    if (!error) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, link->kernel, static_cast<int>(link->threads), link->shared_bytes);
    }
    if (error) {
        return to_errno(error);
    }
    if (each == 0) {
        return -E2BIG;
    }
    return static_cast<uint64_t>(each) * processors >= blocks ? 0 : -ENOSPC;
}

static uint32_t ring_entries(const wic_link_options *options)
{
    uint32_t entries = 32; // the Monitor looks at 30 entries at a time
    while (entries < options->in_slots || entries < options->out_slots) {
        entries *= 2;
    }
    return entries;
}

static cudaError_t allocate(wic_link *link, const wic_link_options *options, uint32_t entries)
{
    const size_t ring = aligned(entries * sizeof(uint64_t));
    void *pinned = nullptr, *device = nullptr;
    cudaError_t error =
        cudaHostAlloc(&pinned, 2 * line + 2 * ring, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error) {
        return error;
    }
    unsigned char *at = static_cast<unsigned char *>(pinned);
    link->control = reinterpret_cast<wic_link_control *>(at);
    link->started = reinterpret_cast<uint64_t *>(at + line);
    link->done = reinterpret_cast<uint64_t *>(at + 2 * line);
    link->door = reinterpret_cast<uint64_t *>(at + 2 * line + ring);
    link->device_bytes = aligned(sizeof(wic_link_state)) + ring + aligned(entries * 4) +
                         options->plan.blocks * sizeof(uint64_t);
    error = cudaMalloc(&device, link->device_bytes);
    link->device = static_cast<unsigned char *>(device);
    if (!error) {
        error = cudaStreamCreateWithFlags(&link->stream, cudaStreamNonBlocking);
    }
    if (!error) {
        error = cudaEventCreateWithFlags(&link->left, cudaEventDisableTiming);
    }
    return error;
}

// Where the device finds a pinned buffer of the host.
static cudaError_t device_view(const void *host, void **out_device)
{
    return cudaHostGetDevicePointer(out_device, const_cast<void *>(host), 0);
}

static cudaError_t fill_view(wic_link *link, const wic_link_options *o, uint32_t entries)
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
    const size_t ring = aligned(entries * sizeof(uint64_t));
    wic_view &view = link->view;
    view.in = static_cast<const unsigned char *>(in);
    view.out = static_cast<unsigned char *>(out);
    view.in_stride = o->in_stride;
    view.out_stride = o->out_stride;
    view.in_first = o->in_first;
    view.out_first = o->out_first;
    view.in_slots = o->in_slots;
    view.out_slots = o->out_slots;
    view.ring_mask = entries - 1;
    view.plan = o->plan;
    view.door = reinterpret_cast<uint64_t *>(seen(link->door));
    view.control = reinterpret_cast<wic_link_control *>(seen(link->control));
    view.done = reinterpret_cast<uint64_t *>(seen(link->done));
    view.started = reinterpret_cast<uint64_t *>(seen(link->started));
    view.state = reinterpret_cast<wic_link_state *>(link->device);
    view.board = reinterpret_cast<uint64_t *>(link->device + aligned(sizeof(wic_link_state)));
    view.arrived =
        reinterpret_cast<uint32_t *>(reinterpret_cast<unsigned char *>(view.board) + ring);
    view.passed = reinterpret_cast<uint64_t *>(reinterpret_cast<unsigned char *>(view.arrived) +
                                               aligned(entries * 4));
    view.beat_ns = o->beat_ns ? o->beat_ns : WIC_LINK_BEAT_NS;
    return error;
}

int wic_link_create(const wic_link_options *options, wic_link **out_link)
{
    if (!options || !out_link || check(options) != 0) {
        return -EINVAL;
    }
    wic_link *link = static_cast<wic_link *>(calloc(1, sizeof *link));
    if (!link) {
        return -ENOMEM;
    }
    link->kernel = options->kernel;
    link->argument = options->argument;
    link->threads = 32 * (options->plan.warps + WIC_SERVICE_WARPS);
    link->shared_bytes = wic_chunk_plan_shared_bytes(&options->plan);
    int rc = prove_residency(link, options->plan.blocks);
    if (rc == 0) {
        const uint32_t entries = ring_entries(options);
        cudaError_t error = allocate(link, options, entries);
        rc = to_errno(error ? error : fill_view(link, options, entries));
    }
    if (rc != 0) {
        wic_link_destroy(link);
        return rc;
    }
    *out_link = link;
    return 0;
}

void wic_link_destroy(wic_link *link)
{
    if (!link) {
        return;
    }
    if (link->stream) {
        cudaStreamDestroy(link->stream);
    }
    if (link->left) {
        cudaEventDestroy(link->left);
    }
    cudaFree(link->device);
    cudaFreeHost(link->control);
    free(link);
}

static cudaError_t launch(wic_link *link)
{
    const uint64_t entries = static_cast<uint64_t>(link->view.ring_mask) + 1;
    store(&link->control->end, WIC_LINK_OPEN);
    store(link->started, 0);
    for (uint64_t i = 0; i < entries; i++) {
        store(&link->door[i], 0);
        store(&link->done[i], 0);
    }
    wic_link_beat(link);
    const wic_link_state state = {WIC_LINK_OPEN, 0, 0, 0, 0};
    cudaError_t error = cudaMemsetAsync(link->device, 0, link->device_bytes, link->stream);
    if (!error) {
        error = cudaMemcpyAsync(link->device, &state, sizeof state, cudaMemcpyHostToDevice,
                                link->stream);
    }
    if (!error) {
        error = cudaStreamSynchronize(link->stream);
    }
    void *arguments[] = {&link->view, const_cast<void *>(link->argument)};
    if (!error) {
        error = cudaLaunchKernel(link->kernel, dim3(link->view.plan.blocks), dim3(link->threads),
                                 arguments, link->shared_bytes, link->stream);
    }
    return error ? error : cudaEventRecord(link->left, link->stream);
}

int wic_link_start(wic_link *link)
{
    const cudaError_t error = launch(link);
    if (error) {
        return to_errno(error);
    }
    const int64_t limit = now_ns() + start_limit_ns;
    while (load(link->started) == 0) {
        const int running = wic_link_running(link);
        if (running < 0) {
            return running;
        }
        if (now_ns() > limit) {
            wic_link_abort(link);
            const int rc = wic_link_join(link, WIC_LINK_BEAT_NS);
            return rc == 0 ? -EBUSY : rc;
        }
    }
    return 0;
}

int wic_link_running(wic_link *link)
{
    const cudaError_t error = cudaEventQuery(link->left);
    return error == cudaErrorNotReady ? 1 : to_errno(error);
}

int wic_link_join(wic_link *link, int64_t timeout_ns)
{
    const int64_t limit = now_ns() + timeout_ns;
    const timespec nap = {0, 50000};
    for (;;) {
        const int running = wic_link_running(link);
        if (running <= 0) {
            return running;
        }
        if (now_ns() > limit) {
            return -ETIMEDOUT;
        }
        nanosleep(&nap, nullptr);
    }
}

void wic_link_post(wic_link *link, uint64_t tile, uint32_t bytes)
{
    const uint64_t mark = static_cast<uint32_t>(tile + 1);
    store(&link->door[tile & link->view.ring_mask], mark << 32 | bytes / link->view.plan.in_unit);
}

bool wic_link_done(const wic_link *link, uint64_t tile)
{
    return load(&link->done[tile & link->view.ring_mask]) == tile + 1;
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
    store(&link->control->end, WIC_LINK_ABORT);
}

int wic_link_report(wic_link *link, wic_link_state *out_state)
{
    return to_errno(cudaMemcpy(out_state, link->device, sizeof *out_state, cudaMemcpyDeviceToHost));
}

int wic_gpu_read(int device, wic_gpu *out_gpu)
{
    cudaDeviceProp p;
    const cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error) {
        return to_errno(error);
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
