// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A launch (wic/device/launch.h): the kernel's memory, its start with the first lane and its end
// with the last one. The lock is held by a thread that launches the kernel or waits for its end,
// and by none that waits for a lane. A lane is opened by a copy of its view and argument, and a
// write of the open word behind it in the same stream: that write has a system-wide barrier before
// it, as the engine's landed words do.
#include "wic/device/link_inside.h"
#include "wic/device/stay.h"

#include <cstdlib>
#include <cstring>
#include <pthread.h>

struct wic_launch {
    pthread_mutex_t lock; // all below that changes
    wic_launch_options options;
    wic_lanes lanes; // the kernel's argument
    int gpu;
    unsigned threads;
    size_t shared_bytes, padded_bytes; // shared memory of a block, and its least
    wic_shape shape;
    cudaStream_t stream;
    cudaEvent_t left;
    decltype(&cuStreamWriteValue64) write_value;
    wic_link_control *control; // pinned, and the two behind it
    uint64_t *started;
    unsigned char *image;  // initial state and open words of a kernel
    unsigned char *device; // state, open words, views, arguments
    size_t words_bytes;    // of state and open words
    bool taken[WIC_LANES_MAX];
    uint32_t open;         // lanes
    uint32_t share, limit; // of the blocks
    uint32_t work_bytes;   // shared memory for the work, in a block of the next kernel
    bool resident, stuck;
    uint64_t number, opening; // of launches, read without the lock; of lanes; both from 1
};

namespace
{
constexpr int64_t copy_limit_ns = WIC_LINK_BEAT_NS; // for copies, which wait for nothing
constexpr int64_t destroy_limit_ns = 1000000000;

struct locked {
    explicit locked(wic_launch *of) : launch(of)
    {
        (void)pthread_mutex_lock(&launch->lock);
    }
    ~locked()
    {
        (void)pthread_mutex_unlock(&launch->lock);
    }
    locked(const locked &) = delete;

    wic_launch *launch;
};

size_t lines(size_t bytes)
{
    return (bytes + wic_link_line - 1) / wic_link_line * wic_link_line;
}

bool is_valid(const wic_launch_options *o)
{
    return o->kernel && o->depth - 1u < WIC_PLAN_DEPTH_MAX &&
           o->warps - 1u < 32 - WIC_SERVICE_WARPS && o->blocks > WIC_LANES_MAX &&
           o->stage_bytes % 128 == 0 && o->work_bytes % 128 == 0 && o->argument_bytes % 16 == 0 &&
           o->share.way <= WIC_SHARE_GREEN;
}

cudaError_t make_memory(wic_launch *launch)
{
    const wic_launch_options &o = launch->options;
    void *pinned = nullptr, *device = nullptr, *seen = nullptr;
    const size_t open_at = lines(sizeof(wic_link_state));
    launch->words_bytes = open_at + lines(WIC_LANES_MAX * sizeof(uint64_t));
    const size_t arguments_at = lines(launch->words_bytes + WIC_LANES_MAX * sizeof(wic_view));
    cudaError_t error = cudaHostAlloc(&pinned, 2 * wic_link_line + launch->words_bytes,
                                      cudaHostAllocMapped | cudaHostAllocPortable);
    launch->control = static_cast<wic_link_control *>(pinned);
    error = error ? error
                  : cudaMalloc(&device, arguments_at + WIC_LANES_MAX * size_t{o.argument_bytes});
    launch->device = static_cast<unsigned char *>(device);
    error = error ? error : wic_device_pointer(pinned, &seen);
    if (error) {
        return error;
    }
    unsigned char *const host = static_cast<unsigned char *>(pinned);
    launch->started = reinterpret_cast<uint64_t *>(host + wic_link_line);
    launch->image = host + 2 * wic_link_line;
    wic_lanes &lanes = launch->lanes;
    lanes.base.control = static_cast<wic_link_control *>(seen);
    lanes.base.started =
        reinterpret_cast<uint64_t *>(static_cast<unsigned char *>(seen) + wic_link_line);
    lanes.base.state = reinterpret_cast<wic_link_state *>(launch->device);
    lanes.open = reinterpret_cast<uint64_t *>(launch->device + open_at);
    lanes.views = reinterpret_cast<wic_view *>(launch->device + launch->words_bytes);
    lanes.arguments = launch->device + arguments_at;
    return cudaEventCreateWithFlags(&launch->left, cudaEventDisableTiming);
}

// Shared memory of a block: stages, work, views of the lanes.
void lay_out(wic_launch *launch, uint32_t work_bytes)
{
    const wic_launch_options &o = launch->options;
    wic_lanes &lanes = launch->lanes;
    lanes.base.plan.work_bytes = work_bytes;
    lanes.views_at = WIC_STAGES_OFFSET + o.depth * o.stage_bytes + work_bytes;
    launch->shared_bytes = lanes.views_at + WIC_LANES_BYTES;
    if (launch->shared_bytes < launch->padded_bytes) {
        launch->shared_bytes = launch->padded_bytes;
    }
}

int shape(wic_launch *launch)
{
    wic_launch_options &o = launch->options;
    wic_residency wanted = {o.kernel, o.blocks, launch->threads, launch->shared_bytes};
    int rc = wic_shape_begin(o.share, o.blocks, &launch->shape);
    rc = rc ? rc : wic_prove_residency(launch->gpu, &wanted, &launch->shape);
    if (rc == 0 && wanted.blocks <= WIC_LANES_MAX) {
        rc =
            wic_stay_refuse(-ENOSPC,
                            "%u blocks fit on the %u multiprocessors of the share, and a kernel "
                            "of lanes needs %u: give it a larger share",
                            wanted.blocks, launch->shape.shaped.multiprocessors, WIC_LANES_MAX + 1);
    }
    o.blocks = launch->limit = wanted.blocks;
    if (o.share.way == WIC_SHARE_PADDED) {
        launch->padded_bytes = launch->shared_bytes = wanted.shared_bytes;
    }
    return rc ? rc : wic_shape_stream(launch->shape, &launch->stream);
}

void describe(wic_launch *launch)
{
    const wic_launch_options &o = launch->options;
    wic_lanes &lanes = launch->lanes;
    lanes.base.plan.warps = o.warps;
    lanes.base.plan.depth = o.depth;
    lanes.base.stage_bytes = o.stage_bytes;
    lanes.base.beat_ns = o.beat_ns ? o.beat_ns : WIC_LINK_BEAT_NS;
    lanes.argument_bytes = o.argument_bytes;
    launch->threads = 32 * (o.warps + WIC_SERVICE_WARPS);
    launch->share = WIC_SHARE_WHOLE;
    launch->limit = o.blocks;
    launch->work_bytes = o.work_bytes;
    lay_out(launch, o.work_bytes);
}

uint32_t blocks_now(const wic_launch *launch)
{
    const uint32_t blocks = wic_share_of(launch->limit, launch->share);
    return blocks > WIC_LANES_MAX ? blocks : WIC_LANES_MAX + 1;
}

// 1, 0, -EIO.
int is_there(const wic_launch *launch)
{
    const cudaError_t error = cudaEventQuery(launch->left);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return 1;
    }
    return wic_cuda_errno(error);
}

cudaError_t queue_kernel(wic_launch *launch)
{
    memset(launch->image, 0, launch->words_bytes);
    *reinterpret_cast<wic_link_state *>(launch->image) = {WIC_LINK_OPEN, 0, 0, 0, 0, 0};
    launch->lanes.base.plan.blocks = blocks_now(launch);
    lay_out(launch, launch->work_bytes);
    // One copy: a memset may run as a kernel, which needs room among resident ones.
    cudaError_t error = cudaMemcpyAsync(launch->device, launch->image, launch->words_bytes,
                                        cudaMemcpyHostToDevice, launch->stream);
    void *arguments[] = {&launch->lanes};
    if (!error) {
        error = cudaLaunchKernel(launch->options.kernel, dim3(launch->lanes.base.plan.blocks),
                                 dim3(launch->threads), arguments, launch->shared_bytes,
                                 launch->stream);
    }
    return error ? error : cudaEventRecord(launch->left, launch->stream);
}

int wait_until_started(wic_launch *launch, int64_t until)
{
    while (wic_link_load(launch->started) == 0) {
        const int there = is_there(launch);
        if (there < 0) {
            return there;
        }
        // Once more after the limit, as this process may have been suspended.
        if (wic_link_now_ns() > until && wic_link_load(launch->started) == 0) {
            wic_link_store(&launch->control->end, WIC_LINK_ABORT);
            return -EBUSY;
        }
    }
    return 0;
}

// A kernel that was told to leave may still be queued: the next one waits for it.
int start_kernel(wic_launch *launch, int64_t until)
{
    int rc = wic_link_drain(launch->stream, until);
    if (rc != 0) {
        return rc == -ETIMEDOUT ? -EBUSY : rc;
    }
    wic_link_store(&launch->control->end, WIC_LINK_OPEN);
    wic_link_store(launch->started, 0);
    wic_launch_beat(launch);
    __atomic_store_n(&launch->number, launch->number + 1, __ATOMIC_RELEASE);
    rc = wic_cuda_errno(queue_kernel(launch));
    rc = rc ? rc : wait_until_started(launch, until);
    launch->resident = rc == 0;
    return rc;
}

// The kernel is there; 1: it was before. One that left by itself, as the heartbeat had stopped, is
// made anew: those whose lanes were open in it find their lanes left.
int have_kernel(wic_launch *launch, int64_t until)
{
    if (launch->resident) {
        const int there = is_there(launch);
        if (there != 0) {
            return there;
        }
        launch->resident = false;
        launch->open = 0;
    }
    return start_kernel(launch, until);
}

// Copies the lane's description and opens it, in the order of the stream.
int queue_opening(wic_launch *launch, wic_link *link)
{
    wic_view &view = link->view;
    view.plan.blocks = launch->lanes.base.plan.blocks;
    const uint32_t pulls = wic_share_of(link->pulls, launch->share);
    view.plan.pulls = pulls < view.plan.blocks ? pulls : view.plan.blocks;
    view.opening = ++launch->opening;
    memcpy(link->described, &view, sizeof view);
    if (link->argument_bytes > 0) {
        memcpy(link->described + sizeof view, link->argument, link->argument_bytes);
    }
    wic_lanes &lanes = launch->lanes;
    cudaError_t error =
        cudaMemcpyAsync(const_cast<wic_view *>(&lanes.views[link->lane]), link->described,
                        sizeof view, cudaMemcpyHostToDevice, link->stream);
    if (!error && link->argument_bytes > 0) {
        error = cudaMemcpyAsync(const_cast<unsigned char *>(lanes.arguments) +
                                    size_t{link->lane} * lanes.argument_bytes,
                                link->described + sizeof view, link->argument_bytes,
                                cudaMemcpyHostToDevice, link->stream);
    }
    if (error) {
        return wic_cuda_errno(error);
    }
    return launch->write_value(link->stream, reinterpret_cast<CUdeviceptr>(lanes.open + link->lane),
                               view.opening, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS
               ? 0
               : -EIO;
}

// Tells the kernel to leave, and waits until it has.
int end_kernel(wic_launch *launch, int64_t until)
{
    wic_link_store(&launch->control->end, WIC_LINK_ABORT);
    launch->resident = false;
    const int rc = wic_link_drain(launch->stream, until);
    launch->stuck = launch->stuck || rc == -ETIMEDOUT;
    return rc;
}
} // namespace

int wic_launch_create_as(uint64_t layout, const wic_launch_options *options,
                         wic_launch **out_launch)
{
    wic_stay_forget();
    if (layout != WIC_LAUNCH_LAYOUT) {
        return wic_stay_refuse(-EPROTO, "the program was compiled with the headers of another wic "
                                        "than the library: compile it again");
    }
    if (!options || !out_launch || !is_valid(options)) {
        return -EINVAL;
    }
    wic_launch *launch = static_cast<wic_launch *>(calloc(1, sizeof *launch));
    if (!launch) {
        return -ENOMEM;
    }
    (void)pthread_mutex_init(&launch->lock, nullptr);
    launch->options = *options;
    describe(launch);
    int rc = wic_may_launch();
    rc = rc ? rc : wic_cuda_errno(cudaGetDevice(&launch->gpu));
    rc = rc ? rc : wic_find_write_value(&launch->write_value);
    rc = rc ? rc : shape(launch);
    rc = rc ? rc : wic_cuda_errno(make_memory(launch));
    if (rc != 0) {
        wic_launch_destroy(launch);
        return rc;
    }
    *out_launch = launch;
    return 0;
}

int wic_launch_destroy(wic_launch *launch)
{
    if (!launch) {
        return 0;
    }
    const int64_t until = wic_link_now_ns() + (launch->stuck ? 0 : destroy_limit_ns);
    if (launch->stream && wic_link_drain(launch->stream, until) == -ETIMEDOUT) {
        return -ETIMEDOUT;
    }
    if (launch->stream) {
        cudaStreamDestroy(launch->stream);
    }
    wic_shape_end(&launch->shape);
    if (launch->left) {
        cudaEventDestroy(launch->left);
    }
    cudaFree(launch->device);
    cudaFreeHost(launch->control);
    (void)pthread_mutex_destroy(&launch->lock);
    free(launch);
    return 0;
}

bool wic_launch_takes(const wic_launch *launch, const wic_transfer_plan *plan,
                      size_t argument_bytes)
{
    const wic_launch_options &o = launch->options;
    const uint32_t out = plan->results == WIC_PUSH_BULK ? plan->out_piece : 0;
    return plan->warps == o.warps && plan->in_piece + out <= o.stage_bytes &&
           plan->work_bytes <= o.work_bytes && argument_bytes <= o.argument_bytes;
}

void wic_launch_count(wic_launch *launch, uint64_t *out_launches, uint32_t *out_open)
{
    const locked hold(launch);
    *out_launches = launch->number;
    *out_open = launch->open;
}

const wic_shaped *wic_launch_shaped(const wic_launch *launch)
{
    return &launch->shape.shaped;
}

uint32_t wic_launch_blocks(const wic_launch *launch)
{
    return launch->options.blocks;
}

void wic_launch_limit(wic_launch *launch, uint32_t blocks, uint32_t work_bytes)
{
    const locked hold(launch);
    const wic_launch_options &o = launch->options;
    launch->limit = blocks < o.blocks ? blocks : o.blocks;
    const size_t work = lines(work_bytes);
    launch->work_bytes = work < o.work_bytes ? static_cast<uint32_t>(work) : o.work_bytes;
}

void wic_launch_share(wic_launch *launch, uint32_t share)
{
    const locked hold(launch);
    launch->share = share;
}

void wic_launch_beat(wic_launch *launch)
{
    __atomic_fetch_add(&launch->control->beat, 1, __ATOMIC_RELAXED);
}

int wic_launch_reserve(wic_launch *launch, wic_link *link)
{
    const locked hold(launch);
    uint32_t lane = 0;
    while (lane < WIC_LANES_MAX && launch->taken[lane]) {
        lane++;
    }
    if (lane == WIC_LANES_MAX) {
        return -ENOLCK;
    }
    launch->taken[lane] = true;
    link->lane = lane;
    link->has_lane = true;
    link->view.plan.depth = launch->options.depth;
    link->view.stage_bytes = launch->options.stage_bytes;
    return 0;
}

void wic_launch_release(wic_link *link)
{
    if (link->has_lane) {
        const locked hold(link->launch);
        link->launch->taken[link->lane] = false;
    }
}

int wic_launch_open(wic_link *link)
{
    wic_launch *const launch = link->launch;
    const locked hold(launch);
    int rc = have_kernel(launch, wic_link_now_ns() + static_cast<int64_t>(WIC_LINK_START_NS));
    if (rc < 0) {
        return rc;
    }
    const int joined = rc;
    rc = link->view.plan.work_bytes <= launch->lanes.base.plan.work_bytes
             ? queue_opening(launch, link)
             : -ENOLCK;
    if (rc == 0) {
        rc = wic_link_drain(link->stream, wic_link_now_ns() + copy_limit_ns);
        link->stuck = link->stuck || rc == -ETIMEDOUT;
    }
    if (rc != 0) {
        if (launch->open == 0) {
            (void)end_kernel(launch, wic_link_now_ns() + copy_limit_ns);
        }
        return rc;
    }
    launch->open++;
    link->launch_number = launch->number;
    return joined;
}

int wic_launch_running(wic_link *link)
{
    wic_launch *const launch = link->launch;
    if (link->launch_number != __atomic_load_n(&launch->number, __ATOMIC_ACQUIRE) ||
        wic_link_load(link->lane_left) == link->view.opening) {
        return 0;
    }
    return is_there(launch);
}

int wic_launch_part(wic_link *link, int64_t until_ns)
{
    wic_launch *const launch = link->launch;
    const locked hold(launch);
    const bool same = link->launch_number == launch->number;
    link->launch_number = 0;
    if (!same || !launch->resident || --launch->open > 0) {
        return 0;
    }
    return end_kernel(launch, until_ns);
}
