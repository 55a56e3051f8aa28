/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATE_READY_H
#define PB_EMULATE_READY_H
/* The device functions of wic/depend that one thread calls, as host code. Thread: any, at the same
 * time: on the host the words are C11's. */
#include "wic/depend/ready.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void emulate_push(const struct wic_ready *ready, uint32_t ring, uint32_t task, uint32_t n);
void emulate_list(const struct wic_ready *ready, uint32_t ring);
/* Returns false if no task of the ring is left. */
bool emulate_try(const struct wic_ready *ready, uint32_t ring, uint32_t *out_task);
bool emulate_arrive(uint32_t *counter, uint32_t needed);
void emulate_stop(const struct wic_ready *ready, uint32_t why);
void emulate_post(uint32_t *word, uint32_t epoch);
bool emulate_is_at(const uint32_t *word, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
