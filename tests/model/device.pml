/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The device side of the channel: how a published tile reaches the parked warps of a resident kernel, and its result the
 * host. Host threads wait by plain guards here: how they park is channel.pml's matter. Two of each block's warps take
 * part, the service warp and the one that computes; what copies bytes by itself is a process of its own.
 *
 *   producers   fill an input slot and publish it: its turn becomes 2t + 1
 *   monitor     the one warp that reads host memory: mirrors the published sequence, the free output slots, close and
 *               abort to the board in device memory; takes a host without heartbeat for an abort
 *   service[b]  of each block: waits for the ticket on the board, for a free output slot and for a free stage in shared
 *               memory; arms the stage's `full` barrier and starts the copy of the block's piece
 *   copy[b]     hardware: its last byte completes the barrier
 *   worker[b]   parked on `full`; computes, stores its piece of the output slot, frees the stage (`empty`), and counts;
 *               the last piece of a tile publishes the output ticket and gives the input slot back
 *   watcher     the host's thread for this GPU: polls the output tickets while something is in flight, else sleeps
 *   consumer    reads output slots and releases them
 *
 * Barriers are mbarriers: a phase bit, a wait for parity p ends when phase != p. The wait of a parked warp has a time
 * limit in hardware, after which it looks at the block's `stop`: that is the second guard of each wait.
 * Tickets count modulo MOD and wrap in every run.
 *
 *   SLOTS, N, NP   slots of both rings; tiles; producers           DEPTH    stages of a block
 *   ABORT          the host aborts at any moment                   BLOCKS   each has one piece of every tile
 *   HOST_DIES      the host stops at any moment, for ever          HOST_STALLS   the monitor may take it for dead
 *
 * What is proved: everybody ends in every run; no slot or stage is written before it is free or read before it is full of
 * its ticket; tiles come out in order, each once, with all pieces; a block does not leave with a copy on its way. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef N
#define N 3
#endif
#ifndef NP
#define NP 1
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif

#define MOD       8
#define FIRST     6
#define LAST      ((FIRST + N) % MOD) /* the first ticket that does not exist */
#define TURN_MASK (2 * MOD - 1)
#define SLOT(t)   ((t) % SLOTS)
#define NEXT(t)   (((t) + 1) % MOD)
#define FREE_FOR(t)   ((2 * (t)) & TURN_MASK)
#define FULL_OF(t)    ((2 * (t) + 1) & TURN_MASK)
#define PAST(seq, t)  (((seq) - (t)) % MOD != 0) /* seq never is behind t, nor MOD ahead */

/* --- host memory --- */
byte in_turn[SLOTS];
byte out_turn[SLOTS];
bool closed;     /* all N are published */
bool abort_host;
bool host_dead;  /* the heartbeat has stopped */
byte next_in = FIRST;
byte in_flight;  /* published, and not yet seen by the watcher as done */
bool watcher_asleep;
byte seen_out = FIRST; /* the watcher's: tickets before it have come out */

/* --- device memory --- */
byte board_in = FIRST;  /* tickets before it are published */
byte board_out = FIRST; /* tickets before it have an output slot */
bool board_closed;
bool board_abort;
byte pieces[SLOTS];     /* done of the tile in this output slot */
bool monitor_left;
byte blocks_left;

/* --- a block's shared memory --- */
#define STAGE(b, k) ((b) * DEPTH + (k))
bool full_phase[BLOCKS * DEPTH];
bool empty_phase[BLOCKS * DEPTH];
#define GO      0
#define STOPPED 1
#define ABORTED 2
byte stop[BLOCKS];
byte job[BLOCKS * DEPTH]; /* ticket + 1 of the copy on its way */

/* --- ghosts --- */
#define FREE    0
#define WRITING 1
#define FULL    2
#define READING 3
byte in_gs[SLOTS], in_content[SLOTS], in_readers[SLOTS];
byte out_gs[SLOTS], out_content[SLOTS], out_written[SLOTS];
byte stage_gs[BLOCKS * DEPTH], stage_content[BLOCKS * DEPTH];
bool block_gone[BLOCKS];
byte published;
#ifdef ENDS
byte finished;
#define FINISH finished++
#else
#define FINISH skip
#endif

#if defined(ABORT) || defined(HOST_DIES) || defined(HOST_STALLS)
#define MAY_FAIL 1
#else
#define MAY_FAIL 0
#endif

#define HOST_GONE (abort_host || host_dead)

proctype producer()
{
    byte t;
    do
    :: atomic {
           if
           :: HOST_GONE -> break
           :: !HOST_GONE && next_in == LAST -> break
           :: !HOST_GONE && next_in != LAST && in_turn[SLOT(next_in)] == FREE_FOR(next_in) ->
              t = next_in; next_in = NEXT(next_in);
              assert(in_gs[SLOT(t)] == FREE && in_readers[SLOT(t)] == 0);
              in_gs[SLOT(t)] = WRITING
           fi
       }
#ifdef BROKEN_PUBLISHES_BEFORE_DATA
       in_turn[SLOT(t)] = FULL_OF(t);
       d_step { in_gs[SLOT(t)] = FULL; in_content[SLOT(t)] = t; }
#else
       atomic {
           if
           :: HOST_GONE -> break
           :: else -> skip
           fi;
           in_gs[SLOT(t)] = FULL; in_content[SLOT(t)] = t;
           in_turn[SLOT(t)] = FULL_OF(t)
       }
#endif
       in_flight++;
       d_step { watcher_asleep = 0; t = 0; }
       d_step {
           published++;
           if
           :: published == N -> closed = 1
           :: else -> skip
           fi
       }
       d_step { watcher_asleep = 0; } /* close wakes it, too */
    od;
    atomic { t = 0; FINISH; }
}

proctype monitor()
{
    byte seen = 0;
    do
#ifdef BROKEN_BOARD_COUNTS /* how many are published, whichever */
    :: board_in != (FIRST + published) % MOD -> board_in = NEXT(board_in)
#else
    :: in_turn[SLOT(board_in)] == FULL_OF(board_in) -> board_in = NEXT(board_in)
#endif
    :: out_turn[SLOT(board_out)] == FREE_FOR(board_out) && board_out != LAST -> board_out = NEXT(board_out)
    :: closed && board_in == LAST && !board_closed -> board_closed = 1
    :: abort_host -> board_abort = 1; break
#ifndef BROKEN_NO_HEARTBEAT
    :: host_dead -> board_abort = 1; break
#endif
#ifdef HOST_STALLS
    :: board_abort = 1; break
#endif
    :: blocks_left == BLOCKS -> break
    od;
    atomic { monitor_left = 1; FINISH; }
}

#ifdef BROKEN_NO_OUTPUT_CREDIT
#define HAS_OUTPUT(t) 1
#else
#define HAS_OUTPUT(t) PAST(board_out, t)
#endif
#ifdef BROKEN_SERVICE_DEAF
#define SERVICE_HEARS 0
#else
#define SERVICE_HEARS board_abort
#endif

proctype service(byte b)
{
    byte t = FIRST; byte k = 0; bool lap = 0;
    do
    :: atomic {
           if
           :: SERVICE_HEARS -> stop[b] = ABORTED; break
           :: board_closed && t == LAST -> stop[b] = STOPPED; break
           :: t != LAST && PAST(board_in, t) && HAS_OUTPUT(t) -> skip
           fi
       }
       atomic { /* the first lap's wait is for parity 1, which a new barrier has behind it */
           if
#ifdef BROKEN_NO_WAIT_FOR_EMPTY
           :: true -> skip
#else
           :: empty_phase[STAGE(b, k)] == lap -> skip
#endif
           :: board_abort -> stop[b] = ABORTED; break
           fi;
           assert(stage_gs[STAGE(b, k)] == FREE);
           stage_gs[STAGE(b, k)] = WRITING;
           job[STAGE(b, k)] = t + 1;
#ifdef BROKEN_WAKES_WHEN_COPY_STARTS
           full_phase[STAGE(b, k)] = !full_phase[STAGE(b, k)];
#endif
           t = NEXT(t);
           k++;
           if
           :: k == DEPTH -> k = 0; lap = !lap
           :: else -> skip
           fi
       }
    od;
#ifndef BROKEN_LEAVES_WITH_COPY_ON_ITS_WAY
    /* Bytes must not arrive in shared memory that is somebody else's by then. */
    atomic {
        job[STAGE(b, 0)] == 0 && job[STAGE(b, DEPTH - 1)] == 0 -> t = 0; k = 0; lap = 0
    }
#endif
    atomic { block_gone[b] = 1; FINISH; }
}

proctype copy(byte b; byte k)
{
end:
    do
    :: atomic {
           job[STAGE(b, k)] != 0 ->
           assert(in_gs[SLOT(job[STAGE(b, k)] - 1)] == FULL && in_content[SLOT(job[STAGE(b, k)] - 1)] == job[STAGE(b, k)] - 1);
           in_readers[SLOT(job[STAGE(b, k)] - 1)]++
       }
       d_step {
           assert(!block_gone[b]);
           in_readers[SLOT(job[STAGE(b, k)] - 1)]--;
           stage_gs[STAGE(b, k)] = FULL;
           stage_content[STAGE(b, k)] = job[STAGE(b, k)] - 1;
           job[STAGE(b, k)] = 0;
#ifndef BROKEN_WAKES_WHEN_COPY_STARTS
           full_phase[STAGE(b, k)] = !full_phase[STAGE(b, k)];
#endif
       }
    od
}

inline store_done(t)
{
    d_step { out_written[SLOT(t)]++; }
}

proctype worker(byte b)
{
    byte t = FIRST; byte k = 0; bool parity = 0; bool is_last = 0;
    do
    :: atomic { /* parked */
           if
           :: full_phase[STAGE(b, k)] != parity -> skip
#ifndef BROKEN_PARKED_DEAF
           :: stop[b] == ABORTED -> break
#endif
           :: stop[b] == STOPPED && t == LAST -> break
           fi;
           assert(stage_gs[STAGE(b, k)] == FULL && stage_content[STAGE(b, k)] == t);
           stage_gs[STAGE(b, k)] = READING
       }
       /* The store has read the stage: it may be filled again. */
       d_step {
           assert(out_gs[SLOT(t)] == FREE || (out_gs[SLOT(t)] == WRITING && out_content[SLOT(t)] == t));
           out_gs[SLOT(t)] = WRITING; out_content[SLOT(t)] = t;
           stage_gs[STAGE(b, k)] = FREE;
           empty_phase[STAGE(b, k)] = !empty_phase[STAGE(b, k)]
       }
#ifndef BROKEN_COUNTS_BEFORE_STORE_IS_DONE
       store_done(t);
#endif
       d_step { /* atomic add in device memory */
           pieces[SLOT(t)]++;
           is_last = (pieces[SLOT(t)] == BLOCKS);
#ifdef BROKEN_FIRST_PIECE_PUBLISHES
           is_last = (pieces[SLOT(t)] == 1);
#endif
           if
           :: pieces[SLOT(t)] == BLOCKS -> pieces[SLOT(t)] = 0
           :: else -> skip
           fi
       }
       if
       :: is_last ->
          d_step { out_gs[SLOT(t)] = FULL; out_turn[SLOT(t)] = FULL_OF(t); }
          d_step { in_gs[SLOT(t)] = FREE; in_turn[SLOT(t)] = FREE_FOR(t + SLOTS); }
       :: else -> skip
       fi;
#ifdef BROKEN_COUNTS_BEFORE_STORE_IS_DONE
       store_done(t);
#endif
       d_step {
           is_last = 0;
           t = NEXT(t);
           k++;
           if
#ifdef BROKEN_FORGETS_PARITY
           :: k == DEPTH -> k = 0
#else
           :: k == DEPTH -> k = 0; parity = !parity
#endif
           :: else -> skip
           fi
       }
    od;
    atomic { t = 0; k = 0; parity = 0; blocks_left++; FINISH; }
}

#define DEVICE_LEFT (monitor_left && blocks_left == BLOCKS)

proctype watcher()
{
    bool kernel_left = 0;
    do
    :: atomic {
           if
           :: HOST_GONE -> break
           :: !HOST_GONE && closed && seen_out == LAST -> break
           :: !HOST_GONE && !(closed && seen_out == LAST) && in_flight > 0 -> skip
           :: !HOST_GONE && !(closed && seen_out == LAST) && in_flight == 0 ->
#ifdef BROKEN_WATCHER_CHECKS_THEN_SLEEPS
              goto sleep
#else
              watcher_asleep = 1; goto slept /* the futex compares and queues in one step */
#endif
           fi
       }
       /* Is there a kernel? Asked before the look at the ticket, for its last act may be to publish it. */
#ifdef BROKEN_WATCHER_ASKS_AFTERWARDS
       if
       :: out_turn[SLOT(seen_out)] != FULL_OF(seen_out) -> kernel_left = DEVICE_LEFT; goto judge
       :: out_turn[SLOT(seen_out)] == FULL_OF(seen_out) -> skip
       fi;
#else
       kernel_left = DEVICE_LEFT;
#endif
       atomic {
           if
           :: out_turn[SLOT(seen_out)] == FULL_OF(seen_out) -> seen_out = NEXT(seen_out); in_flight--; goto again
           :: else -> skip
           fi
       }
judge:
       atomic {
           if
#ifndef BROKEN_WATCHER_TRUSTS_DEVICE
           :: kernel_left -> abort_host = 1; break
#endif
           :: HOST_GONE -> break
           :: !kernel_left && (DEVICE_LEFT || out_turn[SLOT(seen_out)] == FULL_OF(seen_out)) -> skip /* polls again */
           fi
       }
       goto again;
#ifdef BROKEN_WATCHER_CHECKS_THEN_SLEEPS
sleep:
       watcher_asleep = 1;
#endif
slept:
       !watcher_asleep || DEVICE_LEFT; /* the end of the kernel wakes it */
       atomic {
           if
           :: DEVICE_LEFT && in_flight == 0 && !closed -> abort_host = 1; break
           :: else -> skip
           fi
       }
again:
       kernel_left = 0
    od;
    atomic { kernel_left = 0; FINISH; }
}

proctype consumer()
{
    byte t = FIRST;
    do
    :: atomic {
           if
           :: HOST_GONE -> break
           :: !HOST_GONE && t == LAST -> break
           :: !HOST_GONE && t != LAST && PAST(seen_out, t) ->
              assert(out_gs[SLOT(t)] == FULL && out_content[SLOT(t)] == t && out_written[SLOT(t)] == BLOCKS);
              out_gs[SLOT(t)] = READING
           fi
       }
       d_step {
           assert(out_gs[SLOT(t)] == READING && out_written[SLOT(t)] == BLOCKS);
           out_gs[SLOT(t)] = FREE; out_written[SLOT(t)] = 0;
           out_turn[SLOT(t)] = FREE_FOR(t + SLOTS);
           t = NEXT(t)
       }
    od;
    assert(t == LAST || MAY_FAIL);
    atomic { t = 0; FINISH; }
}

#if defined(ABORT) || defined(HOST_DIES)
proctype ender()
{
#ifdef ABORT
    abort_host = 1;
#else
    host_dead = 1;
#endif
    d_step { watcher_asleep = 0; FINISH; }
}
#define ENDERS 1
#else
#define ENDERS 0
#endif

init
{
    atomic {
        byte i = 0;
        do
        :: i < SLOTS ->
           in_turn[SLOT(FIRST + i)] = FREE_FOR(FIRST + i);
           out_turn[SLOT(FIRST + i)] = FREE_FOR(FIRST + i);
           i++
        :: else -> break
        od;
        i = 0;
        run producer();
#if NP == 2
        run producer();
#endif
        run monitor();
        do
        :: i < BLOCKS ->
           run service(i);
           run copy(i, 0);
#if DEPTH == 2
           run copy(i, 1);
#endif
           run worker(i);
           i++
        :: else -> break
        od;
        run watcher();
        run consumer();
#if defined(ABORT) || defined(HOST_DIES)
        run ender();
#endif
    }
}

#ifdef ENDS
ltl ends { <> (finished == NP + 3 + 2 * BLOCKS + ENDERS) }
#endif
