// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_GUESTS_CUH
#define WIC_BENCH_GUESTS_CUH
// The time of a frame by ordinary kernels of 64 to 1,048,576 threads that wait for it: guests
// (wic/depend/guest.cuh) and other ways to wait, and kernels that are launched when it is there.
// False: a result was wrong, or a kernel did not leave.
bool measure_guests();
#endif
