// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_SEND_CUH
#define WIC_APP_PAIR_SEND_CUH
// The sending side of a block, by one of the ways out. They are chosen while a kernel runs, because
// a kernel for each would take minutes of nvcc.
#include "wic/apps/pair/effshare.cuh"
#include "wic/apps/pair/finepack.cuh"
#include "wic/apps/pair/gps.cuh"
#include "wic/apps/pair/letters.cuh"
#include "wic/apps/pair/put_signal.cuh"

// A thread of a block; Way has part() and share().
template <class Way> class pair_sender
{
  public:
    // lines: pair_lines_bytes of the block's memory, the same in each call
    template <class Write>
    __device__ void make(pair_way_out send, const pair_sending &sending, unsigned char *lines,
                         Write write)
    {
        switch (send) {
        case PAIR_IN_PLACE:
            write(sending.data());
            break;
        case PAIR_PUT_SIGNAL:
            pair_put_signal::make(sending, write);
            break;
        case PAIR_GPS:
            pair_gps::make(sending, write);
            break;
        case PAIR_FINEPACK:
            turn_ ^= 1;
            pair_finepack::make(lines + turn_ * resident_piece_most, write);
            break;
        case PAIR_LETTERS:
            turn_ ^= 1;
            write(lines + turn_ * resident_piece_most);
            break;
        case PAIR_EFFSHARE:
            pair_effshare::make(sending, write);
            break;
        }
    }
    __device__ void send(pair_way_out send, const pair_sending &sending, const unsigned char *lines,
                         bool is_lost, Way &way)
    {
        const unsigned char *made = lines + turn_ * resident_piece_most;
        if (send == PAIR_PUT_SIGNAL) {
            pair_put_signal::send(sending, way);
        } else if (send == PAIR_FINEPACK && way.part().thread == 0) {
            pair_finepack::send(sending, made);
        } else if (send == PAIR_LETTERS) {
            pair_letters::send(sending, made, is_lost, way.part());
        }
    }

  private:
    uint32_t turn_ = 0;
};
#endif
