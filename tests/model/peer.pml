/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One lane between two kernels (wic/peer): in each party's block an Activator, the working warps and a Publisher, with
 * the gates between them; chunks, ready words and credits between the parties. Each word is released and acquired, so
 * interleaving is all there is (wic/device's litmus tests have the order of memory). run_spin.py checks it in several
 * shapes, and checks that each BROKEN_* (a mistake one could make) is found.
 *
 *   N, SLOTS, DEPTH        chunks each way; of the ring; stages of a block
 *   ANSWERS                chunks are sent to and fro; otherwise all from party 0 to party 1
 *   BULK, PULL             the transport; otherwise the work stores into the receiver's ring
 *   ABSENT                 party 0 never starts; its peer's wait has a limit
 *   ONE_LEAVES             party 0 may give up in any wait
 *   STOP                   the host may stop both at any time
 *
 * What is proved, for each shape: every run ends with all roles of all blocks at their end; a chunk is read as it was
 * written, after that, and before it is overwritten; a stage is not filled while it is in use. */

#ifndef N
#define N 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifdef ANSWERS
#define ITEMS (2 * N)
#else
#define ITEMS N
#endif

#define LEAVE 2
#define MAKE  0
#define USE   1

/* --- shared by the parties, by direction: 0 is from party 0 --- */
byte ring[8]; /* direction * 4 + slot; the chunk's number + 1; 0: being written */
byte ready[8];
byte credit[2];
bool stop[2], host_stop;

/* --- of a party's block, by party * DEPTH + stage --- */
byte kind[4], number[4], way[4], buffer[4];
byte opened[4], finished[4], emptied[4]; /* gates that were opened and not passed yet */
bool in_use[4];
byte left; /* roles at their end */
bool early[2];

#define AT(party, stage) ((party) * 2 + (stage))
#define SLOT(d, n)       ((d) * 4 + (n) % SLOTS)
#define CREDITS          (SLOTS > 1 -> SLOTS / 2 : 1) /* chunks for each post of a credit */

/* Direction and number of an item. */
#ifdef ANSWERS
#define DIRECTION(i) ((i) % 2)
#define NUMBER(i)    ((i) / 2)
#else
#define DIRECTION(i) 0
#define NUMBER(i)    (i)
#endif

proctype activator(bit me)
{
    byte i, stage, d, n, filled;
    bool leaves;
    do
    :: i < ITEMS && !leaves ->
        d = DIRECTION(i);
        n = NUMBER(i);
        /* the wait for the other party */
        if
        :: d == me ->
            if
#ifdef BROKEN_SENDS_WITHOUT_CREDIT
            :: true
#else
            :: n + 1 <= credit[d] + SLOTS
#endif
#ifndef BROKEN_DEAF_TO_STOP
            :: stop[me] || host_stop -> leaves = true
#endif
#ifdef ABSENT
            :: timeout -> leaves = true
#endif
#ifdef ONE_LEAVES
            :: me == 0 -> leaves = true
#endif
            fi
        :: else ->
            if
#ifdef BROKEN_TAKES_ANY_WORD
            :: ready[SLOT(d, n)] > 0
#else
            :: ready[SLOT(d, n)] == n + 1
#endif
#ifndef BROKEN_DEAF_TO_STOP
            :: stop[me] || host_stop -> leaves = true
#endif
#ifdef ABSENT
            :: timeout -> leaves = true
#endif
#ifdef ONE_LEAVES
            :: me == 0 -> leaves = true
#endif
            fi
        fi;
        if
        :: leaves -> break
        :: else
        fi;
#ifndef BROKEN_NO_WAIT_FOR_EMPTY
        if
        :: filled >= DEPTH -> emptied[AT(me, stage)] > 0; emptied[AT(me, stage)]--
        :: else
        fi;
#endif
        assert(!in_use[AT(me, stage)]);
        in_use[AT(me, stage)] = true;
        kind[AT(me, stage)] = (d == me -> MAKE : USE);
        number[AT(me, stage)] = n;
        way[AT(me, stage)] = d;
#ifdef PULL
        if
        :: d != me -> buffer[AT(me, stage)] = ring[SLOT(d, n)]
        :: else
        fi;
#endif
        opened[AT(me, stage)]++;
        filled = (filled < DEPTH -> filled + 1 : filled);
        stage = (stage + 1) % DEPTH;
        i++
    :: else -> break
    od;
    if
    :: leaves ->
        early[me] = true;
#ifndef BROKEN_LEAVES_IN_SILENCE
        stop[0] = true;
        stop[1] = true
#endif
    :: else
    fi;
#ifdef BROKEN_LEAVE_NOT_PASSED_ON
    skip;
#else
    if
    :: filled >= DEPTH -> emptied[AT(me, stage)] > 0; emptied[AT(me, stage)]--
    :: else
    fi;
    kind[AT(me, stage)] = LEAVE;
    opened[AT(me, stage)]++;
#endif
    left++
}

proctype work(bit me)
{
    byte stage, n, d;
    do
    :: opened[AT(me, stage)] > 0;
        opened[AT(me, stage)]--;
        n = number[AT(me, stage)];
        d = way[AT(me, stage)];
        if
        :: kind[AT(me, stage)] == MAKE ->
#ifdef BULK
            buffer[AT(me, stage)] = n + 1;
#else
            ring[SLOT(d, n)] = 0;
            ring[SLOT(d, n)] = n + 1;
#endif
            finished[AT(me, stage)]++
        :: kind[AT(me, stage)] == USE ->
#ifdef BROKEN_CREDIT_BEFORE_READ
            credit[d] = n + 1;
#endif
#ifdef PULL
            assert(buffer[AT(me, stage)] == n + 1);
#else
            assert(ring[SLOT(d, n)] == n + 1);
#endif
            finished[AT(me, stage)]++
        :: kind[AT(me, stage)] == LEAVE ->
            finished[AT(me, stage)]++;
            break
        fi;
        stage = (stage + 1) % DEPTH
    od;
    left++
}

proctype publisher(bit me)
{
    byte stage, n, d;
    do
    :: finished[AT(me, stage)] > 0;
        finished[AT(me, stage)]--;
        n = number[AT(me, stage)];
        d = way[AT(me, stage)];
        if
        :: kind[AT(me, stage)] == MAKE ->
#ifdef BULK
#ifdef BROKEN_POSTS_BEFORE_STORED
            ready[SLOT(d, n)] = n + 1;
#endif
            ring[SLOT(d, n)] = 0;
            ring[SLOT(d, n)] = buffer[AT(me, stage)];
#endif
            ready[SLOT(d, n)] = n + 1
        :: kind[AT(me, stage)] == USE ->
            if
#ifdef BROKEN_CREDIT_TOO_LATE
            :: (n + 1) % (SLOTS + 1) == 0 -> credit[d] = n + 1
#else
            :: (n + 1) % CREDITS == 0 -> credit[d] = n + 1
#endif
            :: else
            fi
        :: kind[AT(me, stage)] == LEAVE -> break
        fi;
        in_use[AT(me, stage)] = false;
        emptied[AT(me, stage)]++;
        stage = (stage + 1) % DEPTH
    od;
    left++
}

#ifdef STOP
proctype host()
{
    host_stop = true
}
#endif

init
{
    atomic {
#ifndef ABSENT
        run activator(0);
        run work(0);
        run publisher(0);
#else
        left = 3;
#endif
        run activator(1);
        run work(1);
        run publisher(1);
#ifdef STOP
        run host()
#endif
    }
    left == 6;
#if !defined(STOP) && !defined(ABSENT) && !defined(ONE_LEAVES)
    assert(!early[0] && !early[1])
#endif
}

#ifdef ENDS
ltl ends { <> (left == 6) }
#endif
