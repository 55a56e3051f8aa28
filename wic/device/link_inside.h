/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_LINK_INSIDE_H
#define WIC_LINK_INSIDE_H
/* Inside of a link, for backend_*.cu alone. One block of pinned memory holds control, started,
 * done, doorbell, what copies back write and the tiles' user bytes, each on cache lines of its own,
 * as different sides write them; one of device memory holds state, ready board and the counters. */
#include "wic/device/cuda_errno.h"
#include "wic/device/launch.h"
#include "wic/device/share.h"
#include "wic/device/way.h"

#include <cuda.h>

constexpr size_t wic_link_line = 128;
static_assert(sizeof(wic_link_state) <= wic_link_line, "a report lands on one line");

// A run of tiles that one copy takes over the link.
struct wic_batch {
    uint64_t first, end; // tiles
    uint32_t lane;
};

// The copies of one direction, in the order of the tiles.
struct wic_copies {
    cudaStream_t stream[WIC_LINK_LANES];
    uint64_t *landed; // written by the streams, by lane: the end of the lane's last batch; as the
                      // device sees it
    wic_batch batch[WIC_BATCHES_MAX];
    uint32_t oldest, count; // batches under way
    size_t batch_most;      // of a batch
    uint32_t lane;          // of the next batch
    uint64_t next;          // the first tile that no batch has taken, nor needs to
    uint64_t ready;         // the tile after the last that a batch may take
    size_t ready_bytes;     // of the tiles in between
    uint64_t arrived;       // of `back`: before this tile, all results are in the host's slots
};

// A posted tile, by ring entry.
struct wic_posted {
    size_t bytes, out_bytes;
    uint32_t size; // units and their bytes: of the doorbell's low word
    bool engine;   // goes by copy engine
};

// The blocks of a kernel that have to be resident together.
struct wic_residency {
    const void *kernel;
    unsigned blocks, threads;
    size_t shared_bytes;
};

// How a kernel shares the GPU (wic/device/share.h).
struct wic_shape {
    wic_share share;
    wic_part *part, *own; // NULL: none; own: the same, to be destroyed with the kernel
    wic_shaped shaped;    // once the kernel's residency is proven
};

struct wic_link {
    wic_view view;
    int gpu;
    wic_launch *launch; // NULL: a kernel of its own, and the next two are used
    uint32_t lane;
    bool has_lane;
    uint64_t launch_number;   // of the kernel in which its lane was opened last; 0: it is not open
    unsigned char *described; // pinned: view and argument on their way to the launch
    size_t argument_bytes;
    uint64_t *lane_left; // pinned, of the view
    const void *kernel, *argument;
    uint32_t blocks, pulls; // of the plan; view.plan has those of a launch
    unsigned threads;
    size_t shared_bytes;
    wic_shape shape;
    cudaStream_t stream; // of the kernel
    cudaEvent_t left;
    bool stuck;                // work on the device did not end within its time limit
    int failure;               // of a copy, a negative errno
    wic_link_control *control; // pinned, and the words behind it
    wic_link_state *landing;   // where a report arrives
    uint64_t *started, *done, *doorbell;
    uint64_t *back_landed; // of `back`, as the host sees it
    unsigned char *user;
    unsigned char *device; // the device's block
    size_t device_bytes;
    unsigned char *image; // pinned: the device's block at the start of a kernel
    unsigned char *in;    // as the host sees them
    unsigned char *out;
    bool pinned_in, pinned_out; // by us
    decltype(&cuStreamWriteValue64) write_value;
    wic_copies to, back;
    wic_posted *posted;  // by ring entry
    uint64_t posted_end; // the tile after the last that was posted
    uint64_t finished;   // the first tile that is not done
    size_t backlog;      // input bytes of the tiles in between
    wic_way way;         // of the tile that is posted next
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

inline wic_posted &wic_link_posted(wic_link *link, uint64_t tile)
{
    return link->posted[tile & link->view.ring_mask];
}

inline uint64_t wic_link_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

// backend_life.cu. Waits until a stream is idle, at most until that time of CLOCK_MONOTONIC. 0,
// -ETIMEDOUT, -EIO.
int wic_link_drain(cudaStream_t stream, int64_t until_ns);
int64_t wic_link_now_ns();

// 0, or as wic_link_create. Reduces the blocks, and increases the shared memory of each, by the
// shape, and lets the kernel have that much shared memory.
int wic_prove_residency(int gpu, wic_residency *wanted, wic_shape *shape);
// The errno of a CUDA error, 0 for none; sets the sentence of wic_link_why to `what` and CUDA's
// words.
int wic_cuda_refuse(cudaError_t error, const char *what);
// Of WIC_SHARE_WHOLE, but at least one.
uint32_t wic_share_of(uint32_t all, uint32_t share);
// -EOPNOTSUPP where CUDA_LAUNCH_BLOCKING is set: a launch that returns only after the kernel's end
// would never return, as the caller has to end the kernel.
int wic_may_launch();

// backend_share.cu. Makes the part of a kernel of this many blocks if it is to have one; 0 also if
// the driver cannot. End it in any case, after its streams.
int wic_shape_begin(const wic_share &share, uint32_t blocks, wic_shape *out);
void wic_shape_end(wic_shape *shape);
// The stream of the kernel.
int wic_shape_stream(const wic_shape &shape, cudaStream_t *out);

// backend_launch.cu. The lane of a link. Reserves it, and makes the link's view one of the launch's
// blocks.
int wic_launch_reserve(wic_launch *launch, wic_link *link);
void wic_launch_release(wic_link *link);
// Opens it; launches the kernel if it is not there. 0: it was launched, 1: it was there; errors as
// wic_link_start. What is to be on the device before is in the link's stream.
int wic_launch_open(wic_link *link);
// Whether the lane is open: 1, 0, -EIO.
int wic_launch_running(wic_link *link);
// Once it is not: with the last lane, the kernel leaves. 0, -ETIMEDOUT, -EIO.
int wic_launch_part(wic_link *link, int64_t until_ns);
// At most.
uint32_t wic_launch_blocks(const wic_launch *launch);
const wic_shaped *wic_launch_shaped(const wic_launch *launch);
void wic_launch_share(wic_launch *launch, uint32_t share);
void wic_launch_beat(wic_launch *launch);

// backend_engine.cu. Copies in batches; does nothing where nothing is to be done. Errors go to
// link->failure.
void wic_engine_send(wic_link *link);
void wic_engine_bring_back(wic_link *link);
void wic_engine_reset(wic_link *link);

// backend_memory.cu. After a failure the caller calls wic_link_free, once no work of the link is
// queued or running on the device.
int wic_link_allocate(wic_link *link, const wic_link_options *options);
void wic_link_free(wic_link *link);
// The driver's function that has a stream write a word. -EOPNOTSUPP.
int wic_find_write_value(decltype(&cuStreamWriteValue64) *out);
// The device pointer of a buffer of the host.
cudaError_t wic_device_pointer(void *host, void **out_device);
#endif
