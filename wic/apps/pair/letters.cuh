// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_PAIR_LETTERS_CUH
#define WIC_APP_PAIR_LETTERS_CUH
// letters: a block makes a piece in shared memory, and its threads store it to the receiver as
// letters (wic/peer/peer.cuh), of which each carries the number of its chunk. There is no fence, no
// count of pieces and no word on the board. Each thread of the receiving block polls letters of its
// own and puts their data into shared memory.
//
// A block has two buffers in turn for either direction: when a thread writes to one again, all
// threads have met since they were done with it.
#include "wic/apps/pair/pair.cuh"

constexpr uint32_t pair_letters_bytes = 4 * resident_piece_most; // shared memory of a block
constexpr uint32_t pair_letter_lost = 1u << 31;                  // added to the number

struct pair_letters {
    static constexpr uint32_t bytes = 8; // data of a letter

    static __device__ uint64_t *at(const pair_lane &lane, uint32_t number, size_t offset)
    {
        return reinterpret_cast<uint64_t *>(lane.letters +
                                            2 * (size_t(number & lane.mask) * lane.bytes + offset));
    }
    // A thread's part of the piece.
    static __device__ void send(const pair_sending &sending, const unsigned char *lines,
                                bool is_lost, app_part part)
    {
        const uint32_t *from = reinterpret_cast<const uint32_t *>(lines);
        const uint32_t tag = (sending.number + 1) | (is_lost ? pair_letter_lost : 0);
        uint64_t *to = at(sending.lane, sending.number, sending.offset);
        for (uint32_t i = part.thread; i < sending.whole() / bytes; i += part.threads) {
            wic_peer_write(to + 2 * i, tag, from[2 * i], from[2 * i + 1]);
        }
    }
    // Waits for a thread's part of the piece. False: leave.
    static __device__ bool take(const pair_view &p, const pair_sending &piece, unsigned char *lines,
                                app_part part, bool *is_lost)
    {
        uint32_t *to = reinterpret_cast<uint32_t *>(lines);
        const uint64_t *from = at(piece.lane, piece.number, piece.offset);
        const uint32_t wanted = piece.number + 1;
        for (uint32_t i = part.thread; i < piece.whole() / bytes; i += part.threads) {
            wic_peer_letter letter = {};
            if (!pair_wait(p, [&] {
                    letter = wic_peer_read(from + 2 * i);
                    return letter.tag[0] == letter.tag[1] &&
                           (letter.tag[0] & ~pair_letter_lost) == wanted;
                })) {
                return false;
            }
            *is_lost = (letter.tag[0] & pair_letter_lost) != 0;
            to[2 * i] = letter.data[0];
            to[2 * i + 1] = letter.data[1];
        }
        return true;
    }
};
#endif
