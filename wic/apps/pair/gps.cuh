// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_GPS_CUH
#define WIC_APP_PAIR_GPS_CUH
// gps: each store is made to the replica of every party; words are polled and chunks are read in
// the receiver's memory. An application-level copy of the hardware of GPS (MICRO '21), which
// repeats a store by itself; here a piece is made twice.
#include "wic/apps/pair/pair.cuh"

struct pair_gps {
    template <class Write> static __device__ void make(const pair_sending &sending, Write write)
    {
        write(sending.copy());
        write(sending.data());
    }
};
#endif
