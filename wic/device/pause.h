/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_PAUSE_H
#define WIC_PAUSE_H
/* Periods in which no kernel of this process is resident. CUDA calls that free or unpin memory wait
 * for resident kernels, which stay for as long as tiles arrive. In a pause every kernel that
 * wic_device_run serves leaves, and none is launched before the end of the pause:
 *
 *   if (wic_gpu_pause(WIC_GPU_PAUSE_NS) == 0)
 *       cudaFree(memory);
 *   wic_gpu_resume();
 *
 * A pause costs the kernels some 0.1 ms each and the tiles that wait meanwhile. For memory that is
 * not needed at once, wic_gpu_free_later waits until no kernel is resident anyway. (Allocating,
 * pinning, uploading and making streams do not wait: measured, driver 580.)
 *
 * One count per process, for all its devices. Thread: any. */
#include "wic/watchdog.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIC_GPU_PAUSE_NS INT64_C(90000000000) /* more than WIC_DEVICE_HANG_NS */

/* Waits until no kernel is resident; pauses may overlap. 0, or -ETIMEDOUT: a kernel still is, and
 * memory that its device may use must not be freed. wic_gpu_resume must follow in both cases. Not
 * from a callback of wic_device_run. */
int wic_gpu_pause(int64_t timeout_ns);
void wic_gpu_resume(void);

/* Calls free_it when no kernel is resident, on the thread that detects it, which may be at once. If
 * the deferred memory exceeds WIC_GPU_LATER_BYTES, a pause frees all of it. */
#define WIC_GPU_LATER_BYTES ((size_t)512 << 20)
void wic_gpu_free_later(void (*free_it)(void *user), void *user, size_t bytes);
/* Frees deferred memory now, in a pause: for callers that need the memory. */
void wic_gpu_free_all(void);

/* A wait for work of this process that may be queued until resident kernels leave: time counts
 * towards the limit only while no kernel is resident. After WIC_GPU_PATIENCE_NS the kernels are
 * paused until the end of the wait. All-zero at first. */
#define WIC_GPU_PATIENCE_NS UINT64_C(10000000000)
struct wic_gpu_wait {
    struct wic_watchdog quiet; /* without resident kernels */
    uint64_t since_ns;
    bool pauses;
};
/* Counts a poll at now_ns that found nothing; true if the device hangs. wic_gpu_waited must follow
 * the last poll. */
bool wic_gpu_hangs(struct wic_gpu_wait *wait, uint64_t now_ns, uint64_t limit_ns);
void wic_gpu_waited(struct wic_gpu_wait *wait);

/* CUDA builds only. Measures, with a kernel that stays for a moment on the current device, if calls
 * that allocate or pin memory or make streams wait for resident kernels, which no document rules
 * out: 1; 0: they do not; or a negative errno. Thread: init, with no work on the device. */
int wic_gpu_calls_wait(void);

/* For a program that launches resident kernels by link.h instead of wic_device_run: enter before a
 * launch (waits for the end of a pause), left after the kernel has left, or was not launched;
 * is_paused: the kernel has to leave. */
void wic_gpu_enter(void);
void wic_gpu_left(void);
bool wic_gpu_is_paused(void);

#ifdef __cplusplus
}
#endif
#endif
