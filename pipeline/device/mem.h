/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MEM_H
#define PB_MEM_H
/* Allocates the memory of slots, of one of two kinds: plain host pages, and pinned pages that the
 * GPU copies from and to at full speed. Thread: init (one thread per block). */
#include "config/base/err.h"

#include <stddef.h>

enum pb_mem_kind { PB_MEM_HOST, PB_MEM_PINNED };

/* Page-aligned, zeroed. On a build without CUDA only PB_MEM_HOST exists. */
int pb_mem_alloc(enum pb_mem_kind kind, size_t bytes, struct pb_err *err, void **out_memory);
void pb_mem_free(enum pb_mem_kind kind, void *memory, size_t bytes);

/* Pins existing memory for the current device, at page boundaries; it must stay mapped until
 * unpin. device.missing without CUDA. */
int pb_mem_pin(void *memory, size_t bytes, struct pb_err *err);
void pb_mem_unpin(void *memory);

/* Pinned memory in a CUDA build (mem_cuda.c). */
int pb_mem_cuda_alloc(size_t bytes, struct pb_err *err, void **out_memory);
void pb_mem_cuda_free(void *memory);
#endif
