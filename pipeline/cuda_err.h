/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CUDA_ERR_H
#define PB_CUDA_ERR_H
/* CUDA runtime codes in the words of the pipeline. CUDA builds only. */
#include "config/err.h"

#include <cuda_runtime_api.h>

/* 0 for cudaSuccess; else fills *err (memory, device.missing, device.lost or device.failed, with
 * CUDA's own words and `what` was being done) and returns its negative errno. device.lost: the CUDA
 * context is unusable, nothing on a GPU works in this process any more; device.failed: this did not
 * work, the context is whole. */
int pb_cuda_err(struct pb_err *err, cudaError_t rc, const char *what);
/* device.missing when the device cannot share managed memory with a running host. */
int pb_cuda_check_managed(int device, struct pb_err *err);
/* The same for a negative errno out of kernels/ or wic/. */
int pb_cuda_rc(struct pb_err *err, int rc, const char *what);
#endif
