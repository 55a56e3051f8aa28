/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAGES_H
#define PB_PAGES_H
/* Memory for large buffers, in chunks of huge pages. The first use of a small page costs more than
 * most computations on it: a scene of one tile spent a quarter of its time there. A huge page of
 * 2 MiB costs a small part of 512 small ones. A chunk is unmapped with its last buffer; a buffer
 * of 2 MiB or more that is freed earlier returns its pages to the system at once. If the kernel
 * grants no huge pages, chunks have small ones. A forked process finds zeros in the buffers of its
 * parent. Thread: any. */
#include <stddef.h>

/* Page-aligned, zeroed. NULL with errno. */
void *pb_pages_alloc(size_t bytes);
/* bytes: as allocated. NULL is allowed. */
void pb_pages_free(void *memory, size_t bytes);
#endif
