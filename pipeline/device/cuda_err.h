/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CUDA_ERR_H
#define PB_CUDA_ERR_H
/* Converts CUDA runtime codes to errors of the pipeline. CUDA builds only. */
#include "config/base/err.h"

#include <cuda_runtime_api.h>
#include <stddef.h>

/* Returns 0 for cudaSuccess; else fills *err (device.busy for a lack of memory, device.missing,
 * device.lost or device.failed, with CUDA's message and the operation `what`) and returns its
 * negative errno. device.lost: the CUDA context is unusable, nothing on a GPU works in this
 * process any more; device.failed: this call failed, the context is usable. */
int pb_cuda_err(struct pb_err *err, cudaError_t rc, const char *what);
/* The same for a call that pins `bytes` of the host's memory for `what`: the host lacks memory. */
int pb_cuda_pin_err(struct pb_err *err, cudaError_t rc, size_t bytes, const char *what);
/* The same for a negative errno from kernels/ or wic/. */
int pb_cuda_rc(struct pb_err *err, int rc, const char *what);
#endif
