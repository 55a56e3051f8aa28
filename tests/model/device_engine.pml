/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that are moved by copy engine (wic/device/backend_engine.cu), as part of device.pml. Copies are made in batches of tiles, in
 * each direction by two streams in turn. After a copy its stream writes its position: to the device, where the
 * Monitor lets the doorbell words of those tiles pass, or to the host. When a batch is worth a copy is the host's choice:
 * it may start at any time while there is room for it, and must start when no other is under way.
 *
 *   ENGINE      each tile may be moved by engine or pulled, as the host likes     ENGINE_ALL   all are moved by engine
 *   LAZY        a batch starts only when no other is under way */

/* --- words --- */
byte landed[2], back_landed[2]; /* index: lane; the tile after the lane's last batch; device memory, pinned */

/* --- the host's --- */
byte by;                            /* bits by ring entry: moved by engine */
bool by_now;                        /* the last posted tile is moved by engine */
byte to_next, to_ready, to_count, to_oldest, to_lane;
byte back_next, back_ready, back_count, back_oldest, back_lane;
byte to_end[2], back_first[2], back_end[2]; /* tiles of the batches under way; two of them, lane l has batch l */
#define IS_BY(n)   (by & (1 << ENTRY(n)))
#define HAS_DONE(n) (done[ENTRY(n)] >= (n) + 1)

/* --- the streams, and ghosts --- */
chan to_device0 = [2] of { byte, byte }; /* first tile, the tile after the last */
chan to_device1 = [2] of { byte, byte };
chan to_host0 = [2] of { byte, byte };
chan to_host1 = [2] of { byte, byte };
byte device_of[SLOTS]; /* ticket + 1 of which the input is in device memory */
byte made[SLOTS];      /* bits: which pieces of the results are */
#define QUEUES_EMPTY (empty(to_device0) && empty(to_device1) && empty(to_host0) && empty(to_host1))

inline engine_reset()
{
    by = 0; by_now = 0;
    to_next = 0; to_ready = 0; to_count = 0; to_oldest = 0; to_lane = 0;
    back_next = 0; back_ready = 0; back_count = 0; back_oldest = 0; back_lane = 0;
    back_landed[0] = 0; back_landed[1] = 0
}

/* A pulled tile is posted only when no earlier one waits for its batch. */
#ifdef BROKEN_PULLS_PAST_WAITING
#define MAY_PULL 1
#else
#define MAY_PULL (to_next == to_ready)
#endif

inline engine_post(t)
{
    atomic {
        made[SLOT(t)] = 0;
        if
#ifndef ENGINE_ALL
        :: MAY_PULL -> by_now = 0
#endif
        :: true -> by_now = 1
        fi;
        d_step {
            if
            :: by_now -> by = by | (1 << ENTRY(TILE(t))); to_ready = TILE(t) + 1
            :: else -> by = by & ~(1 << ENTRY(TILE(t))); to_next = TILE(t) + 1; to_ready = TILE(t) + 1;
               doorbell[ENTRY(TILE(t))] = MARK(TILE(t))
            fi
        }
    }
}

#ifdef LAZY
#define BATCHES 1
#else
#define BATCHES 2
#endif
#ifdef BROKEN_BATCH_WAITS_TO_FILL
#define IS_WORTH_IT(next, ready) ((ready) - (next) == SLOTS)
#else
#define IS_WORTH_IT(next, ready) ((ready) > (next))
#endif
#define POLLS        (posted > finished && (by_now || IS_BY(TILE(finished))))
#define TO_RETIRES   (to_count > 0 && HAS_DONE(to_end[to_oldest] - 1))
#define TO_DUE       (IS_WORTH_IT(to_next, to_ready) && to_count < BATCHES)
#ifdef BROKEN_SETTLES_BY_OTHER_LANE
#define BACK_SETTLES (back_count > 0 && back_landed[0] >= back_end[back_oldest])
#else
#define BACK_SETTLES (back_count > 0 && back_landed[back_oldest] >= back_end[back_oldest])
#endif
#ifdef BROKEN_BRINGS_BACK_UNMADE
#define CAN_COLLECT(n) 1
#else
#define CAN_COLLECT(n) HAS_DONE(n)
#endif
/* A tile that was handed over needs no copy; and the ring's entry may be a later tile's. */
#ifdef BROKEN_BACK_LAGS
#define CATCH_UP skip
#define BACK_COLLECTS (back_ready < TILE(posted) && (IS_BY(back_ready) -> CAN_COLLECT(back_ready) : back_next == back_ready))
#else
#define CATCH_UP \
    if \
    :: back_ready < TILE(finished) -> back_next = TILE(finished); back_ready = TILE(finished) \
    :: else -> skip \
    fi
#define BACK_COLLECTS (back_ready < TILE(finished) || (back_ready < TILE(posted) && \
                       (IS_BY(back_ready) -> CAN_COLLECT(back_ready) : back_next == back_ready)))
#endif
#define BACK_DUE     (IS_WORTH_IT(back_next, back_ready) && back_count < BATCHES)
/* For a tile whose results are moved by engine: after all batches that are under way. */
#define IS_BACK(n)   ((n) < (back_count > 0 -> back_first[back_oldest] : back_next))

/* One or two tiles, in slots side by side. */
inline take_batch(next, ready)
{
    k = 1;
    if
    :: true -> skip
    :: ready - next > 1 && SLOT(base + next + 1) != 0 -> k = 2
    fi
}

/* Other work of wic_link_done, as long as the oldest tile is not there; one step of it, if `moves`. */
#define ENGINE_MOVES (POLLS && (TO_RETIRES || TO_DUE || BACK_SETTLES || BACK_COLLECTS || BACK_DUE))

inline engine_step()
{
    if
    :: d_step { TO_RETIRES -> to_oldest = 1 - to_oldest; to_count-- }
    :: atomic { TO_DUE ->
           take_batch(to_next, to_ready);
           d_step {
               if
               :: to_lane == 0 -> to_device0!to_next, to_next + k
               :: else -> to_device1!to_next, to_next + k
               fi;
               to_end[to_lane] = to_next + k; to_count++
           }
       }
       do
       :: k > 0 -> d_step { doorbell[ENTRY(to_next)] = MARK(to_next) + 32 + 64 * to_lane; to_next++; k-- }
       :: else -> to_lane = 1 - to_lane; break
       od
    :: d_step { BACK_SETTLES -> back_oldest = 1 - back_oldest; back_count-- }
    :: d_step { BACK_COLLECTS ->
           CATCH_UP;
           if
           :: back_ready >= TILE(posted) -> skip
           :: back_ready < TILE(posted) && !IS_BY(back_ready) && back_next == back_ready -> back_next++; back_ready++
           :: back_ready < TILE(posted) && IS_BY(back_ready) && CAN_COLLECT(back_ready) -> back_ready++
           :: else -> skip
           fi
       }
    :: atomic { BACK_DUE ->
           take_batch(back_next, back_ready);
           d_step {
               if
               :: back_lane == 0 -> to_host0!back_next, back_next + k
               :: else -> to_host1!back_next, back_next + k
               fi;
               back_first[back_lane] = back_next; back_end[back_lane] = back_next + k; back_count++;
               back_next = back_next + k; back_lane = 1 - back_lane; k = 0
           }
       }
    fi
}

/* --- hardware --- */

proctype stream_in(chan queue; byte lane)
{
    byte x, y;
end:
    do
    :: queue?<x, y> ->
#ifdef BROKEN_WRITES_BEFORE_COPY
       landed[lane] = y;
#endif
       d_step {
           assert(!proxy_gone && in_of[SLOT(base + x)] == base + x + 1);
           device_of[SLOT(base + x)] = 0;
           device_of[SLOT(base + y - 1)] = 0
       }
       d_step {
           assert(!proxy_gone && in_of[SLOT(base + x)] == base + x + 1 && in_of[SLOT(base + y - 1)] == base + y);
           device_of[SLOT(base + x)] = base + x + 1;
           device_of[SLOT(base + y - 1)] = base + y
       }
       d_step {
#ifndef BROKEN_WRITES_BEFORE_COPY
           landed[lane] = y;
#endif
           queue?x, y; x = 0; y = 0
       }
    od
}

inline bring_home(n)
{
    assert(!proxy_gone && out_of[SLOT(base + n)] == base + n + 1 && out_published <= base + n);
    assert(made[SLOT(base + n)] == ALL(base + n));
    pieces[SLOT(base + n)] = ALL(base + n)
}

proctype stream_out(chan queue; byte lane)
{
    byte x, y;
end:
    do
    :: queue?<x, y> ->
       d_step {
           bring_home(x);
           bring_home(y - 1)
       }
       d_step { back_landed[lane] = y; queue?x, y; x = 0; y = 0 }
    od
}
