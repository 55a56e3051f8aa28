/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Several links as lanes of one resident kernel (wic/device/launch.h, lanes.cuh, backend_launch.cu): how a lane is opened, left
 * and opened again next to others, and when the kernel starts and leaves. How a tile gets through a lane is device.pml's matter:
 * here a tile is one number that each block gets to see.
 *
 *   host[l]       opens lane l, posts its tiles, closes or aborts it, waits until it is left, and then does with its memory what
 *                 it likes; VISITS times. The first to open launches the kernel, the last that is left has it leave
 *   monitor[l]    waits for an opening of lane l; copies what the host posts to the ready board; counts when it is over
 *   activator[b]  of block b, polls all lanes: opens, takes a piece, leaves a lane by a mark after its pieces
 *   worker[b]     working warps and Publisher of block b after its stages; counts a lane's mark
 *
 *   LANES, BLOCKS, VISITS, TILES   of each lane and visit      DEPTH   stages of a block
 *   PULLS=1        a piece is taken only when the block before has taken that of the same tile (the credits)
 *   ABORT          a host may abort its lane at any moment
 *
 * What is proved: everybody ends; the memory of a lane is touched only while it is the host's who opened it, and with the view
 * of that opening; all pieces of all tiles of a lane that is not aborted are done before it is left. */

#ifndef LANES
#define LANES 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef VISITS
#define VISITS 1
#endif
#ifndef TILES
#define TILES 1
#endif
#ifndef DEPTH
#define DEPTH 1
#endif
#ifndef PULLS
#define PULLS BLOCKS
#endif

#define OPEN    254
#define ABORTED 255
#define MARK    253
#define LEAVE   252

/* --- the host's, and pinned words --- */
bool lock;
bool resident;
byte n_open, number;
byte posted[LANES];
byte control_end[LANES];
byte told[LANES];      /* the opening that is left */
bool kernel_end;

/* --- device memory --- */
byte open_word[LANES];
byte view[LANES];      /* number of its opening */
byte ready[LANES];
byte state_end[LANES];
byte left[LANES];
byte passed[LANES * BLOCKS];

/* --- ghosts --- */
byte owned[LANES];     /* the opening whose memory it is; 0: the host may have freed it */
byte pieces[LANES];    /* done in this opening */

/* --- the kernel: bits of its parts that are there --- */
#define PARTS     (LANES + 2 * BLOCKS)
#define EVERYBODY ((1 << PARTS) - 1)
short here;
#define IS_HERE(part)  (here & (1 << (part)))
#define LEAVE_AS(part) here = here & ~(1 << (part))

chan stage[BLOCKS] = [DEPTH] of { byte, byte, byte }; /* lane, opening, tile or mark */

#ifdef BROKEN_MONITOR_NOT_COUNTED
#define COUNTED BLOCKS
#else
#define COUNTED (BLOCKS + 1)
#endif

/* A lane is left by one of those that are counted. */
inline count_left(l, opening)
{
    left[l]++;
    if
    :: left[l] == COUNTED -> told[l] = opening
    :: else
    fi
}

inline launch()
{
    assert(here == 0);
    kernel_end = false;
#ifndef BROKEN_OPEN_WORDS_STAY
    for (i : 0 .. LANES - 1) { open_word[i] = 0 }
#endif
    resident = true;
    here = EVERYBODY
}

inline end_kernel()
{
    kernel_end = true;
    here == 0;
    resident = false
}

active [LANES] proctype host()
{
    byte l = _pid, visit, i, own;
    bool gone;
    do
    :: visit < VISITS ->
        /* words that were cleared before the lane is opened */
        d_step {
            posted[l] = 0; ready[l] = 0; control_end[l] = OPEN; state_end[l] = OPEN; left[l] = 0; pieces[l] = 0;
            for (i : 0 .. BLOCKS - 1) { passed[l * BLOCKS + i] = 0 }
        }
        atomic { !lock -> lock = true }
        if
        :: !resident -> atomic { launch() }
        :: else
        fi;
        atomic {
#ifdef BROKEN_NUMBER_STAYS
            number = 1;
#else
            number++;
#endif
            own = number; owned[l] = own; n_open++
        }
#ifdef BROKEN_OPENED_BEFORE_DESCRIBED
        open_word[l] = own;
        view[l] = own;
#else
        view[l] = own;
        open_word[l] = own;
#endif
        lock = false;
        gone = false;
        do
        :: !gone && posted[l] < TILES -> posted[l]++
#ifdef ABORT
        :: !gone -> control_end[l] = ABORTED; gone = true; break
#endif
        :: !gone && pieces[l] == TILES * BLOCKS -> control_end[l] = TILES; break
        od;
        told[l] == own;
        assert(gone || pieces[l] == TILES * BLOCKS);
        owned[l] = 0; /* and the memory belongs to another */
        atomic { !lock -> lock = true }
        n_open--;
        if
#ifdef BROKEN_FIRST_ENDS_THE_KERNEL
        :: resident -> end_kernel()
        :: !resident
#else
        :: n_open == 0 -> end_kernel()
        :: else
#endif
        fi;
        lock = false;
        visit++
    :: else -> break
    od
}

#define MONITOR(l)   (l)
#define ACTIVATOR(b) (LANES + 2 * (b))
#define WORKER(b)    (LANES + 2 * (b) + 1)

active [LANES] proctype monitor()
{
    byte l = _pid - LANES, opened, own;
end:
    do
    :: IS_HERE(MONITOR(l)) ->
        opened = 0;
        do
        :: open_word[l] != opened && IS_HERE(MONITOR(l)) ->
            atomic { opened = open_word[l]; own = view[l]; assert(own == opened && owned[l] == own) }
            do
            :: ready[l] < posted[l] && control_end[l] != ABORTED -> atomic { assert(owned[l] == own); ready[l]++ }
            :: control_end[l] == ABORTED || (control_end[l] != OPEN && ready[l] >= control_end[l]) ->
                atomic { assert(owned[l] == own); state_end[l] = control_end[l] }
                break
            od;
            atomic { assert(owned[l] == own) } /* the last that it reads of the view */
#ifndef BROKEN_MONITOR_NOT_COUNTED
            atomic { count_left(l, own) }
#endif
        :: kernel_end && open_word[l] == opened -> LEAVE_AS(MONITOR(l)); break
        od
    od
}

#define CREDIT(l, b)                                                                                                           \
    (PULLS >= BLOCKS ||                                                                                                        \
     ((b) == 0 && passed[(l) * BLOCKS + BLOCKS - 1] >= at[l]) || ((b) > 0 && passed[(l) * BLOCKS + (b) - 1] > at[l]))

active [BLOCKS] proctype activator()
{
    byte b = _pid - 2 * LANES, l, i;
    byte opened[LANES], at[LANES];
    bool open[LANES];
    byte n;
end:
    do
    :: IS_HERE(ACTIVATOR(b)) ->
        n = 0;
        for (i : 0 .. LANES - 1) { opened[i] = 0; open[i] = false }
        do
        :: IS_HERE(ACTIVATOR(b)) ->
            select (l : 0 .. LANES - 1);
            if
            :: !open[l] && open_word[l] != opened[l] ->
                atomic {
                    opened[l] = open_word[l]; open[l] = true; at[l] = 0; n++;
                    assert(view[l] == opened[l] && owned[l] == opened[l])
                }
            :: open[l] && (state_end[l] == ABORTED || state_end[l] <= at[l]) ->
                atomic { open[l] = false; n-- }
#ifdef BROKEN_LEFT_WITHOUT_A_MARK
                atomic { count_left(l, opened[l]) }
#else
                stage[b]!l, opened[l], MARK
#endif
#ifdef BROKEN_WAITS_IN_A_LANE
            :: open[l] && state_end[l] == OPEN && ready[l] > at[l] ->
                CREDIT(l, b);
#else
            :: open[l] && state_end[l] == OPEN && ready[l] > at[l] && CREDIT(l, b) ->
#endif
                stage[b]!l, opened[l], at[l];
                atomic { at[l]++; passed[l * BLOCKS + b] = at[l] }
            :: kernel_end && !open[l] && open_word[l] == opened[l] ->
                if
#ifdef BROKEN_LEAVES_BESIDE_OPEN_LANES
                :: stage[b]!0, 0, LEAVE; LEAVE_AS(ACTIVATOR(b)); break
#else
                :: n == 0 -> stage[b]!0, 0, LEAVE; LEAVE_AS(ACTIVATOR(b)); break
                :: n > 0
#endif
                fi
            :: else
            fi
        od
    od
}

active [BLOCKS] proctype worker()
{
    byte b = _pid - 2 * LANES - BLOCKS, l, own, tile;
end:
    do
    :: stage[b]?l, own, tile ->
        if
        :: tile == LEAVE -> LEAVE_AS(WORKER(b))
        :: tile == MARK -> atomic { count_left(l, own) }
        :: else ->
            atomic { assert(owned[l] == own) } /* reads the slot and the argument */
            atomic { assert(owned[l] == own); pieces[l]++ }
        fi
    od
}
