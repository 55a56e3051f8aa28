/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_H
#define PB_DEVICE_H
/* Devices that can compute. Device 0.. are CUDA devices; the CPU is always available. Thread:
 * any, one at a time. */
#include "config/base/err.h"

#include "pipeline/device/tuning.h"

#include "wic/device/share.h"
#include "wic/device/transfer_plan.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_compute_config;
struct CUstream_st; /* cudaStream_t points to it */

/* Properties of a CUDA device that a plan needs. */
struct pb_device_traits {
    struct wic_gpu gpu;
    bool integrated;   /* shares memory with the CPU */
    bool time_limited; /* the driver ends kernels that run for seconds, because a display uses the
                          device */
    bool mps;          /* processes share it through MPS, concurrently instead of by time slices */
    bool managed;      /* it moves managed memory to its own while the host runs */
    /* Multiprocessors of the device if gpu has only those that compute.share allows, else 0; and
     * why kernels that are launched may still use all of them, "" = they do not. */
    uint32_t all_multiprocessors;
    char share_why[120];
    uint64_t memory_bytes;   /* total; 0: unknown */
    struct pb_tuning tuning; /* measurements of it (pipeline/device/tuning.h) */
};

struct pb_device {
    char name[128];
    int32_t index;
    char arch[16]; /* "sm_90" */
    uint64_t memory_bytes, free_bytes;
    int32_t multiprocessors;
    bool integrated, time_limited, mps, managed; /* see struct pb_device_traits */
    bool usable;
    char why[200]; /* reason if not usable */
};

/* Returns the count of CUDA devices; *why (200 bytes) is the reason if it is 0, else "". */
int pb_device_count(char why[200]);
/* Reads the properties of device `index` < count, and tests it. It is the calling thread's
 * current device afterwards. */
void pb_device_describe(int32_t index, struct pb_device *device);
/* Describes all devices, at most max. *why (200 bytes) is the reason if there is no device, else
 * "". Returns their count. */
int pb_device_list(struct pb_device *devices, int max, char why[200]);
/* Copy rates between pinned memory and the device, measured by moving `bytes` each way, in bytes
 * per second; 0 after a failure. */
void pb_device_link(int32_t index, size_t bytes, double *to_device, double *from_device);
/* Returns whether kernels of a device can access the memory of another one. *copies: rate of copies
 * of `bytes` between them, in bytes per second, also without such access; 0 after a failure. */
bool pb_device_peer(int32_t from, int32_t to, size_t bytes, double *copies);
/* Measures if calls that allocate memory or make streams wait for a kernel that stays, which makes
 * a resident kernel useless: true. False also if it cannot be measured. */
bool pb_device_calls_wait(int32_t index);
/* Makes it the calling thread's current device. */
int pb_device_use(int32_t index, struct pb_err *err);
#define PB_DEVICE_DRIVER_BYTES 40
/* Version of the NVIDIA driver, "580.65.06", or "CUDA 13.0" if only that is known; "" = no
 * driver. */
void pb_device_driver(char out[PB_DEVICE_DRIVER_BYTES]);
/* Overrides traits for tests by the environment variable PUSHBROOM_TEST_GPU: "integrated" and
 * "multiprocessors=N", separated by commas. Runs plans for other GPUs on the present one;
 * unknown words are ignored. */
void pb_device_pretend(struct pb_device_traits *traits);
/* Limits a device to a part of its multiprocessors, at least one; 0 and 100: all. Pure. */
void pb_device_limit(struct pb_device_traits *traits, int32_t percent);
/* The same, and reserves that part of the current device for this process's kernels where the
 * driver can. The first call with a part decides for the process. Thread: init. */
void pb_device_share(int32_t percent, struct pb_device_traits *traits);
#ifdef PB_HAVE_CUDA
/* The share for resident kernels. Thread: any. */
struct wic_share pb_device_wic_share(void);
/* Makes a stream whose kernels run on that part, or on any multiprocessor. Thread: any. */
int pb_device_stream(int priority, struct CUstream_st **out_stream, struct pb_err *err);
#endif
/* Returns 0 or negative errno. */
int pb_device_traits(int32_t index, struct pb_device_traits *out_traits);
/* Finds the device that a configuration selects now: *out_index = CUDA device or -1 for the CPU;
 * why (200 bytes): "" or the reason why auto selected the CPU. -ENODEV with *err if a required
 * device is missing. The calling thread's current device is the selected one: its allocations
 * are made there. */
int pb_device_choose(const struct pb_compute_config *compute, int32_t *out_index, char why[200],
                     struct pb_err *err);
/* Records that work on a GPU did not end in time: memory that it may still use was not freed.
 * Calls that free device memory, including those at exit, would wait for it without limit;
 * therefore the process computes nothing more on a GPU and ends by _exit or exec. Thread: any. */
void pb_device_leave_behind(void);
bool pb_device_left_behind(void);
/* Call after a failed run was destroyed: if pb_device_left_behind(), the error becomes
 * device.lost, unless it restarts the process anyway, because this process has to end. The new
 * process repeats the run. */
void pb_device_left_err(struct pb_err *err);
/* Cores this process may use and the CPU's model name. */
uint32_t pb_device_cores(void);
/* compute.threads as configured; 0 = a thread for each core. */
uint32_t pb_device_threads(int32_t threads);
void pb_device_cpu_name(char *out, size_t bytes);
/* Upper bound of the count of CUDA devices of this machine, from its device nodes: without a
 * call into CUDA, which does not survive a fork. 1 if they cannot be counted. Always 0 in a
 * build without CUDA. */
int pb_device_nodes_count(void);
#endif
