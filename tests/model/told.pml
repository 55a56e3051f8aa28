/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two-way traffic by steps that no party knows beforehand (wic/bench/replay_told.cu, whose device walks by
 * wic/pattern/replay.cuh): D0 has the schedule and gives D1 its steps one by one; chunks pass a ring each way; the
 * results of D1's own steps are reported to D0 and decide the next one. Every access to memory that both see is one step here.
 * Its words are released and acquired, so interleaving is all there is. run_spin.py checks it in several shapes, and checks
 * that each BROKEN_* (a mistake one could make) is found.
 *
 *   N, COUNT               steps in all; chunks of a step, at most
 *   SLOTS, STEPS           of a ring of chunks; of the ring of steps
 *   WAYS_END               any step may end with fewer chunks, as its way has ended; its sender marks this in the ring
 *   ABORT                  D0 gives up before any chunk
 *
 * What is proved, for each shape: both parties end in every run; D1 reads each step as D0 wrote it, and D0 the report of
 * D1 on that very step; a chunk is read as it was written, after that and before it is overwritten. Directions, counts and ends
 * are any, so every pattern is covered. */

#ifndef N
#define N 4
#endif
#ifndef COUNT
#define COUNT 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef STEPS
#define STEPS (SLOTS + 1)
#endif

#define OPEN  100 /* value of last */
#define ENDED 99  /* a chunk that does not exist */

/* --- shared: from D0 `given`, `last`, `abort`; from D1 `told`, `outcome`; from the sender and the receiver of a way --- */
byte given, last = OPEN;
bool abort;
byte steps[STEPS];
byte told, outcome;
byte published[2], allowed[2];
byte slot[4]; /* way * 2 + turn % SLOTS; SLOTS is 1 or 2 */

/* --- ghosts --- */
byte wrote[N];  /* the steps */
byte said;      /* last word of D1 */
byte of_step;   /* and of which step */
bool d0_left, d1_left;

#define SLOT(way, turn) slot[(way) * 2 + (turn) % SLOTS]
/* Content of a chunk: way and turn. */
#define CHUNK(way, turn) ((way) * 40 + (turn))

/* Sends or receives a chunk, or a way's end; over: it was the end. may_stop: leaves when the abort word is set. */
inline sends(way, turn, may_stop)
{
#ifdef BROKEN_SENDS_WITHOUT_ROOM
    skip;
#else
    if
    :: allowed[way] > turn
    :: may_stop && abort -> stop = true
    fi;
#endif
    if
    :: stop
    :: else ->
        over = false;
#ifdef WAYS_END
        if
        :: over = true
        :: skip
        fi;
#endif
#ifdef BROKEN_PUBLISHES_BEFORE_WRITTEN
        published[way] = turn + 1;
        SLOT(way, turn) = (over -> ENDED : CHUNK(way, turn))
#else
        SLOT(way, turn) = (over -> ENDED : CHUNK(way, turn));
        published[way] = turn + 1
#endif
    fi
}

inline receives(way, turn, may_stop)
{
    if
    :: published[way] > turn
    :: may_stop && abort -> stop = true
    fi;
    if
    :: stop
    :: else ->
#ifdef BROKEN_GIVES_BACK_BEFORE_READ
        allowed[way] = turn + 1 + SLOTS;
#endif
        over = SLOT(way, turn) == ENDED;
        assert(over || SLOT(way, turn) == CHUNK(way, turn));
#ifndef BROKEN_GIVES_BACK_BEFORE_READ
        allowed[way] = turn + 1 + SLOTS
#endif
    fi
}

active proctype D0()
{
    byte i, k, way, count, turn[2], heard;
    bool stop, over;
    allowed[0] = SLOTS; /* before the kernel is launched */
    allowed[1] = SLOTS;
    do
    :: i < N && !stop ->
        if
        :: way = 0
        :: way = 1
        fi;
        if
        :: count = 1
        :: count = COUNT
        fi;
        wrote[i] = way * 10 + count;
#ifdef BROKEN_GIVES_BEFORE_WRITTEN
        given = i + 1;
        steps[i % STEPS] = way * 10 + count;
#else
        steps[i % STEPS] = way * 10 + count;
        given = i + 1;
#endif
        over = false;
        k = 0;
        do
        :: k < count && !over && !stop ->
#ifdef ABORT
            if
            :: stop = true; break
            :: skip
            fi;
#endif
            if
            :: way == 0 -> sends(0, turn[0], false)
            :: else -> receives(1, turn[1], false)
            fi;
            turn[way] = turn[way] + 1;
            k++
        :: else -> break
        od;
        if
        :: way == 1 && !stop ->
#ifndef BROKEN_READS_WHAT_WAS_NOT_TOLD
            told > heard;
#endif
            assert(outcome == said && of_step == i);
            heard++
        :: else
        fi;
        i++
    :: else -> break
    od;
    if
    :: stop -> abort = true
    :: else ->
#ifndef BROKEN_NEVER_SAYS_THE_END
        last = i
#endif
    fi;
    d0_left = true
}

active proctype D1()
{
    byte i, k, way, count, moved, turn[2];
    bool stop, over;
    allowed[0] == SLOTS && allowed[1] == SLOTS || given > 0; /* it was launched */
    do
    :: !stop ->
        if
        :: given > i
        :: last <= i -> break
#ifndef BROKEN_DEAF_TO_THE_ABORT
        :: abort -> stop = true; break
#endif
        fi;
        way = steps[i % STEPS] / 10;
        count = steps[i % STEPS] % 10;
        assert(way * 10 + count == wrote[i]);
        over = false;
        moved = 0;
        k = 0;
        do
        :: k < count && !over && !stop ->
            if
            :: way == 1 -> sends(1, turn[1], true)
            :: else -> receives(0, turn[0], true)
            fi;
            turn[way] = turn[way] + 1;
            moved = moved + (!over);
            k++
        :: else -> break
        od;
        if
        :: way == 1 && !stop ->
            said = moved;
            of_step = i;
#ifdef BROKEN_TELLS_BEFORE_WRITTEN
            told++;
            outcome = moved
#else
            outcome = moved;
            told++
#endif
        :: else
        fi;
        i++
    :: else -> break
    od;
    d1_left = true
}

#ifdef ENDS
ltl ends { <> (d0_left && d1_left) }
#endif
