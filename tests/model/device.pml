/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The device side of the channel: the proxy (wic/device/proxy.c), the link (wic/device/link.h) and the resident kernel below it,
 * which starts and ends. How host threads park is channel.pml's matter: here they wait by plain guards.
 *
 *   producer, consumer   at the other ends of the proxy's two channels
 *   proxy      takes tickets, posts them to the link as tiles, hands results over in their order; sends an idle kernel
 *              away, starts another for the next ticket; finds out that one has left by itself, starts another and posts
 *              again what was not handed over. Tiles count from 0 in each run of a kernel: tile n is ticket base + n
 *   monitor    watches the link's words: doorbell -> ready board, end and abort; a host that is silent (a heartbeat timeout) is an abort
 *   stream     tiles moved by copy engine: device_engine.pml
 *   block[b]   has piece b of every tile: waits for the tile on the ready board, reads, writes, counts; the last piece of a
 *              tile makes it done
 *   WARPS      the same block as it is made: activator -full-> worker -done-> publisher -empty-> activator, with DEPTH
 *              stages; the way out is a stage filled with LEAVE
 *
 *   N, SLOTS       tickets; slots of both channels            BLOCKS, DEPTH   of the kernel; stages of a block
 *   SHORT          every other tile has a piece for block 0 only; without WARPS
 *   LONG           the last ticket's results are longer than a slot: the proxy refuses it, and nothing is written
 *   PULLS          pieces under way at most: the credits between the blocks; BLOCKS, the default: no limit
 *   IDLES          number of times that the proxy may send the kernel away with nothing under way
 *   TIMEOUTS       number of times that the host is silent for too long: at any moment, because it is stopped at any
 *   ARRIVALS       blocks arrive one by one, the first kernel's too; the Monitor is in block 0
 *   RIVAL          number of times that another kernel, of another job or program, takes the place of one block and leaves it again. A
 *                  start may take too long then: the kernel gets a request to leave and is started again, STARTS times at most
 *   RIVAL_STAYS    the last of them never leaves
 *   SETUPS         number of times that another job of the process does what a resident kernel would hold up (wic_device_options.enter,
 *                  left, is_unwanted): it waits until the kernel has left, on request; the last ticket waits for that
 *   TWO_WAY        producer and consumer are one party that sends at most this many tickets ahead of its results
 *   ABORT          a thread aborts the channels at any moment; a kernel may fail to start again
 *   HOST_DIES      the host stops at any moment, for ever     ENGINE, ENGINE_ALL, LAZY   device_engine.pml
 *
 * Proved: all parties end in every run, the kernel too; no slot or stage is read before it is full of its ticket
 * or written before it is free; every ticket leaves once, in order, with all its pieces; a slot is handed on
 * only when no block, copy or fetch can touch it any more; a kernel is started again for a reason only. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef N
#define N 3
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#ifndef PULLS
#define PULLS BLOCKS
#endif
#ifndef IDLES
#define IDLES 0
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif
#ifndef STARTS
#define STARTS 2
#endif
#if defined(RIVAL_STAYS) && !defined(RIVAL)
#define RIVAL 1
#endif
#if defined(RIVAL) && !defined(ARRIVALS)
#define ARRIVALS
#endif

#ifdef SHORT
#define MOD       32 /* beyond a ring, newer and older differ */
#else
#define MOD       4 /* modulus of the marks on doorbell and ready board, which wrap; more than ring entries */
#endif
#define RING      SLOTS
#define SLOT(t)   ((t) % SLOTS)
#define ENTRY(n)  ((n) % RING)
#define MARK(n)   (((n) + 1) % MOD)
#define OPEN      254
#define ABORTED   255
#ifdef SHORT
#define PIECES(t) ((t) % 2 == 0 -> 1 : BLOCKS)
#else
#define PIECES(t) BLOCKS
#endif
#define HAS(t, b) ((b) < PIECES(t))
#define ALL(t)    ((1 << PIECES(t)) - 1)

#ifdef HOST_DIES /* between any two steps of a host thread */
#define ALIVE     {
#define TILL_DEAD } unless { dead }
#else
#define ALIVE
#define TILL_DEAD
#endif

/* --- the channels --- */
byte in_published, in_released, out_published, out_released;
bool in_closed, out_closed, aborted;

/* --- the link: pinned words --- */
byte control_end = OPEN;
byte done[RING]; /* tile + 1 */
byte doorbell[RING];

/* --- device memory --- */
byte state_end = OPEN;
byte ready_board[RING];
byte arrived[RING];
#if PULLS < BLOCKS
byte passed[BLOCKS]; /* pieces that the block has pulled */
#endif
byte first; /* part of what a kernel is started with: the ticket of tile 0 */

/* --- the kernel: its parts that are there --- */
#ifdef WARPS
#define PARTS (1 + 3 * BLOCKS)
#else
#define PARTS (1 + BLOCKS)
#endif
#define EVERYBODY ((1 << PARTS) - 1)
#ifdef ARRIVALS
byte here, coming; /* `coming`: launched, not yet there */
#else
byte here = EVERYBODY;
#define coming 0
#endif
#define IS_HERE(part) (here & (1 << (part)))
#define LEAVE_AS(part) here = here & ~(1 << (part))
#define MONITOR 0

#ifdef ARRIVALS
#ifdef WARPS
#define PARTS_OF(b) ((7 << (1 + 3 * (b))) | ((b) == 0 -> 1 : 0))
#else
#define PARTS_OF(b) ((1 << (1 + (b))) | ((b) == 0 -> 1 : 0))
#endif
byte entered; /* device memory: blocks of this kernel that have arrived */
bool started; /* pinned: all have */
#endif
#ifdef RIVAL
byte places_taken; /* places of the rival */
#endif

#ifdef SETUPS
byte staying = 1, setups_under_way, setups_done; /* staying: launches that have entered and not left */
#ifdef BROKEN_NOT_ASKED_TO_LEAVE
#define IS_UNWANTED 0
#else
#define IS_UNWANTED (setups_under_way > 0)
#endif
#define ENTER  atomic { setups_under_way == 0 -> staying++ }
#define LEFT   staying = 0
#define SETUPS_ARE_DONE (setups_done == SETUPS)
#else
#define IS_UNWANTED 0
#define ENTER  skip
#define LEFT   skip
#define SETUPS_ARE_DONE 1
#endif

#ifdef WARPS /* --- a block's shared memory --- */
#define STAGE(b, k) ((b) * DEPTH + (k))
#define LEAVE 255
/* Barriers: an arriving party adds, a parked one takes all; no party arrives twice in a round. */
bool full_at[BLOCKS * DEPTH], done_at[BLOCKS * DEPTH];
byte empty_at[BLOCKS * DEPTH];
byte stage_tile[BLOCKS * DEPTH];
byte stage_in[BLOCKS * DEPTH], stage_out[BLOCKS * DEPTH]; /* ticket + 1 of what is there */
#endif

/* --- ghosts --- */
byte in_of[SLOTS], out_of[SLOTS]; /* ticket + 1 that the slot is full of, acquired for; 0: free */
byte pieces[SLOTS];               /* bits: which of the ticket are in the output slot */
byte silences, lost;                /* how often the host was silent, a kernel was found gone */
#ifdef HOST_DIES
bool dead;
#endif
bool proxy_gone; /* slots may be unpinned */
byte posted, finished; /* the proxy's: tickets before them are posted, handed over */
byte base;             /* the ticket of tile 0, as the proxy counts */
#define TILE(t)    ((t) - base)
#ifdef ENGINE_ALL
#define ENGINE
#endif
#ifdef ENGINE
#include "device_engine.pml"
#define QUEUE_EMPTY QUEUES_EMPTY
#define CAN_READ(t) (IS_BY(TILE(t)) -> device_of[SLOT(t)] == (t) + 1 : in_of[SLOT(t)] == (t) + 1)
#else
#define QUEUE_EMPTY 1
#define CAN_READ(t) (in_of[SLOT(t)] == (t) + 1)
#endif
#ifdef ENDS
byte finished_parts;
#define FINISH finished_parts++
#else
#define FINISH skip
#endif

#ifdef TWO_WAY
#define MAY_SEND (in_published - out_released < TWO_WAY)
#else
#define MAY_SEND 1
#endif

proctype producer()
{
    ALIVE
    do
    :: atomic { aborted -> break }
    :: d_step {
           !aborted && in_published < N && in_published - in_released < SLOTS && MAY_SEND &&
           (in_published < N - 1 || SETUPS_ARE_DONE) ->
           assert(in_of[SLOT(in_published)] == 0);
           in_of[SLOT(in_published)] = in_published + 1;
           in_published++
       }
    :: atomic { !aborted && in_published == N -> in_closed = 1; break }
    od
    TILL_DEAD;
    FINISH
}

proctype consumer()
{
    ALIVE
    do
    :: atomic { aborted -> break }
    :: d_step { /* reads all the while; this is where it ends */
           !aborted && out_released < out_published ->
           assert(out_of[SLOT(out_released)] == out_released + 1 && pieces[SLOT(out_released)] == ALL(out_released));
           out_of[SLOT(out_released)] = 0; pieces[SLOT(out_released)] = 0;
           out_released++
       }
    :: atomic { !aborted && out_closed && out_released == out_published -> assert(out_released == N); break }
    od
    TILL_DEAD;
    FINISH
}

/* --- the proxy --- */

#define IS_DONE(t) (done[ENTRY(TILE(t))] == TILE(t) + 1)
#define RUNNING    ((here | coming) != 0)

inline post(t)
{
    /* Pieces of an earlier try in the slot do not count. */
    d_step { pieces[SLOT(t)] = 0; }
#ifdef ENGINE
    engine_post(t)
#else
    doorbell[ENTRY(TILE(t))] = MARK(TILE(t))
#endif
}

inline close_link()
{
    d_step {
        if
        :: control_end == OPEN ->
#ifdef BROKEN_CLOSES_AT_TICKET
           control_end = posted
#else
           control_end = posted - base
#endif
        :: else -> skip
        fi
    }
}

inline clear_host_words()
{
    d_step {
#ifndef BROKEN_END_LEFT_CLOSED
        control_end = OPEN;
#endif
#if defined(ARRIVALS) && !defined(BROKEN_STARTED_NOT_CLEARED)
        started = 0;
#endif
        i = 0;
        do
        :: i < RING ->
#ifndef BROKEN_DOOR_NOT_CLEARED
           doorbell[i] = 0;
#endif
#ifndef BROKEN_DONE_NOT_CLEARED
           done[i] = 0;
#endif
           i++
        :: else -> break
        od;
        i = 0
    }
}

/* In the stream of the old kernel, therefore after it whatever the proxy does; shared memory is as
 * if never used. */
inline launch()
{
    d_step {
        !RUNNING ->
        state_end = OPEN;
#if defined(ENGINE) && !defined(BROKEN_LANDED_NOT_CLEARED)
        landed[0] = 0; landed[1] = 0;
#endif
        i = 0;
        do
        :: i < RING ->
#ifndef BROKEN_BOARD_NOT_CLEARED
           ready_board[i] = 0;
#endif
#ifndef BROKEN_ARRIVED_NOT_CLEARED
           arrived[i] = 0;
#endif
           i++
        :: else -> break
        od;
        i = 0;
#if PULLS < BLOCKS
        do
        :: i < BLOCKS -> passed[i] = 0; i++
        :: else -> break
        od;
        i = 0;
#endif
#ifdef WARPS
        do
        :: i < BLOCKS * DEPTH -> full_at[i] = 0; done_at[i] = 0; empty_at[i] = 0; stage_in[i] = 0; stage_out[i] = 0; i++
        :: else -> break
        od;
        i = 0;
#endif
#ifndef BROKEN_OFFSETS_STAY
        first = base;
#endif
        lost = silences;
#ifdef ARRIVALS
        entered = 0;
        coming = EVERYBODY
#else
        here = EVERYBODY
#endif
    }
}

#ifdef RIVAL
#define IN_TIME 0
#else
#define IN_TIME 1
#endif

/* Waits until all blocks are there, unless that takes too long. */
inline wait_until_started()
{
#ifdef ARRIVALS
    if
    :: d_step { started -> tries = 0; busy = 0 }
    :: atomic { !IN_TIME && !started -> tries++; busy = 1 }
#ifndef BROKEN_NO_ABORT_WITHOUT_ROOM
       control_end = ABORTED
#endif
    fi
#else
    skip
#endif
}

/* Waits for the end of the kernel before, which may be queued for the device still. */
inline wait_for_stream()
{
#ifdef ARRIVALS
    if
    :: d_step { !RUNNING -> busy = 0 }
    :: d_step { !IN_TIME && RUNNING -> tries++; busy = 1 }
    fi
#else
    !RUNNING
#endif
}

/* Nothing of the old kernel or what was queued for it may be left. */
inline start()
{
#ifdef BROKEN_RESTARTS_BEFORE_IT_LEFT
    clear_host_words();
    wait_for_stream();
#else
    wait_for_stream();
#ifdef ARRIVALS
    if
    :: !busy -> clear_host_words()
    :: else -> skip
    fi;
#else
    clear_host_words();
#endif
#endif
#ifdef ARRIVALS
    if
    :: !busy ->
#endif
#ifndef BROKEN_RESTARTS_WITH_COPIES_QUEUED
       QUEUE_EMPTY;
#endif
       d_step {
           base = finished;
#ifdef ENGINE
           engine_reset();
#endif
       }
       launch();
       wait_until_started()
#ifdef ARRIVALS
    :: else -> skip
    fi
#endif
}

/* wic_link_join, and that this launch is over. */
inline left()
{
#ifdef SETUPS
#ifndef BROKEN_LEFT_BEFORE_ITS_END
    !RUNNING;
#endif
    LEFT
#else
    skip
#endif
}

/* Tickets from `finished` on are posted again. */
inline restart()
{
    ENTER;
#ifdef ARRIVALS
    tries = 0; busy = 1;
    do
    :: busy && tries == STARTS -> goto failed
    :: busy && tries < STARTS && aborted -> goto failed
    :: busy && tries < STARTS && !aborted -> start()
    :: !busy -> break
    od;
    skip;
#else
    start();
#endif
    d_step {
#ifdef BROKEN_REPOSTS_FROM_POSTED
        t = posted;
#else
        t = finished;
#endif
        sent_away = 0
    }
    do
    :: t < posted ->
       post(t);
       t++
    :: else -> t = 0; break
    od;
#ifndef BROKEN_NOT_CLOSED_AGAIN
    if
    :: ended -> close_link()
    :: else -> skip
    fi
#endif
}

#if defined(ENGINE) && !defined(BROKEN_PUBLISHES_BEFORE_BACK)
#define READY (finished < posted && IS_DONE(finished) && (!IS_BY(TILE(finished)) || IS_BACK(TILE(finished))))
#else
#define READY (finished < posted && IS_DONE(finished))
#endif

#ifdef BROKEN_RESTARTS_BEFORE_IT_LEFT /* it should be gone by now */
#define IS_LOST (!sent_away && silences > lost && finished < posted && !IS_DONE(finished))
#else
#define IS_LOST (!sent_away && !RUNNING && finished < posted && !IS_DONE(finished))
#endif

#ifdef BROKEN_HANDS_OVER_WHEN_FULL
#define HANDS_OVER (ended || posted - finished == SLOTS)
#else
#define HANDS_OVER 1
#endif

#define CALLS (!ended && posted - finished < SLOTS) /* into the channels for one more ticket */

proctype proxy()
{
    byte t = 0, i = 0, idles = 0;
#ifdef ENGINE
    byte k = 0;
#endif
    bool ended = 0, holds = 0, sent_away = 0;
#ifdef ARRIVALS
    byte tries = 0;
    bool busy = 0;
    sent_away = 1; /* no kernel yet */
#endif
    ALIVE
    do
    /* Hand over. */
#ifdef ENGINE
    :: ENGINE_MOVES -> engine_step()
#endif
    :: atomic {
           READY && HANDS_OVER ->
           if
           :: aborted -> goto failed
           :: else ->
              assert(out_of[SLOT(finished)] == finished + 1 && out_published == finished);
              out_published++
           fi
       }
#ifndef BROKEN_RELEASES_WHEN_COPIED
       d_step {
           assert(in_of[SLOT(finished)] == finished + 1);
           in_of[SLOT(finished)] = 0;
           in_released++;
       }
#endif
       d_step { finished++; }
#ifdef BROKEN_RELEASES_WHEN_COPIED
    :: d_step { in_released < posted && CAN_READ(in_released) -> in_of[SLOT(in_released)] = 0; in_released++ }
#endif
    /* One more. */
    :: atomic { CALLS && aborted -> goto failed }
    :: atomic { CALLS && !aborted && !holds && posted < in_published -> holds = 1 }
    :: atomic { CALLS && !aborted && !holds && in_closed && posted == in_published -> ended = 1 }
       if
       :: !sent_away -> close_link()
       :: else -> skip
       fi
    :: atomic {
#ifdef BROKEN_NO_OUTPUT_SLOT
           CALLS && !aborted && holds -> holds = 0
#else
           CALLS && !aborted && holds && posted - out_released < SLOTS ->
           assert(out_of[SLOT(posted)] == 0);
           out_of[SLOT(posted)] = posted + 1;
           holds = 0
#endif
       }
#if defined(LONG) && !defined(BROKEN_POSTS_WHAT_DOES_NOT_FIT)
       if
       :: posted == N - 1 -> goto failed
       :: else -> skip
       fi;
#endif
       if
#ifndef BROKEN_POSTS_TO_WHO_IS_LEAVING
       :: sent_away ->
#ifdef ABORT
          if
          :: true -> skip
          :: true -> goto failed /* another program fills the device */
          fi;
#endif
          restart()
#endif
       :: else -> skip
       fi;
       post(posted);
       d_step { posted++; }
    /* Nothing under way for a while. */
    :: atomic { idles < IDLES && !sent_away && !ended && posted == finished -> idles++; sent_away = 1 }
       close_link();
       left()
    :: atomic { IS_UNWANTED && !sent_away && !ended && posted == finished -> sent_away = 1 }
       close_link();
       left()
    /* It has left by itself: with nothing under way it is as if sent away, if seen at all. */
    :: d_step { TIMEOUTS > 0 && !sent_away && !ended && !RUNNING && posted == finished -> sent_away = 1; LEFT }
    /* With tiles under way it is lost. The look at the oldest tile follows, because its last act
     * may be that. */
#ifdef BROKEN_LOOKS_AND_THEN_ASKS
    :: finished < posted && !sent_away && !IS_DONE(finished) ->
       atomic { !RUNNING || IS_DONE(finished) ->
           if
           :: !RUNNING -> assert(silences > lost)
           :: else -> skip
           fi
       }
#endif
    :: atomic { IS_LOST -> assert(silences > lost); lost = silences; LEFT }
       restart()
    :: atomic { ended && finished == posted -> break }
    od;
    out_closed = 1;
    goto leaves;
failed:
#ifndef BROKEN_NO_ABORT_WITHOUT_ROOM
    control_end = ABORTED;
#endif
leaves:
#ifdef RIVAL /* work queued after the rival stays so: nothing is freed */
    if
    :: !RUNNING -> skip
    :: RUNNING && !started -> aborted = 1; LEFT; goto gone
    fi;
#else
    !RUNNING;
#endif
#ifndef BROKEN_LEAVES_WITH_COPIES_QUEUED
    QUEUE_EMPTY;
#endif
    d_step {
        LEFT;
        proxy_gone = 1;
        if
        :: !out_closed -> aborted = 1
        :: else -> skip
        fi
    }
gone:
    skip
    TILL_DEAD;
    d_step { t = 0; i = 0; idles = 0; ended = 0; holds = 0; sent_away = 0; FINISH; }
}

/* --- hardware --- */

#ifdef ARRIVALS
#ifdef BROKEN_FIRST_BLOCK_STARTS
#define STARTS_ALL (entered == 1)
#else
#define STARTS_ALL (entered == BLOCKS)
#endif

#ifdef RIVAL
#define HAS_ROOM (!places_taken || BLOCKS_HERE < BLOCKS - 1)
#define BLOCKS_HERE (((here & PARTS_OF(0)) != 0) + ((here & PARTS_OF(1)) != 0))
#if BLOCKS != 2
#error "the rival counts two blocks"
#endif

/* Takes a place that no block has. */
proctype rival()
{
    byte i = 0;
end:
    do
    :: d_step { i < RIVAL && !places_taken && BLOCKS_HERE < BLOCKS -> places_taken = 1; i++ }
#ifdef RIVAL_STAYS
    :: d_step { places_taken && i < RIVAL -> places_taken = 0 }
#else
    :: d_step { places_taken -> places_taken = 0 }
#endif
    od
}
#else
#define HAS_ROOM 1
#endif

/* Brings the blocks onto the device; the last one to enter reports to the host. */
#define ARRIVES(b) d_step { coming & PARTS_OF(b) && HAS_ROOM -> \
                            here = here | PARTS_OF(b); coming = coming & ~PARTS_OF(b); entered++; started = started || STARTS_ALL }
proctype scheduler()
{
end:
    do
    :: ARRIVES(0)
    :: ARRIVES(1)
#if BLOCKS > 2
    :: ARRIVES(2)
#endif
    od
}
#endif

/* --- the kernel --- */

#ifdef HOST_DIES
#define SILENT dead
#else
#define SILENT (silences < TIMEOUTS)
#endif

/* A word is a mark, 32: by engine, 64: by the second lane. */
#define WORD_IS(word, n) (((word) & 31) == MARK(n))
#ifndef ENGINE
#define HAS_LANDED(word, n) 1
#elif defined(BROKEN_MONITOR_IGNORES_LANDED)
#define HAS_LANDED(word, n) 1
#elif defined(BROKEN_LANDED_OF_FIRST_LANE)
#define HAS_LANDED(word, n) (!((word) & 32) || landed[0] > (n))
#else
#define HAS_LANDED(word, n) (!((word) & 32) || landed[((word) >> 6) & 1] > (n))
#endif

proctype monitor()
{
    byte next = 0;
end:
    do
    :: IS_HERE(MONITOR) ->
       do
       :: d_step {
              WORD_IS(doorbell[ENTRY(next)], next) && HAS_LANDED(doorbell[ENTRY(next)], next) ->
              ready_board[ENTRY(next)] = doorbell[ENTRY(next)]; next++
          }
       :: d_step { control_end != state_end -> state_end = control_end }
       :: atomic { state_end == ABORTED -> break }
       :: atomic { next >= state_end -> break }
#ifndef BROKEN_NO_HEARTBEAT
       :: atomic { SILENT -> silences++; state_end = ABORTED; break }
#endif
       od;
       atomic { next = 0; LEAVE_AS(MONITOR) }
    od
}

#define IS_OVER(n) ((n) >= state_end) /* OPEN and ABORTED are more than any */
#ifdef BROKEN_ACTIVATOR_DEAF
#define HEARS_ABORT 0
#else
#define HEARS_ABORT (state_end == ABORTED)
#endif
#define ON_BOARD(n) WORD_IS(ready_board[ENTRY(n)], n)
#define TICKET(n)  (first + (n))

/* Piece g is pulled when g - PULLS is. */
#if PULLS < BLOCKS
#define AHEAD(b) (((b) + BLOCKS - PULLS) % BLOCKS)
#ifdef BROKEN_FIRST_WAITS_TOO
#define LETS_PASS(n, b) (passed[AHEAD(b)] > (n))
#else
#define LETS_PASS(n, b) (passed[AHEAD(b)] > (n) || ((b) < PULLS && passed[AHEAD(b)] == (n)))
#endif
#else
#define AHEAD(b) (b)
#define LETS_PASS(n, b) 1
#endif
#define CAN_PULL(n, b) (!IS_OVER(n) && HAS(TICKET(n), b) && ON_BOARD(n) && LETS_PASS(n, b))
/* A block that has no piece of a tile passes it. No block waits for that: the tile's word on the
 * ready board may belong to the tile a ring further on. */
#ifdef BROKEN_WAITS_FOR_WHAT_IS_OVER
#define WAS_ON_BOARD(n) ON_BOARD(n)
#else
#define WAS_ON_BOARD(n) ((ready_board[ENTRY(n)] & 31) >= MARK(n))
#endif
#define CAN_PASS(n, b) (!IS_OVER(n) && !HAS(TICKET(n), b) && WAS_ON_BOARD(n) && LETS_PASS(n, b))

#ifdef ARRIVALS
/* The Monitor does not arrive: its block waits for room. The host gives up before, because a start
 * may take less time than two heartbeats. */
#define TIRES(n, b)     0
#ifdef BROKEN_WAITS_FOR_A_MONITOR_WITHOUT_ROOM
#define TIRES_TOO(n, b) 0
#else
#define TIRES_TOO(n, b) (!IS_HERE(MONITOR) && state_end == OPEN && control_end == ABORTED)
#endif
#else
#define TIRES(n, b)    0
#define TIRES_TOO(n, b) 0
#endif

inline pass_piece(b)
{
#if PULLS < BLOCKS
    passed[b]++
#else
    skip
#endif
}

inline read_piece(n, b)
{
    assert(CAN_READ(TICKET(n)));
    pass_piece(b)
}

inline write_piece(n, b)
{
    assert(out_of[SLOT(TICKET(n))] == TICKET(n) + 1 && out_published <= TICKET(n));
#ifdef LONG
    assert(TICKET(n) < N - 1); /* the next slot belongs to another ticket */
#endif
#ifdef ENGINE
    if
    :: IS_BY(n) -> made[SLOT(TICKET(n))] = made[SLOT(TICKET(n))] | (1 << b)
    :: else -> pieces[SLOT(TICKET(n))] = pieces[SLOT(TICKET(n))] | (1 << b)
    fi
#else
    pieces[SLOT(TICKET(n))] = pieces[SLOT(TICKET(n))] | (1 << b)
#endif
}

inline count_piece(n)
{
    arrived[ENTRY(n)]++;
    if
#ifdef BROKEN_FIRST_PIECE_PUBLISHES
    :: arrived[ENTRY(n)] == 1 -> done[ENTRY(n)] = n + 1
    :: arrived[ENTRY(n)] == BLOCKS -> arrived[ENTRY(n)] = 0
#else
    :: arrived[ENTRY(n)] == PIECES(TICKET(n)) -> arrived[ENTRY(n)] = 0; done[ENTRY(n)] = n + 1
#endif
    :: else -> skip
    fi
}

#ifndef WARPS
proctype block(byte b)
{
    byte n = 0;
end:
    do
    :: IS_HERE(1 + b) ->
       do
       :: atomic { HEARS_ABORT || IS_OVER(n) -> break }
       :: atomic { TIRES(n, b) -> silences++; break }
       :: atomic { TIRES_TOO(n, b) -> break }
#ifdef SHORT
       :: d_step { CAN_PASS(n, b) -> pass_piece(b); n++ }
#endif
       :: CAN_PULL(n, b) ->
          d_step { read_piece(n, b); }
          d_step { write_piece(n, b); }
          d_step { count_piece(n); n++; }
       od;
       atomic { n = 0; LEAVE_AS(1 + b) }
    od
}
#else
inline next_stage()
{
    k++;
    if
    :: k == DEPTH -> k = 0
    :: else -> skip
    fi
}

proctype activator(byte b)
{
    byte n = 0, k = 0;
end:
    do
    :: IS_HERE(1 + 3 * b) ->
       do
       :: atomic { /* the first round needs no permission */
              if
#ifdef BROKEN_NO_WAIT_FOR_EMPTY
              :: true -> empty_at[STAGE(b, k)] = 0
#else
              :: n < DEPTH -> skip
              :: n >= DEPTH && empty_at[STAGE(b, k)] == 2 -> empty_at[STAGE(b, k)] = 0
#endif
              fi
          }
          atomic {
              if
              :: HEARS_ABORT || IS_OVER(n) -> break
              :: CAN_PULL(n, b) -> skip
              fi;
              stage_tile[STAGE(b, k)] = n
#ifdef BROKEN_OPENS_WHEN_PULL_STARTS
              ; full_at[STAGE(b, k)] = 1
#endif
          }
          d_step {
              read_piece(n, b);
#ifndef BROKEN_OPENS_WHEN_PULL_STARTS
              assert(stage_in[STAGE(b, k)] == 0);
#endif
              stage_in[STAGE(b, k)] = TICKET(n) + 1;
#ifndef BROKEN_OPENS_WHEN_PULL_STARTS
              assert(!full_at[STAGE(b, k)]);
              full_at[STAGE(b, k)] = 1;
#endif
              n++;
              next_stage()
          }
       od;
       atomic {
           stage_tile[STAGE(b, k)] = LEAVE;
           full_at[STAGE(b, k)] = 1;
           n = 0; k = 0;
           LEAVE_AS(1 + 3 * b)
       }
    od
}

proctype worker(byte b)
{
    byte k = 0;
end:
    do
    :: IS_HERE(2 + 3 * b) ->
       do
       :: atomic { /* parked */
              full_at[STAGE(b, k)] -> full_at[STAGE(b, k)] = 0;
              if
              :: stage_tile[STAGE(b, k)] == LEAVE -> break
              :: else -> skip
              fi
          }
          d_step {
              assert(stage_in[STAGE(b, k)] == TICKET(stage_tile[STAGE(b, k)]) + 1);
              assert(stage_out[STAGE(b, k)] == 0 && !done_at[STAGE(b, k)] && empty_at[STAGE(b, k)] < 2);
              stage_in[STAGE(b, k)] = 0;
              stage_out[STAGE(b, k)] = TICKET(stage_tile[STAGE(b, k)]) + 1;
              done_at[STAGE(b, k)] = 1;
              empty_at[STAGE(b, k)]++;
              next_stage()
          }
       od;
       atomic {
#ifndef BROKEN_LEAVE_NOT_PASSED_ON
           done_at[STAGE(b, k)] = 1;
#endif
           k = 0;
           LEAVE_AS(2 + 3 * b)
       }
    od
}

/* For a stage that is done: reads the results and gives the stage back. */
inline take_results(n)
{
#ifdef BROKEN_EMPTY_BEFORE_RESULTS_ARE_READ
    d_step { empty_at[STAGE(b, k)]++; }
    d_step { assert(stage_out[STAGE(b, k)] == TICKET(n) + 1); stage_out[STAGE(b, k)] = 0; group++; next_stage() }
#else
    d_step {
        assert(stage_out[STAGE(b, k)] == TICKET(n) + 1 && empty_at[STAGE(b, k)] < 2);
        stage_out[STAGE(b, k)] = 0;
        empty_at[STAGE(b, k)]++;
        group++;
        next_stage()
    }
#endif
}

/* Pieces that are done at the same time are stored and counted together. */
proctype publisher(byte b)
{
    byte n = 0, k = 0, group = 0;
end:
    do
    :: IS_HERE(3 + 3 * b) ->
       do
       :: atomic { /* parked */
              group == 0 && done_at[STAGE(b, k)] -> done_at[STAGE(b, k)] = 0;
              n = stage_tile[STAGE(b, k)];
              if
              :: n == LEAVE -> break
              :: else -> skip
              fi
          }
          take_results(n)
       :: d_step {
              group > 0 && group < DEPTH && done_at[STAGE(b, k)] && stage_tile[STAGE(b, k)] == n + group ->
              done_at[STAGE(b, k)] = 0
          }
          take_results(n + group)
       :: group > 0 ->
          do
          :: group > 0 ->
#ifdef BROKEN_COUNTS_BEFORE_WRITTEN
             d_step { count_piece(n); }
             d_step { write_piece(n, b); group--; n++ }
#else
             d_step { write_piece(n, b); }
             d_step { count_piece(n); group--; n++ }
#endif
          :: else -> n = 0; break
          od
       od;
       atomic { n = 0; k = 0; LEAVE_AS(3 + 3 * b) }
    od
}
#endif

#ifdef SETUPS
proctype another_job()
{
    do
    :: setups_done < SETUPS ->
       setups_under_way++;
       staying == 0;
       assert(!RUNNING);
       d_step { setups_under_way--; setups_done++ }
    :: else -> break
    od
}
#endif

#if defined(ABORT) || defined(HOST_DIES)
proctype ender()
{
#ifdef ABORT
    aborted = 1;
#else
    dead = 1;
#endif
    FINISH
}
#define ENDERS 1
#else
#define ENDERS 0
#endif

init
{
    atomic {
        byte b = 0;
        run producer();
        run proxy();
        run consumer();
#ifdef ENGINE
        run stream_in(to_device0, 0); run stream_in(to_device1, 1);
        run stream_out(to_host0, 0); run stream_out(to_host1, 1);
#endif
#ifdef ARRIVALS
        run scheduler();
#endif
#ifdef SETUPS
        run another_job();
#endif
#ifdef RIVAL
        run rival();
#endif
        run monitor();
        do
        :: b < BLOCKS ->
#ifdef WARPS
           run activator(b); run worker(b); run publisher(b);
#else
           run block(b);
#endif
           b++
        :: else -> break
        od;
        b = 0;
#if defined(ABORT) || defined(HOST_DIES)
        run ender();
#endif
    }
}

#ifdef ENDS
ltl ends { <> (finished_parts == 3 + ENDERS && !RUNNING) }
#endif
