// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "tests/device/emulate_guest.h"
#include "wic/depend/guest.cuh"

#include <atomic>
#include <sched.h>
#include <thread>

namespace
{
constexpr uint32_t ring = 32, units = 40;

// Memory of the host, the Monitor and guests.
struct link_memory {
    uint64_t doorbell[ring] = {}, board[ring] = {}, done[ring] = {};
    uint64_t end = WIC_LINK_OPEN, host_end = WIC_LINK_OPEN;
    uint32_t arrived[ring] = {};
    std::vector<uint32_t> in, out;
    uint32_t slots;

    explicit link_memory(uint32_t slots) : in(slots * units), out(slots * units), slots(slots)
    {
    }
    wic_guest_view view(uint32_t readers, uint64_t limit_ns)
    {
        wic_guest_view v = {};
        v.ready_board = board;
        v.end = &end;
        v.arrived = arrived;
        v.done = done;
        v.in = reinterpret_cast<const unsigned char *>(in.data());
        v.out = reinterpret_cast<unsigned char *>(out.data());
        v.in_stride = v.out_stride = units * sizeof(uint32_t);
        v.in_slots = v.out_slots = slots;
        v.ring_mask = ring - 1;
        v.readers = readers;
        v.limit_ns = limit_ns;
        return v;
    }
};

uint32_t sample(uint64_t frame, uint32_t i)
{
    return static_cast<uint32_t>(frame * 2654435761u + i * 40503u);
}
uint32_t size_of(uint64_t frame)
{
    return static_cast<uint32_t>(frame * 7 % (units + 1));
}

// From the doorbell to the ready board, until all frames are there.
void monitor(link_memory *m, const emulate_guest *how)
{
    for (uint64_t next = 0;;) {
        const uint64_t word = __atomic_load_n(&m->doorbell[next % ring], __ATOMIC_ACQUIRE);
        if (how->abort > 0 && next == how->abort) {
            __atomic_store_n(&m->end, WIC_LINK_ABORT, __ATOMIC_RELEASE);
            return;
        }
        if (static_cast<uint32_t>(word >> 32) == next + 1) {
            __atomic_store_n(&m->board[next % ring], word, __ATOMIC_RELEASE);
            next++;
        }
        const uint64_t end = __atomic_load_n(&m->host_end, __ATOMIC_ACQUIRE);
        if (next == end) {
            __atomic_store_n(&m->end, end, __ATOMIC_RELEASE);
            return;
        }
        sched_yield();
    }
}

// A block of one thread; returns why it ended.
wic_guest_end guest(const wic_guest_view &view, uint32_t block, uint64_t first, uint64_t frames)
{
    for (uint64_t frame = first; frame - first < frames; frame++) {
        uint32_t low = 0;
        const wic_guest_end end = wic_guest_await(view, frame, &low);
        if (end != WIC_GUEST_HERE) {
            return end;
        }
        const wic_guest_tile tile = wic_guest_find(view, frame, low);
        for (uint32_t i = block; i < tile.units; i += view.readers) {
            static_cast<uint32_t *>(tile.out)[i] = static_cast<const uint32_t *>(tile.in)[i] + 1;
        }
        wic_guest_finish(view, frame);
        sched_yield();
    }
    return WIC_GUEST_HERE;
}
} // namespace

uint32_t emulate_guest_frames(const struct emulate_guest *how, uint32_t *left)
{
    link_memory m(how->slots);
    const wic_guest_view view = m.view(how->blocks, UINT64_MAX);
    std::atomic<uint32_t> over{0};
    std::thread monitors(monitor, &m, how);
    std::vector<std::thread> guests;
    for (uint32_t b = 0; b < how->blocks; b++) {
        guests.emplace_back([&, b] {
            wic_guest_end end = WIC_GUEST_HERE;
            for (uint64_t f = 0; how->each_frame && f < how->frames && end == WIC_GUEST_HERE; f++) {
                end = guest(view, b, f, 1);
            }
            end = end == WIC_GUEST_HERE
                      ? guest(view, b, how->each_frame ? how->frames : 0, UINT64_MAX)
                      : end;
            over += end == (how->abort > 0 ? WIC_GUEST_LEFT : WIC_GUEST_OVER);
        });
    }
    uint32_t right = 0;
    uint64_t sent = 0, got = 0;
    const uint64_t all = how->abort > 0 ? how->abort : how->frames;
    while (got < all) {
        if (sent < how->frames && sent - got < how->slots) {
            for (uint32_t i = 0; i < size_of(sent); i++) {
                m.in[sent % how->slots * units + i] = sample(sent, i);
            }
            __atomic_store_n(&m.doorbell[sent % ring], (sent + 1) << 32 | size_of(sent),
                             __ATOMIC_RELEASE);
            sent++;
            continue;
        }
        if (__atomic_load_n(&m.done[got % ring], __ATOMIC_ACQUIRE) != got + 1) {
            sched_yield();
            continue;
        }
        bool good = true;
        for (uint32_t i = 0; i < size_of(got); i++) {
            uint32_t *result = &m.out[got % how->slots * units + i];
            good = good && *result == sample(got, i) + 1;
            *result = 0;
        }
        right += good;
        got++;
    }
    __atomic_store_n(&m.host_end, how->frames, __ATOMIC_RELEASE);
    monitors.join();
    for (std::thread &one : guests) {
        one.join();
    }
    *left = over;
    return right;
}

void emulate_guest_ends(uint32_t ends[5])
{
    link_memory m(4);
    const wic_guest_view view = m.view(1, 5000000);
    uint32_t low = 0;
    m.board[3] = uint64_t{4} << 32 | 17;
    ends[0] = wic_guest_await(view, 3, &low);
    ends[0] = ends[0] == WIC_GUEST_HERE && low == 17 ? ends[0] : UINT32_MAX;
    m.board[3] = uint64_t{ring + 4} << 32 | 17;
    ends[1] = wic_guest_await(view, 3, &low);
    m.end = 40;
    ends[2] = wic_guest_await(view, 40, &low);
    m.end = WIC_LINK_ABORT;
    ends[3] = wic_guest_await(view, 5, &low);
    m.end = WIC_LINK_OPEN;
    ends[4] = wic_guest_await(view, 5, &low);
}
