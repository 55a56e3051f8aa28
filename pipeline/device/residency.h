/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESIDENCY_H
#define PB_RESIDENCY_H
/* The calls of a process that CUDA holds up while a kernel stays on the device (allocating,
 * freeing, pinning, making streams) go where none is: who makes them asks the resident kernels to
 * leave, and they come back afterwards. One count a process, for all of its devices. Thread: any;
 * setups may overlap. */
#include <stdbool.h>

/* Before and after such calls. Begin waits until no kernel stays. */
void pb_residency_setup_begin(void);
void pb_residency_setup_end(void);

/* Before a resident kernel is launched: waits until no setup is under way. */
void pb_residency_enter(void);
/* It has left, or was not launched. */
void pb_residency_left(void);
/* Whether a setup waits for it. */
bool pb_residency_is_unwanted(void);
#endif
