// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A part of a GPU's multiprocessors: a green context of the driver. Streams are all that is made in
// it: a kernel that the runtime launches into one of them runs on the part, while the thread's
// current context stays the primary one, whose memory and events it uses. The rest of the GPU is a
// second green context, made with its first stream.
#include "wic/device/link_inside.h"
#include "wic/device/stay.h"

#include <cstdio>
#include <cstdlib>

namespace
{
struct green_calls {
    decltype(&cuDeviceGet) device;
    decltype(&cuDeviceGetDevResource) resource;
    decltype(&cuDevSmResourceSplitByCount) split;
    decltype(&cuDevResourceGenerateDesc) describe;
    decltype(&cuGreenCtxCreate) create;
    decltype(&cuGreenCtxDestroy) destroy;
    decltype(&cuGreenCtxStreamCreate) stream;
};

constexpr unsigned part_driver = 12040, stream_driver = 12050;

int no_parts()
{
    return wic_stay_refuse(-EOPNOTSUPP, "the NVIDIA driver has no green contexts, which CUDA 12.5 "
                                        "brought: update it");
}

template <class Call> bool find(const char *name, unsigned version, Call *out)
{
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found);
    (void)cudaGetLastError();
    *out = reinterpret_cast<Call>(entry);
    return !error && found == cudaDriverEntryPointSuccess && entry;
}

int find_calls(green_calls *c)
{
    const bool all = find("cuDeviceGet", 2000, &c->device) &&
                     find("cuDeviceGetDevResource", part_driver, &c->resource) &&
                     find("cuDevSmResourceSplitByCount", part_driver, &c->split) &&
                     find("cuDevResourceGenerateDesc", part_driver, &c->describe) &&
                     find("cuGreenCtxCreate", part_driver, &c->create) &&
                     find("cuGreenCtxDestroy", part_driver, &c->destroy) &&
                     find("cuGreenCtxStreamCreate", stream_driver, &c->stream);
    return all ? 0 : no_parts();
}

int refuse(CUresult result, const char *what)
{
    return result == CUDA_SUCCESS               ? 0
           : result == CUDA_ERROR_NOT_SUPPORTED ? no_parts()
           : result == CUDA_ERROR_OUT_OF_MEMORY
               ? wic_stay_refuse(-ENOMEM, "%s: no memory", what)
               : wic_stay_refuse(-EIO, "%s: error %d of the driver", what, result);
}
} // namespace

struct wic_part {
    green_calls calls;
    CUdevice device;
    CUdevResource own, rest;
    CUgreenCtx contexts[2]; // their contexts; NULL: not made yet
};

namespace
{
// Kernels here have no clusters, therefore multiprocessors are taken one by one, which drivers
// before 12.8 may not know.
CUresult split_off(wic_part *part, const CUdevResource *all, unsigned wanted)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    for (const unsigned flags : {unsigned{CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING}, 0u}) {
        unsigned groups = 1;
        if (result == CUDA_ERROR_INVALID_VALUE) {
            result = part->calls.split(&part->own, &groups, all, &part->rest, flags, wanted);
        }
        if (result == CUDA_SUCCESS && groups != 1) {
            result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        }
    }
    return result;
}

// The driver rounds counts up: counts down until it has no more than was wanted.
int take(wic_part *part, unsigned wanted)
{
    CUdevResource all = {};
    int rc = refuse(part->calls.resource(part->device, &all, CU_DEV_RESOURCE_TYPE_SM),
                    "the multiprocessors of the GPU cannot be listed");
    if (rc == 0 && (wanted == 0 || wanted >= all.sm.smCount)) {
        return wic_stay_refuse(-EINVAL,
                               "a part of the GPU's %u multiprocessors has 1 to %u of "
                               "them, not %u",
                               all.sm.smCount, all.sm.smCount - 1, wanted);
    }
    for (unsigned count = wanted; rc == 0 && count > 0; count--) {
        rc = refuse(split_off(part, &all, count), "the multiprocessors cannot be divided");
        if (rc == 0 && part->own.sm.smCount <= wanted) {
            break;
        }
    }
    return rc;
}

int have_context(wic_part *part, bool rest)
{
    CUgreenCtx *const context = &part->contexts[rest];
    CUdevResource *const resource = rest ? &part->rest : &part->own;
    if (*context) {
        return 0;
    }
    if (resource->type != CU_DEV_RESOURCE_TYPE_SM || resource->sm.smCount == 0) {
        return wic_stay_refuse(-EOPNOTSUPP, "the part leaves no rest of the GPU");
    }
    CUdevResourceDesc desc = nullptr;
    int rc = refuse(part->calls.describe(&desc, resource, 1), "a part cannot be described");
    return rc ? rc
              : refuse(part->calls.create(context, desc, part->device, CU_GREEN_CTX_DEFAULT_STREAM),
                       "a green context cannot be made");
}
} // namespace

int wic_part_create(uint32_t multiprocessors, wic_part **out_part)
{
    wic_stay_forget();
    wic_part *part = static_cast<wic_part *>(calloc(1, sizeof *part));
    if (!part) {
        return wic_stay_refuse(-ENOMEM, "no memory for a part of the GPU");
    }
    int gpu = 0;
    // A driver is loaded, and the primary context made, by this call.
    int rc = wic_cuda_refuse(cudaFree(nullptr), "the GPU cannot be used");
    rc = rc ? rc : wic_cuda_refuse(cudaGetDevice(&gpu), "there is no current GPU");
    rc = rc ? rc : find_calls(&part->calls);
    rc = rc ? rc : refuse(part->calls.device(&part->device, gpu), "the GPU cannot be used");
    rc = rc ? rc : take(part, multiprocessors);
    rc = rc ? rc : have_context(part, false);
    if (rc != 0) {
        wic_part_destroy(part);
        return rc;
    }
    *out_part = part;
    return 0;
}

void wic_part_destroy(wic_part *part)
{
    if (!part) {
        return;
    }
    for (CUgreenCtx context : part->contexts) {
        if (context) {
            (void)part->calls.destroy(context);
        }
    }
    free(part);
}

uint32_t wic_part_multiprocessors(const wic_part *part)
{
    return part->own.sm.smCount;
}

int wic_part_stream(wic_part *part, bool rest, int priority, CUstream_st **out_stream)
{
    const int rc = have_context(part, rest);
    return rc ? rc
              : refuse(part->calls.stream(out_stream, part->contexts[rest], CU_STREAM_NON_BLOCKING,
                                          priority),
                       "a stream of a part cannot be made");
}

int wic_shape_begin(const wic_share &share, uint32_t blocks, wic_shape *out)
{
    *out = {};
    out->share = share;
    if (share.way != WIC_SHARE_GREEN || share.part) {
        out->part = share.way == WIC_SHARE_GREEN ? share.part : nullptr;
        return 0;
    }
    const uint32_t wanted = share.multiprocessors > 0 ? share.multiprocessors : blocks;
    const int rc = wic_part_create(wanted, &out->own);
    out->part = out->own;
    if (rc == -EOPNOTSUPP) {
        snprintf(out->shaped.why, sizeof out->shaped.why, "%s", wic_link_why());
        wic_stay_forget();
        return 0;
    }
    return rc;
}

void wic_shape_end(wic_shape *shape)
{
    wic_part_destroy(shape->own);
    shape->own = nullptr;
}

int wic_shape_stream(const wic_shape &shape, cudaStream_t *out)
{
    int least = 0, most = 0;
    int rc = wic_cuda_refuse(cudaDeviceGetStreamPriorityRange(&least, &most),
                             "the priorities of streams cannot be read");
    if (rc != 0) {
        return rc;
    }
    if (shape.part) {
        return wic_part_stream(shape.part, false, most, out);
    }
    const int priority = shape.shaped.way == WIC_SHARE_UNSHAPED ? least : most;
    return wic_cuda_refuse(cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, priority),
                           "a stream cannot be made");
}
