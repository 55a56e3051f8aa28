/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DEVICE_H
#define PB_DEVICE_H
/* The devices that can compute. Device 0.. are CUDA devices; the CPU is always there. Thread: any,
 * one at a time. */
#include "config/config.h"
#include "config/base/err.h"

#include "pipeline/device/tuning.h"

#include "wic/device/transfer_plan.h"

#include <stdbool.h>
#include <stdint.h>

/* The properties of a CUDA device that a plan needs. */
struct pb_device_traits {
    struct wic_gpu gpu;
    bool integrated;   /* shares memory with the CPU */
    bool time_limited; /* the driver ends kernels that run for seconds, as a display uses the device
                        */
    bool mps;          /* processes share it through MPS, side by side and not in turns */
    uint64_t memory_bytes;   /* in all; 0: not known */
    struct pb_tuning tuning; /* what was measured of it (pipeline/device/tuning_file.h) */
};

struct pb_device {
    char name[128];
    int32_t index;
    char arch[16]; /* "sm_90" */
    uint64_t memory_bytes, free_bytes;
    int32_t multiprocessors;
    bool integrated, time_limited, mps; /* as in the traits */
    bool managed;                       /* managed buffers work beside a running host */
    bool usable;
    char why[200]; /* when not usable */
};

/* How many CUDA devices there are; *why (200 bytes) says why there are none ("" otherwise). */
int pb_device_count(char why[200]);
/* Reads the properties of one of them, index < count, and tries it. It is the calling thread's
 * current device afterwards. */
void pb_device_describe(int32_t index, struct pb_device *device);
/* All of them; at most max are written. *why (200 bytes) says why there are none ("" otherwise).
 * Returns how many. */
int pb_device_list(struct pb_device *devices, int max, char why[200]);
/* Copy rates between pinned memory and the device, measured by moving `bytes` each way, in bytes
 * per second; 0 where it failed. */
void pb_device_link(int32_t index, size_t bytes, double *to_device, double *from_device);
/* Makes it the calling thread's current device. */
int pb_device_use(int32_t index, struct pb_err *err);
#define PB_DEVICE_DRIVER_BYTES 40
/* The version of the NVIDIA driver, "580.65.06", or "CUDA 13.0" where only that is known; "" =
 * there is none. */
void pb_device_driver(char out[PB_DEVICE_DRIVER_BYTES]);
/* What a test says that a device is, in the environment: PUSHBROOM_TEST_GPU, words from
 * "integrated" and "multiprocessors=N", by commas. Runs of other GPUs' plans, on the one there is;
 * what is not understood is left out. */
void pb_device_pretend(struct pb_device_traits *traits);
/* 0 or negative errno. */
int pb_device_traits(int32_t index, struct pb_device_traits *out_traits);
/* The device that a config selects now: *out_index = CUDA device or -1 for the CPU; why (200
 * bytes): "" or the reason auto took the CPU. -ENODEV with *err when a device is demanded that is
 * not there. The calling thread's current device is the one chosen: what it allocates belongs
 * there. */
int pb_device_choose(const struct pb_compute_config *compute, int32_t *out_index, char why[200],
                     struct pb_err *err);
/* Records that work on a GPU did not end in time: memory that it may still use was not freed. Calls
 * that free device memory, those at exit among them, would wait for it without limit, so after this
 * the process computes nothing more on a GPU and ends by _exit or exec. Thread: any. */
void pb_device_leave_behind(void);
bool pb_device_left_behind(void);
/* Called after a failed run was destroyed: if work was left behind, the error becomes device.lost
 * unless it leads to a fresh process anyway, as this process has to end. The fresh one repeats the
 * run. */
void pb_device_left_err(struct pb_err *err);
/* Cores this process may use and the CPU's model name. */
uint32_t pb_device_cores(void);
void pb_device_cpu_name(char *out, size_t bytes);
#endif
