// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures what a driver does with calls that links need while another kernel is resident.
#include "wic/device/barrier.cuh"
#include "wic/device/link_inside.h"
#include "wic/device/pause.h"

namespace
{
constexpr int64_t stay_ns = 1000000000, wait_ns = 5000000000;
constexpr size_t device_bytes = 1 << 20, pinned_bytes = 1 << 16;

// words: the kernel has started; it has to leave.
__global__ void stay(uint64_t *words)
{
    const uint64_t since = wic_now();
    wic_store_system(&words[0], 1);
    while (wic_load_system(&words[1]) == 0 && wic_now() - since < stay_ns) {
        __nanosleep(WIC_SUSPEND_NS);
    }
}

struct probe {
    uint64_t *words; // pinned
    void *device, *pinned;
    cudaStream_t stream, other;
    cudaEvent_t left;
};

cudaError_t start(probe *p)
{
    void *words = nullptr, *seen = nullptr;
    cudaError_t error = cudaHostAlloc(&words, 2 * sizeof(uint64_t), cudaHostAllocMapped);
    p->words = static_cast<uint64_t *>(words);
    error = error ? error : wic_device_pointer(words, &seen);
    error = error ? error : cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking);
    error = error ? error : cudaEventCreateWithFlags(&p->left, cudaEventDisableTiming);
    if (error) {
        return error;
    }
    p->words[0] = p->words[1] = 0;
    stay<<<1, 1, 0, p->stream>>>(static_cast<uint64_t *>(seen));
    error = cudaGetLastError();
    return error ? error : cudaEventRecord(p->left, p->stream);
}

cudaError_t call(probe *p)
{
    cudaError_t error = cudaMalloc(&p->device, device_bytes);
    error = error ? error : cudaHostAlloc(&p->pinned, pinned_bytes, cudaHostAllocMapped);
    return error ? error : cudaStreamCreateWithFlags(&p->other, cudaStreamNonBlocking);
}

void free_probe(const probe &p)
{
    cudaFree(p.device);
    cudaFreeHost(p.pinned);
    if (p.other) {
        cudaStreamDestroy(p.other);
    }
    if (p.stream) {
        cudaStreamDestroy(p.stream);
    }
    if (p.left) {
        cudaEventDestroy(p.left);
    }
    cudaFreeHost(p.words);
}

// Until the kernel has started, at most wait_ns.
int wait_for_kernel(const probe &p)
{
    const int64_t until = wic_link_now_ns() + wait_ns;
    while (wic_link_load(&p.words[0]) == 0) {
        if (wic_link_now_ns() > until) {
            return -EBUSY;
        }
    }
    return 0;
}
} // namespace

int wic_gpu_calls_wait()
{
    probe p = {};
    int rc = wic_may_launch();
    rc = rc ? rc : wic_cuda_errno(start(&p));
    const bool started = rc == 0;
    rc = rc ? rc : wait_for_kernel(p);
    rc = rc ? rc : wic_cuda_errno(call(&p));
    if (rc == 0) {
        rc = cudaEventQuery(p.left) == cudaErrorNotReady ? 0 : 1;
        (void)cudaGetLastError();
    }
    if (started) {
        wic_link_store(&p.words[1], 1);
        const int left = wic_link_drain(p.stream, wic_link_now_ns() + wait_ns);
        if (left != 0) {
            return left; // the kernel may still use its words: nothing is freed
        }
    }
    free_probe(p);
    return rc;
}
