// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_DEVICE_CUH
#define WIC_DEVICE_CUH
// The device side of a link (wic/link.h): a kernel that stays while tiles flow and whose working
// warps are parked by the hardware while there is nothing for them.
//
//   __global__ void kernel(const __grid_constant__ wic_view view, params p)
//   {
//       wic_resident(view, [&](const wic_piece &piece) { ... piece.in -> piece.out ... });
//   }
//
// The warps of a block have parts to play. Each stage (an input and an output buffer in shared
// memory) goes round among them through three gates:
//
//   Activator --full--> working warps --done--> Publisher --empty--> Activator
//
//   Interrupter  wic_wait: a working warp whose next stage is not full is parked at its gate. It
//                never looks at global or host memory.
//   Monitor      one warp of the grid: reads the host's door over PCIe, keeps the board.
//   Activator    one warp a block: looks at the board, for the tile of the block's next piece; is
//                it there, it starts the transfer and waits for its bytes: they wake it, and it
//                opens the gate to the parked.
//   Publisher    one warp a block: takes results to pinned memory; the last piece of a tile
//                publishes it. Apart from the Activator, so that neither waits for the other's
//                road.
//
// The way out: at the end, on abort and when host or Monitor fall silent, the Activator fills a
// stage with nothing (WIC_LEAVE) behind the pieces under way; each warp that meets it leaves. So
// the Activator alone waits for things outside its block, with a look at the abort word and a time
// limit; what the others are parked for comes from it, or from work that ends by itself.
#include "wic/gate.cuh"
#include "wic/link.h"

#define WIC_BARRIER_BYTES 256 // of shared memory, in front of what the stages hold
#define WIC_LEAVE         UINT64_MAX
#define WIC_DOOR_WORDS    30u // lanes of the Monitor that look at the door; two look at the control
#define WIC_ALERT_LOOKS   512u // without news, some 300 us: after that there is a nap between looks
#define WIC_DROWSY_LOOKS  8192u // some 10 ms: after that longer naps
#define WIC_NAP_NS        1000u
#define WIC_LONG_NAP_NS   8000u

// Between two looks of an Activator or the Monitor: what it costs its neighbours becomes less the
// longer nothing comes, and what it adds to the delay of the next tile stays under 0.3 % of the
// wait.
__device__ __forceinline__ void wic_nap(uint32_t idle)
{
    if (idle > WIC_ALERT_LOOKS) {
        __nanosleep(idle > WIC_DROWSY_LOOKS ? WIC_LONG_NAP_NS : WIC_NAP_NS);
    }
}

// What a stage holds; in shared memory.
struct wic_stage {
    uint64_t tile;      // or WIC_LEAVE
    unsigned char *out; // where the results go, pinned memory
    uint32_t piece, pieces;
    uint32_t units;
};

// What a working warp gets. All warps of the block work on it together.
struct wic_piece {
    const void *in; // units * in_unit bytes, 16-byte aligned, shared memory
    void *out;
    uint64_t tile;
    uint32_t piece; // of the tile
    uint32_t units;
    uint32_t thread, threads; // of those who work
};

struct wic_block {
    const wic_view &view;
    unsigned char *memory; // of the block, shared

    __device__ wic_gate gate(uint32_t kind, uint32_t stage) const
    {
        const uint32_t warps = view.plan.warps + (kind == 2 ? 2 : 1); // who arrive or wait
        return {1 + 3 * stage + kind, 32 * warps,
                reinterpret_cast<uint64_t *>(memory) + WIC_PLAN_DEPTH_MAX + 3 * stage + kind};
    }
    __device__ wic_gate full(uint32_t stage) const
    {
        return gate(0, stage);
    }
    __device__ wic_gate done(uint32_t stage) const
    {
        return gate(1, stage);
    }
    __device__ wic_gate empty(uint32_t stage) const
    {
        return gate(2, stage);
    }
    __device__ uint64_t *bytes(uint32_t stage) const
    {
        return reinterpret_cast<uint64_t *>(memory) + stage;
    }
    __device__ volatile wic_stage *stage(uint32_t stage) const
    {
        return reinterpret_cast<wic_stage *>(memory + WIC_BARRIER_BYTES) + stage;
    }
    __device__ unsigned char *in(uint32_t stage) const
    {
        const uint32_t out = view.plan.results == WIC_PUSH_BULK ? view.plan.out_piece : 0;
        return memory + WIC_STAGES_OFFSET + stage * (view.plan.in_piece + out);
    }
    __device__ unsigned char *out(uint32_t stage) const
    {
        return in(stage) + view.plan.in_piece;
    }
};

static_assert(WIC_BARRIER_BYTES + WIC_PLAN_DEPTH_MAX * sizeof(wic_stage) <= WIC_STAGES_OFFSET &&
                  WIC_PLAN_DEPTH_MAX * 4 * sizeof(uint64_t) <= WIC_BARRIER_BYTES,
              "what the stages hold fits in front of the buffers");

// Walks the stages in turn; `round` is how often this one was used before.
struct wic_turn {
    uint32_t stage = 0, round = 0;

    __device__ void next(uint32_t depth)
    {
        if (++stage == depth) {
            stage = 0;
            round++;
        }
    }
};

// --- Interrupter ---

// Parks until the stage is full. False: leave.
__device__ __forceinline__ bool wic_wait(const wic_block &block, const wic_turn &turn,
                                         wic_piece *out_piece)
{
    wic_gate_park(block.full(turn.stage), turn.round);
    const volatile wic_stage *stage = block.stage(turn.stage);
    out_piece->in = block.in(turn.stage);
    out_piece->tile = stage->tile;
    out_piece->piece = stage->piece;
    out_piece->units = stage->units;
    out_piece->out =
        block.view.plan.results == WIC_PUSH_STORES ? stage->out : block.out(turn.stage);
    return out_piece->tile != WIC_LEAVE;
}

// Hands the warp's part of the results to the Publisher. The stage is empty when it is done, too.
__device__ __forceinline__ void wic_publish(const wic_block &block, const wic_turn &turn)
{
    wic_results_written();
    wic_gate_arrive(block.done(turn.stage));
    wic_gate_arrive(block.empty(turn.stage));
}

// --- Monitor ---

// (Two looks on the road at a time, half a round trip apart, were slower: the release of the
// board's words waits for the look that is under way.)
__device__ inline void wic_monitor(const wic_view &view)
{
    const uint32_t lane = wic_lane();
    const bool door = lane < WIC_DOOR_WORDS;
    const uint64_t *control = lane == WIC_DOOR_WORDS ? &view.control->end : &view.control->beat;
    uint64_t next = 0, known = lane == WIC_DOOR_WORDS ? WIC_LINK_OPEN : 0; // end, beat
    uint64_t beat_at = wic_now();
    for (uint32_t idle = 0;;) {
        const uint64_t tile = next + lane;
        const uint64_t value = wic_load_system(door ? &view.door[tile & view.ring_mask] : control);
        const bool here = static_cast<uint32_t>(value >> 32) == static_cast<uint32_t>(tile + 1);
        const uint32_t seen = __ballot_sync(~0u, door ? here : value != known);
        if ((seen & 1) == 0 && seen >> WIC_DOOR_WORDS == 0) {
            if (++idle % 1024 != 0 || wic_now() - beat_at <= view.beat_ns) {
                wic_nap(idle);
                continue;
            }
            known = WIC_LINK_ABORT; // the host died or hangs
        }
        const uint32_t run = __ffs(~(seen & ((1u << WIC_DOOR_WORDS) - 1))) - 1;
        if (lane < run) {
            wic_store_device(&view.board[tile & view.ring_mask], value);
        }
        next += run;
        idle = run > 0 ? 0 : idle;
        if (known != WIC_LINK_ABORT) {
            known = value;
        }
        if (seen >> WIC_DOOR_WORDS != 0) {
            beat_at = wic_now();
        }
        if (!door && (seen >> WIC_DOOR_WORDS != 0 || known == WIC_LINK_ABORT)) {
            wic_store_device(lane == WIC_DOOR_WORDS ? &view.state->end : &view.state->beat, known);
        }
        const uint64_t end = __shfl_sync(~0u, known, WIC_DOOR_WORDS);
        if (next >= end || end == WIC_LINK_ABORT) {
            return;
        }
    }
}

// --- Activator ---

// The turnstile. The link needs some 100 KB under way to be busy; with much more it gets slower,
// for the reads of many blocks then reach the host's memory out of order. So piece g is pulled only
// when piece g - pulls has arrived: what is under way is bounded and lies together. Each block
// counts the pieces it has behind it; the count of the block that pulls g - pulls is looked at
// along with the board.
struct wic_turnstile {
    uint64_t passed = 0; // pieces of this block

    __device__ uint64_t *own(const wic_view &view) const
    {
        return view.passed + blockIdx.x;
    }
    __device__ bool first(const wic_view &view) const
    {
        return blockIdx.x < view.plan.pulls;
    }
    __device__ const uint64_t *ahead(const wic_view &view) const
    {
        return view.passed + blockIdx.x - view.plan.pulls + (first(view) ? gridDim.x : 0);
    }
    // The count there must exceed this.
    __device__ bool open(const wic_view &view, uint64_t count) const
    {
        return first(view) ? count >= passed : count > passed;
    }
    __device__ void pass(const wic_view &view)
    {
        passed++;
        if (wic_lane() == 0) {
            wic_post_device(own(view), passed);
        }
    }
};

// Units of the tile once the board has it; UINT64_MAX: leave. *starved: how long that took.
__device__ inline uint64_t wic_board_wait(const wic_view &view, uint64_t tile,
                                          const wic_turnstile &turnstile, uint64_t *starved)
{
    const uint32_t lane = wic_lane();
    const uint64_t *word = lane == 0   ? &view.board[tile & view.ring_mask]
                           : lane == 1 ? &view.state->end
                           : lane == 2 ? turnstile.ahead(view)
                                       : &view.state->beat;
    uint64_t last = 0, since = 0, beat = 0, beat_at = 0;
    for (uint32_t idle = 0;; idle++) {
        const uint64_t value = wic_load_device(word);
        if (idle % 1024 != 0 && !__any_sync(~0u, value != last)) {
            wic_nap(idle);
            continue;
        }
        last = value;
        const bool here = static_cast<uint32_t>(value >> 32) == static_cast<uint32_t>(tile + 1);
        const bool over = tile >= value || value == WIC_LINK_ABORT;
        const bool open = turnstile.open(view, value);
        const uint32_t seen = __ballot_sync(~0u, lane == 0   ? here
                                                 : lane == 1 ? over
                                                             : lane == 2 && open);
        if (seen & 2 || seen == 5) {
            *starved += since ? wic_now() - since : 0;
            return seen == 5 ? static_cast<uint32_t>(__shfl_sync(~0u, value, 0)) : UINT64_MAX;
        }
        const uint64_t now = wic_now(), new_beat = __shfl_sync(~0u, value, 3);
        since = since ? since : now;
        if (beat_at == 0 || new_beat != beat) {
            beat = new_beat;
            beat_at = now;
        } else if (now - beat_at > 2 * view.beat_ns) {
            return UINT64_MAX; // the Monitor is gone
        }
    }
}

// In which pieces the block's tiles come; found without a look at them.
struct wic_cursor {
    uint64_t tile;
    uint32_t piece;

    __device__ void next(uint32_t pieces)
    {
        piece += gridDim.x;
        tile += piece / pieces;
        piece %= pieces;
    }
};

__device__ __forceinline__ void wic_fill_stage(const wic_block &block, const wic_turn &turn,
                                               const wic_stage &content)
{
    if (wic_lane() == 0) {
        volatile wic_stage *stage = block.stage(turn.stage);
        stage->tile = content.tile;
        stage->out = content.out;
        stage->piece = content.piece;
        stage->pieces = content.pieces;
        stage->units = content.units;
    }
}

// Divisions and parking for the stage come before the look at the board: from there on time counts.
__device__ inline void wic_activate(const wic_block &block)
{
    const wic_view &view = block.view;
    const wic_chunk_plan &plan = view.plan;
    const uint32_t piece_units = plan.in_piece / plan.in_unit;
    const uint32_t tile_units = piece_units * plan.pieces;
    uint64_t starved = 0, pulled = 0;
    wic_cursor at = {blockIdx.x / plan.pieces, blockIdx.x % plan.pieces};
    wic_turnstile turnstile;
    wic_turn turn;
    bool empty = true; // the stage in turn
    for (;; at.next(plan.pieces), turnstile.pass(view)) {
        const unsigned char *in = view.in +
                                  (view.in_first + at.tile) % view.in_slots * view.in_stride +
                                  static_cast<uint64_t>(at.piece) * plan.in_piece;
        unsigned char *out = view.out +
                             (view.out_first + at.tile) % view.out_slots * view.out_stride +
                             static_cast<uint64_t>(at.piece) * plan.out_piece;
        const uint32_t before = at.piece * piece_units;
        if (!empty) {
            wic_gate_park(block.empty(turn.stage), turn.round - 1);
            empty = true;
        }
        const uint64_t found = wic_board_wait(view, at.tile, turnstile, &starved);
        if (found == UINT64_MAX) {
            break;
        }
        const uint32_t units = static_cast<uint32_t>(found);
        if (before >= units && at.piece > 0) {
            continue; // a short tile has fewer pieces; an empty one has one
        }
        const uint32_t mine = min(units - before, piece_units);
        const uint32_t load = (mine * plan.in_unit + 15) / 16 * 16;
        const uint32_t pieces = units + piece_units > tile_units
                                    ? plan.pieces
                                    : max(1u, (units + piece_units - 1) / piece_units);
        wic_fill_stage(block, turn, {at.tile, out, at.piece, pieces, mine});
        wic_pull(block.bytes(turn.stage), block.in(turn.stage), in, load);
        wic_pulled(block.bytes(turn.stage), turn.round);
        wic_gate_arrive(block.full(turn.stage));
        pulled += load;
        turn.next(plan.depth);
        empty = turn.round == 0;
    }
    wic_fill_stage(block, turn, {WIC_LEAVE, nullptr, 0, 0, 0});
    wic_gate_arrive(block.full(turn.stage));
    if (wic_lane() == 0) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&view.state->starved_ns), starved);
        atomicAdd(reinterpret_cast<unsigned long long *>(&view.state->pulled_bytes), pulled);
    }
}

// --- Publisher ---

__device__ inline void wic_publisher(const wic_block &block)
{
    const wic_view &view = block.view;
    const wic_chunk_plan &plan = view.plan;
    for (wic_turn turn;; turn.next(plan.depth)) {
        wic_gate_park(block.done(turn.stage), turn.round);
        const volatile wic_stage *stage = block.stage(turn.stage);
        const uint64_t tile = stage->tile;
        if (tile == WIC_LEAVE) {
            return;
        }
        const uint32_t pieces = stage->pieces;
        if (plan.results == WIC_PUSH_BULK) {
            wic_push(stage->out, block.out(turn.stage),
                     (stage->units * plan.out_unit + 15) / 16 * 16);
            wic_push_read();
        }
        wic_gate_arrive(block.empty(turn.stage));
        if (plan.results == WIC_PUSH_BULK) {
            wic_push_done();
        }
        if (wic_lane() == 0) {
            uint32_t *arrived = &view.arrived[tile & view.ring_mask];
            const bool last = pieces == 1 || wic_add_device(arrived, 1) == pieces - 1;
            if (last) {
                if (pieces > 1) {
                    *arrived = 0; // for the tile that comes here next; ordered by the release
                }
                wic_store_system(&view.done[tile & view.ring_mask], tile + 1);
            }
        }
        __syncwarp();
    }
}

// --- all of it ---

// Sets the gates up and tells the host once every block is there.
__device__ inline void wic_enter(const wic_block &block)
{
    const wic_view &view = block.view;
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < view.plan.depth; stage++) {
            wic_gate_init(block.full(stage), 1);
            wic_gate_init(block.done(stage), view.plan.warps);
            wic_gate_init(block.empty(stage), view.plan.warps + 1);
            wic_bytes_init(block.bytes(stage));
        }
        if (wic_add_device(&view.state->started, 1) == gridDim.x - 1) {
            wic_store_system(view.started, 1);
        }
    }
    __syncthreads();
}

// work(const wic_piece &) is called by all threads of the working warps, for each piece.
template <class Work> __device__ __forceinline__ void wic_resident(const wic_view &view, Work work)
{
    extern __shared__ __align__(128) unsigned char wic_shared[];
    const wic_block block = {view, wic_shared};
    wic_enter(block);
    const uint32_t warp = threadIdx.x / 32;
    if (warp == 0) {
        wic_activate(block);
    } else if (warp == 1) {
        wic_publisher(block);
    } else if (warp == 2) {
        if (blockIdx.x == 0) {
            wic_monitor(view);
        }
    } else {
        wic_piece piece;
        piece.thread = threadIdx.x - 32 * WIC_SERVICE_WARPS;
        piece.threads = 32 * view.plan.warps;
        wic_turn turn;
        for (; wic_wait(block, turn, &piece); turn.next(view.plan.depth)) {
            work(piece);
            wic_publish(block, turn);
        }
        wic_gate_arrive(block.done(turn.stage)); // the Publisher meets WIC_LEAVE, too
    }
}
#endif
