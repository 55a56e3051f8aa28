// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The same by NCCL's device API (2.28 or newer): stores through the pointers of a symmetric window,
// and its barrier of the GPUs that reach each other. Compiled where nccl_device.h is found, of the
// same version as libnccl.so.2, which is opened when the part runs.
#include "wic/peer/bench/bench.cuh"

#if __has_include(<nccl_device.h>)
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <nccl_device.h>
#include <thread>

namespace
{
constexpr uint32_t slots = 4, threads = 512;

// Each barrier is a word to and a word from the other GPU at once.
__global__ void __launch_bounds__(threads) meet(ncclDevComm comm, uint32_t rounds)
{
    ncclCoopCta all;
    ncclLsaBarrierSession<ncclCoopCta> barrier(all, comm, ncclTeamTagLsa(), blockIdx.x);
    for (uint32_t n = 0; n < rounds; n++) {
        barrier.sync(all, cuda::memory_order_acq_rel);
    }
}

// Rank 0 stores chunks into the window of rank 1, which checks them; they meet once for each turn
// of the ring, which is half full then.
__global__ void __launch_bounds__(threads)
    exchange(ncclDevComm comm, ncclWindow_t window, uint32_t vectors, uint32_t turns,
             unsigned long long *wrong)
{
    ncclCoopCta all;
    ncclLsaBarrierSession<ncclCoopCta> barrier(all, comm, ncclTeamTagLsa(), blockIdx.x);
    constexpr uint32_t half = slots / 2;
    const size_t ring = size_t(blockIdx.x) * slots * vectors * sizeof(uint4);
    const bool sends = comm.lsaRank == 0;
    uint4 *data = static_cast<uint4 *>(ncclGetLsaPointer(window, ring, 1));
    unsigned long long bad = 0;
    for (uint32_t turn = 0; turn <= turns; turn++) {
        const uint32_t of = sends ? turn : turn - 1; // half of the ring
        for (uint32_t i = threadIdx.x; i < half * vectors && of < turns; i += threads) {
            uint4 *at = data + (of % 2) * half * vectors + i;
            const uint64_t chunk = (uint64_t{of} * half + i / vectors) * gridDim.x + blockIdx.x;
            const uint4 right = peer_element(chunk, i % vectors);
            if (sends) {
                *at = right;
            } else {
                const uint4 got = __ldcg(at);
                bad += got.x != right.x || got.y != right.y || got.z != right.z || got.w != right.w;
            }
        }
        barrier.sync(all, cuda::memory_order_acq_rel);
    }
    if (bad > 0) {
        atomicAdd(wrong, bad);
    }
}

// NCCL's functions, and the two ranks of this process.
class ranks
{
  public:
    explicit ranks(const peer_options &o) : device{o.from, o.to}
    {
        setenv("NCCL_NVLS_ENABLE", "0", 1); // no multicast
        library_ = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!has()) {
            return;
        }
        is_open_ = both([&](int rank) { return open(rank); });
    }
    bool has() const
    {
        return library_ != nullptr && find<decltype(&ncclDevCommCreate)>("ncclDevCommCreate");
    }
    bool is_open() const
    {
        return is_open_;
    }
    // Calls of(rank) in a thread for each rank; true if all did.
    template <class Of> static bool both(Of of)
    {
        bool is_done[2] = {false, false};
        std::thread second([&] { is_done[1] = of(1); });
        is_done[0] = of(0);
        second.join();
        return is_done[0] && is_done[1];
    }
    // The window must hold a ring for each block.
    bool window(int rank, size_t bytes)
    {
        return cudaSetDevice(device[rank]) == cudaSuccess &&
               find<decltype(&ncclMemAlloc)>("ncclMemAlloc")(&memory[rank], bytes) == ncclSuccess &&
               find<decltype(&ncclCommWindowRegister)>("ncclCommWindowRegister")(
                   comm_[rank], memory[rank], bytes, &windows[rank], NCCL_WIN_COLL_SYMMETRIC) ==
                   ncclSuccess;
    }

    const int device[2];
    ncclDevComm on[2];
    ncclWindow_t windows[2] = {};
    void *memory[2] = {};

  private:
    template <class Call> Call find(const char *name) const
    {
        return reinterpret_cast<Call>(dlsym(library_, name));
    }
    bool open(int rank)
    {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
        ncclDevCommRequirements needs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
        ncclDevCommRequirements needs;
        memset(&needs, 0, sizeof needs);
#endif
        needs.lsaBarrierCount = 256;
        if (rank == 0) {
            find<decltype(&ncclGetUniqueId)>("ncclGetUniqueId")(&id_);
            is_named_.store(true);
        }
        while (!is_named_.load()) {
            std::this_thread::yield();
        }
        return cudaSetDevice(device[rank]) == cudaSuccess &&
               find<decltype(&ncclCommInitRank)>("ncclCommInitRank")(&comm_[rank], 2, id_, rank) ==
                   ncclSuccess &&
               find<decltype(&ncclDevCommCreate)>("ncclDevCommCreate")(comm_[rank], &needs,
                                                                       &on[rank]) == ncclSuccess;
    }

    void *library_ = nullptr; // stays open until the process ends
    ncclUniqueId id_ = {};
    std::atomic<bool> is_named_{false};
    ncclComm_t comm_[2] = {};
    bool is_open_ = false;
};

// Seconds of a launch on both GPUs, after one that warms up; < 0: it failed.
template <class Launch> double time_of(const ranks &r, Launch launch)
{
    cudaEvent_t begun, left;
    float ms = 0;
    PEER_MUST(cudaSetDevice(r.device[1]));
    PEER_MUST(cudaEventCreate(&begun));
    PEER_MUST(cudaEventCreate(&left));
    for (int turn = 0; turn < 2; turn++) {
        for (int rank = 1; rank >= 0; rank--) {
            PEER_MUST(cudaSetDevice(r.device[rank]));
            if (rank == 1) {
                PEER_MUST(cudaEventRecord(begun));
            }
            launch(rank);
            PEER_MUST(cudaGetLastError());
            if (rank == 1) {
                PEER_MUST(cudaEventRecord(left));
            }
        }
        PEER_MUST(cudaEventSynchronize(left));
    }
    PEER_MUST(cudaEventElapsedTime(&ms, begun, left));
    cudaEventDestroy(begun);
    cudaEventDestroy(left);
    return ms * 1e-3;
}

void chunks(const peer_options &o, ranks &r, peer_report *report)
{
    const uint32_t kib = 16, vectors = kib * 64, blocks = 132, turns = 1000;
    unsigned long long *wrong = nullptr, bad = 1;
    if (!ranks::both(
            [&](int rank) { return r.window(rank, size_t{blocks} * slots * kib * 1024); })) {
        report->line(false, "NCCL cannot make a window");
        return;
    }
    PEER_MUST(cudaSetDevice(r.device[1]));
    PEER_MUST(cudaMalloc(&wrong, sizeof *wrong));
    PEER_MUST(cudaMemset(wrong, 0, sizeof *wrong));
    const double seconds = time_of(r, [&](int rank) {
        exchange<<<blocks, threads>>>(r.on[rank], r.windows[rank], vectors, turns, wrong);
    });
    PEER_MUST(cudaMemcpy(&bad, wrong, sizeof bad, cudaMemcpyDefault));
    const double gb_s = double(blocks) * turns * (slots / 2) * kib * 1024 / seconds / 1e9;
    report->line(bad == 0, "%s, %3u KiB chunks, %-24s %6.1f GB/s", o.where(), kib,
                 "NCCL's device API", gb_s);
    report->row("{\"what\": \"rate\", \"who\": \"nccl-device\", \"kib\": %u, \"gb_s\": %.2f, "
                "\"checked\": true}",
                kib, gb_s);
}
} // namespace

void peer_nccl(const peer_options &o, peer_report *report)
{
    const uint32_t rounds = 20000;
    if (o.is_loopback()) {
        report->line(true, "NCCL's device API: not run: 1 GPU");
        return;
    }
    ranks r(o);
    if (!r.has()) {
        report->line(true, "NCCL's device API: not run: no NCCL");
        return;
    }
    if (!r.is_open()) {
        report->line(false, "NCCL's device API cannot be opened");
        return;
    }
    const double us =
        time_of(r, [&](int rank) { meet<<<1, threads>>>(r.on[rank], rounds); }) * 1e6 / rounds;
    report->line(true, "%s, barrier of NCCL's device API, a block of %u warps: %.3f us", o.where(),
                 threads / 32, us);
    report->row("{\"what\": \"hand-over\", \"who\": \"nccl-device\", \"warps\": %u, \"us\": %.4f}",
                threads / 32, us);
    chunks(o, r, report);
}
#else
void peer_nccl(const peer_options &, peer_report *report)
{
    report->line(true, "NCCL's device API: not run: no NCCL, or no nccl_device.h, in this build");
}
#endif
