// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory, launch and end of the kernels of a wic_peer, and the proof that their blocks are resident
// together. The words of a party are one allocation, which each start clears. Rings are cleared if
// they are polled, as those of letters are.
#include "wic/device/link_inside.h"
#include "wic/device/stay.h"
#include "wic/peer/peer_inside.h"

#include <cstring>
#include <ctime>
#include <new>
#include <vector>

namespace
{
constexpr int64_t destroy_limit_ns = 1000000000;

// Restores the current device of the thread.
class device_scope
{
  public:
    device_scope()
    {
        is_known_ = cudaGetDevice(&device_) == cudaSuccess;
    }
    ~device_scope()
    {
        if (is_known_) {
            (void)cudaSetDevice(device_);
        }
    }

  private:
    int device_ = 0;
    bool is_known_;
};

struct side {
    int device = 0;
    const void *kernel = nullptr, *argument = nullptr;
    size_t shared_bytes = 0;
    wic_peer_view view = {};
    cudaStream_t stream = nullptr;
    cudaEvent_t begun = nullptr, left = nullptr;
    bool is_launched = false;
    unsigned char *words = nullptr; // cleared by each start
    size_t words_bytes = 0;
    wic_step *steps = nullptr;
    std::vector<unsigned char *> rings;
};
} // namespace

struct wic_peer {
    std::vector<side> sides;
    wic_peer_plan plan = {};
    unsigned char *pinned = nullptr; // the control, and a report for each party

    wic_peer_control *control() const
    {
        return reinterpret_cast<wic_peer_control *>(pinned);
    }
    wic_peer_report *report(size_t party) const
    {
        return reinterpret_cast<wic_peer_report *>(pinned + (1 + party) * WIC_PEER_LINE);
    }
};

namespace
{
int refuse(cudaError_t error, const char *what)
{
    return wic_cuda_refuse(error, what);
}

int take(int device, size_t bytes, unsigned char **out)
{
    void *memory = nullptr;
    const int rc = refuse(cudaSetDevice(device), "the GPU cannot be used");
    if (rc != 0) {
        return rc;
    }
    const cudaError_t error = cudaMalloc(&memory, bytes);
    *out = static_cast<unsigned char *>(memory);
    return refuse(error, "no memory on the GPU for the channels");
}

// Each party's words: stop, the counters of blocks, then a line a lane of each way.
size_t words_bytes(const wic_peer &peer, const wic_peer_ways &ways, size_t party)
{
    size_t count = 0;
    for (size_t other = 0; other < peer.sides.size(); other++) {
        count += ways.is_used[party][other] + ways.is_used[other][party];
    }
    return 2 * WIC_PEER_LINE + count * wic_peer_words_bytes(&peer.plan);
}

int allocate_words(wic_peer *peer, const wic_peer_ways &ways)
{
    for (size_t party = 0; party < peer->sides.size(); party++) {
        side &s = peer->sides[party];
        s.words_bytes = words_bytes(*peer, ways, party);
        const int rc = take(s.device, s.words_bytes, &s.words);
        if (rc != 0) {
            return rc;
        }
        s.view.started = reinterpret_cast<uint32_t *>(s.words + WIC_PEER_LINE);
        s.view.ended = s.view.started + 1;
        for (side &other : peer->sides) {
            other.view.stop[party] = reinterpret_cast<uint64_t *>(s.words);
        }
    }
    return 0;
}

// The ring, ready words and credits of each way, in the views of both parties.
int allocate_ways(wic_peer *peer, const wic_peer_ways &ways)
{
    std::vector<size_t> used(peer->sides.size(), 2 * WIC_PEER_LINE);
    const auto words = [&](size_t party) {
        unsigned char *at = peer->sides[party].words + used[party];
        used[party] += wic_peer_words_bytes(&peer->plan);
        return reinterpret_cast<uint64_t *>(at);
    };
    for (size_t from = 0; from < peer->sides.size(); from++) {
        for (size_t to = 0; to < peer->sides.size(); to++) {
            if (!ways.is_used[from][to]) {
                continue;
            }
            wic_peer_way way = {nullptr, words(to), words(from)};
            side &owner = peer->sides[peer->plan.transport == WIC_PEER_PULL ? from : to];
            const size_t bytes = wic_peer_ring_bytes(&peer->plan);
            const int rc = bytes == 0 ? 0 : take(owner.device, bytes, &way.data);
            if (rc != 0) {
                return rc;
            }
            owner.rings.push_back(way.data);
            peer->sides[from].view.out[to] = way;
            peer->sides[to].view.in[from] = way;
        }
    }
    return 0;
}

int make_side(const wic_peer_options &o, side *s)
{
    const size_t bytes = o.step_count * sizeof(wic_step);
    unsigned char *steps = nullptr;
    int rc = take(s->device, bytes, &steps);
    s->steps = reinterpret_cast<wic_step *>(steps);
    s->view.steps = s->steps;
    if (rc == 0) {
        rc = refuse(cudaMemcpy(steps, o.steps, bytes, cudaMemcpyHostToDevice),
                    "the steps cannot be copied to the GPU");
    }
    if (rc == 0) {
        rc = refuse(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking),
                    "no stream can be made");
    }
    for (cudaEvent_t *event : {&s->begun, &s->left}) {
        rc = rc != 0 ? rc : refuse(cudaEventCreate(event), "no event can be made");
    }
    return rc;
}

// A block takes so much shared memory that plan.each of any party's blocks fill a multiprocessor:
// with any blocks on it, another one has room or plan.each are there. Therefore all blocks fit
// together if there are no more of them.
int prove_residency(const wic_peer &peer, side *s)
{
    int processors = 0, all = 0, most = 0, limited = 0, each = 0;
    uint32_t blocks = 0;
    const wic_peer_plan &plan = peer.plan;
    const struct {
        cudaDeviceAttr name;
        int *value;
    } read[] = {{cudaDevAttrMultiProcessorCount, &processors},
                {cudaDevAttrMaxSharedMemoryPerMultiprocessor, &all},
                {cudaDevAttrMaxSharedMemoryPerBlockOptin, &most},
                {cudaDevAttrKernelExecTimeout, &limited}};
    cudaFuncAttributes kernel = {};
    cudaError_t error = cudaSetDevice(s->device);
    for (const auto &attribute : read) {
        error = error ? error : cudaDeviceGetAttribute(attribute.value, attribute.name, s->device);
    }
    error = error ? error : cudaFuncGetAttributes(&kernel, s->kernel);
    if (error) {
        return refuse(error, "the kernel cannot be examined");
    }
    for (const side &other : peer.sides) {
        blocks += other.device == s->device ? plan.lanes : 0;
    }
    s->shared_bytes = static_cast<uint32_t>(all) / (plan.each + 1) / 1024 * 1024 + 1024;
    s->shared_bytes = std::max(s->shared_bytes, wic_peer_shared_bytes(&plan));
    wic_stay stay = {limited != 0,
                     static_cast<uint32_t>(processors),
                     static_cast<uint32_t>(most),
                     static_cast<uint32_t>(kernel.maxThreadsPerBlock),
                     static_cast<uint32_t>(kernel.sharedSizeBytes),
                     blocks,
                     wic_peer_threads(&plan),
                     s->shared_bytes,
                     UINT32_MAX};
    const int rc = wic_stay_check(&stay);
    if (rc != 0) {
        return rc;
    }
    const int bytes = static_cast<int>(s->shared_bytes);
    if (bytes > kernel.maxDynamicSharedSizeBytes) {
        error = cudaFuncSetAttribute(s->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    }
    if (!error) { // one division of the multiprocessor's memory for all parties
        error = cudaFuncSetAttribute(s->kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    }
    if (!error) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &each, s->kernel, static_cast<int>(stay.threads), s->shared_bytes);
    }
    if (error) {
        return refuse(error, "the kernel cannot be examined");
    }
    if (each > 0 && static_cast<uint32_t>(each) != plan.each) {
        return wic_stay_refuse(-ENOSPC,
                               "%d blocks of the kernel fit on a multiprocessor and the plan has "
                               "%u: choose another number of blocks, or fewer registers",
                               each, plan.each);
    }
    stay.blocks_each = static_cast<uint32_t>(each);
    return wic_stay_check(&stay);
}

int fill(wic_peer *peer, const wic_peer_options &o, const wic_peer_ways &ways)
{
    int devices[WIC_PARTIES_MAX];
    void *pinned = nullptr;
    for (uint32_t i = 0; i < o.parties; i++) {
        devices[i] = o.party[i].device;
    }
    int rc = wic_peer_access(devices, o.parties);
    for (uint32_t i = 0; i < o.parties && rc == 0; i++) {
        rc = prove_residency(*peer, &peer->sides[i]);
    }
    if (rc == 0) {
        rc = refuse(cudaHostAlloc(&pinned, (1 + o.parties) * WIC_PEER_LINE,
                                  cudaHostAllocMapped | cudaHostAllocPortable),
                    "no pinned memory");
    }
    if (rc != 0) {
        return rc;
    }
    peer->pinned = static_cast<unsigned char *>(pinned);
    memset(pinned, 0, (1 + o.parties) * WIC_PEER_LINE);
    rc = allocate_words(peer, ways);
    rc = rc != 0 ? rc : allocate_ways(peer, ways);
    for (uint32_t i = 0; i < o.parties && rc == 0; i++) {
        rc = make_side(o, &peer->sides[i]);
    }
    return rc;
}

void describe(const wic_peer_options &o, wic_peer *peer)
{
    peer->plan = o.plan;
    for (uint32_t i = 0; i < o.parties; i++) {
        side s;
        s.device = o.party[i].device;
        s.kernel = o.party[i].kernel;
        s.argument = o.party[i].argument;
        s.view.party = i;
        s.view.parties = o.parties;
        s.view.plan = o.plan;
        s.view.step_count = o.step_count;
        s.view.limit_ns = o.limit_ns ? o.limit_ns : WIC_PEER_LIMIT_NS;
        s.view.beat_ns = o.beat_ns ? o.beat_ns : WIC_PEER_BEAT_NS;
        for (uint32_t other = 0; other < o.parties; other++) {
            s.view.near |= (o.party[other].device == s.device ? 1u : 0u) << other;
        }
        peer->sides.push_back(s);
    }
}

void release(wic_peer *peer)
{
    for (side &s : peer->sides) {
        (void)cudaSetDevice(s.device);
        for (unsigned char *ring : s.rings) {
            (void)cudaFree(ring);
        }
        (void)cudaFree(s.words);
        (void)cudaFree(s.steps);
        for (cudaEvent_t event : {s.begun, s.left}) {
            if (event) {
                (void)cudaEventDestroy(event);
            }
        }
        if (s.stream) {
            (void)cudaStreamDestroy(s.stream);
        }
    }
    (void)cudaFreeHost(peer->pinned);
    (void)cudaGetLastError();
    delete peer;
}

int clear(wic_peer *peer)
{
    memset(peer->pinned + WIC_PEER_LINE, 0, peer->sides.size() * WIC_PEER_LINE);
    wic_link_store(&peer->control()->stop, 0);
    for (side &s : peer->sides) {
        cudaError_t error = cudaSetDevice(s.device);
        error = error ? error : cudaMemsetAsync(s.words, 0, s.words_bytes, s.stream);
        for (unsigned char *ring : s.rings) {
            if (peer->plan.transport == WIC_PEER_LETTERS && ring != nullptr) {
                error = error
                            ? error
                            : cudaMemsetAsync(ring, 0, wic_peer_ring_bytes(&peer->plan), s.stream);
            }
        }
        error = error ? error : cudaStreamSynchronize(s.stream);
        if (error) {
            return refuse(error, "the words of the channels cannot be cleared");
        }
    }
    return 0;
}

int launch(wic_peer *peer, side *s)
{
    void *arguments[] = {&s->view, const_cast<void *>(s->argument)};
    cudaError_t error = cudaSetDevice(s->device);
    error = error ? error : cudaEventRecord(s->begun, s->stream);
    error = error ? error
                  : cudaLaunchKernel(s->kernel, dim3(peer->plan.lanes),
                                     dim3(wic_peer_threads(&peer->plan)), arguments,
                                     s->shared_bytes, s->stream);
    s->is_launched = error == cudaSuccess;
    error = error ? error : cudaEventRecord(s->left, s->stream);
    return refuse(error, "the kernel cannot be launched");
}

void beat(const wic_peer *peer)
{
    uint64_t *word = &peer->control()->beat;
    wic_link_store(word, wic_link_load(word) + 1);
}

// 1: a kernel is there; 0; -EIO.
int is_running(const wic_peer *peer)
{
    int running = 0;
    for (const side &s : peer->sides) {
        const cudaError_t error = s.is_launched ? cudaStreamQuery(s.stream) : cudaSuccess;
        if (error != cudaSuccess && error != cudaErrorNotReady) {
            return refuse(error, "a kernel failed");
        }
        running |= error == cudaErrorNotReady;
    }
    return running;
}

bool has_started(const wic_peer *peer)
{
    for (size_t i = 0; i < peer->sides.size(); i++) {
        if (wic_link_load(&peer->report(i)->started) == 0) {
            return false;
        }
    }
    return true;
}
} // namespace

int wic_peer_access(const int *devices, uint32_t count)
{
    const device_scope scope;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            int can = 0;
            if (devices[i] == devices[k]) {
                continue;
            }
            cudaError_t error = cudaDeviceCanAccessPeer(&can, devices[i], devices[k]);
            if (error == cudaSuccess && !can) {
                return wic_stay_refuse(-EOPNOTSUPP, "GPU %d cannot access the memory of GPU %d",
                                       devices[i], devices[k]);
            }
            error = error ? error : cudaSetDevice(devices[i]);
            error = error ? error : cudaDeviceEnablePeerAccess(devices[k], 0);
            if (error == cudaErrorPeerAccessAlreadyEnabled) {
                error = cudaSuccess;
                (void)cudaGetLastError();
            }
            if (error) {
                return refuse(error, "a GPU cannot access the memory of another");
            }
        }
    }
    return 0;
}

int wic_peer_plan_choose(int device, uint32_t parties, uint32_t chunk_bytes,
                         wic_peer_transport transport, wic_peer_plan *out_plan)
{
    int processors = 0;
    const int rc =
        refuse(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
               "the GPU cannot be read");
    return rc != 0 ? rc
                   : wic_peer_plan_make(static_cast<uint32_t>(processors), parties, chunk_bytes,
                                        transport, out_plan);
}

int wic_peer_create(const wic_peer_options *options, wic_peer **out_peer)
{
    wic_peer_ways ways;
    const device_scope scope;
    wic_stay_forget();
    int rc = wic_peer_check(options, &ways);
    rc = rc != 0 ? rc : wic_may_launch();
    if (rc != 0) {
        return rc;
    }
    wic_peer *peer = new (std::nothrow) wic_peer;
    if (!peer) {
        return -ENOMEM;
    }
    describe(*options, peer);
    rc = fill(peer, *options, ways);
    if (rc != 0) {
        release(peer);
        return rc;
    }
    for (size_t i = 0; i < peer->sides.size(); i++) {
        peer->sides[i].view.control = peer->control();
        peer->sides[i].view.report = peer->report(i);
    }
    *out_peer = peer;
    return 0;
}

int wic_peer_start(wic_peer *peer)
{
    const device_scope scope;
    int rc = is_running(peer) == 1 ? -EBUSY : clear(peer);
    for (size_t i = 0; i < peer->sides.size() && rc == 0; i++) {
        rc = launch(peer, &peer->sides[i]);
    }
    const int64_t until = wic_link_now_ns() + static_cast<int64_t>(WIC_PEER_START_NS);
    while (rc == 0 && !has_started(peer)) {
        beat(peer);
        rc = std::min(is_running(peer), 0);
        // The words are read again after the limit, because this process may have been suspended.
        if (rc == 0 && wic_link_now_ns() > until && !has_started(peer)) {
            rc = wic_stay_refuse(-EBUSY, "there was no room on the GPUs for all blocks");
        }
    }
    if (rc != 0) {
        wic_peer_stop(peer);
    }
    return rc;
}

int wic_peer_join(wic_peer *peer, int64_t timeout_ns)
{
    const int64_t until = wic_link_now_ns() + timeout_ns;
    const timespec nap = {0, 20000};
    int running = 0;
    while ((running = is_running(peer)) == 1) {
        beat(peer);
        if (wic_link_now_ns() > until) {
            return wic_stay_refuse(-ETIMEDOUT, "a kernel is still there");
        }
        nanosleep(&nap, nullptr);
    }
    if (running < 0) {
        wic_peer_stop(peer);
        return running;
    }
    for (size_t i = 0; i < peer->sides.size(); i++) {
        const wic_peer_end end = wic_peer_left(peer, static_cast<uint32_t>(i));
        if (end != WIC_PEER_ENDED) {
            return wic_stay_refuse(-ECANCELED, "party %zu: %s", i, wic_peer_end_text(end));
        }
    }
    return 0;
}

void wic_peer_stop(wic_peer *peer)
{
    wic_link_store(&peer->control()->stop, 1);
}

wic_peer_end wic_peer_left(const wic_peer *peer, uint32_t party)
{
    return static_cast<wic_peer_end>(wic_link_load(&peer->report(party)->end));
}

int wic_peer_seconds(const wic_peer *peer, uint32_t party, double *out_seconds)
{
    float ms = 0;
    const side &s = peer->sides[party];
    const int rc = refuse(cudaEventElapsedTime(&ms, s.begun, s.left), "a kernel has no time");
    *out_seconds = ms * 1e-3;
    return rc;
}

const wic_peer_view *wic_peer_view_of(const wic_peer *peer, uint32_t party)
{
    return &peer->sides[party].view;
}

int wic_peer_destroy(wic_peer *peer)
{
    if (!peer) {
        return 0;
    }
    const device_scope scope;
    wic_peer_stop(peer);
    if (wic_peer_join(peer, destroy_limit_ns) == -ETIMEDOUT) {
        return -ETIMEDOUT;
    }
    release(peer);
    return 0;
}
