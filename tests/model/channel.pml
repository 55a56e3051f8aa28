/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The channel of wic/take.c and wic/channel.c, line by line: every access to shared memory there is one step here, and
 * any thread may be held up between two of them. Their atomics are seq_cst, so interleaving is all there is. Names are
 * theirs, without wic_. run_spin.py checks it in many shapes, and checks that each BROKEN_* (a mistake one could make) is found.
 *
 *   SLOTS, N               slots of the ring; tickets of a run in all
 *   NP, NC                 producer and consumer threads, 1 or 2 of each
 *   CLOSE                  a thread closes at any moment; else the threads know how many tickets there are, and nothing
 *                          but a publication or a release wakes a thread
 *   ABORT                  a thread aborts at any moment; consumers request tickets until they see it
 *   IMPATIENT              thread 0 of a side of two gives up at any moment, for good: its time limit
 *   SPURIOUS               number of sleeps that end for no reason (a signal)
 *   SEVERAL                a thread that has two tickets left takes two, if two are ready
 *
 * What is proved, for each shape: every thread ends in every run (a lost wake-up or a deadlock is an end state with a
 * thread that has not; -DENDS: nor does any run continue for ever); tickets are handed out in order, each once, to each
 * side; no thread writes a slot that is written, full or read, nor reads one that is not full of its own ticket (gs,
 * content: ghosts, which the protocol does not see).
 * Wrap-around: tickets count modulo MOD and start below it, and so does `futex`: both wrap in every run. The model stays
 * small because N < MOD; the 64 and 31 bits of channel.h give the same room.
 * Left out: the spin before parking (it only looks at `sequence` and calls try_take again) and the statistics. The
 * kernel's wait queue wakes any of its sleepers here, not the first: that allows more than Linux does. */

#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef N
#define N 3
#endif
#ifndef NP
#define NP 2
#endif
#ifndef NC
#define NC 2
#endif
#ifndef SPURIOUS
#define SPURIOUS 0
#endif

#ifdef SEVERAL
#define ALSO two
#else
#define ALSO 0
#endif
#define MOD   8 /* more than N, a multiple of SLOTS */
#define FIRST 6 /* first ticket */
#ifdef BROKEN_SIGNAL_TOO_SHORT
#define FUTEX_MASK 1
#else
#define FUTEX_MASK 63
#endif
#define SEQUENCE_MASK (2 * MOD - 1)
#define CLOSED    128

#define PRODUCER 0
#define CONSUMER 1

#define OK        0
#define EAGAIN    1
#define EPIPE     2
#define ECANCELED 3
#define ETIMEDOUT 4

/* --- what the threads share --- */
byte next[2];
byte futex[2];
byte waiters[2];
byte sequence[SLOTS];
bool aborted;
byte asleep[2]; /* the kernel's queue on futex[role]: a bit a thread */

/* --- ghosts --- */
#define FREE    0
#define WRITING 1
#define FULL    2
#define READING 3
byte gs[SLOTS];
byte content[SLOTS];
byte handed[2]; /* tickets taken by each side */
#ifdef ENDS
byte finished;
#define FINISH finished++
#else
#define FINISH skip
#endif
byte spurious;
bool gone[2];        /* thread 0 of the side has ended */
bool took_one[2];    /* and had taken a ticket */

#define SLOT(t)  ((t) % SLOTS)
#define SHARE(n) ((n) / 2)

/* Each atomic or d_step is one access to shared memory and the private work of the thread after it.
 * Events that cannot happen in a shape (no close, no abort) are not looked for: reading a constant
 * changes nothing. */
#ifdef CLOSE
#define IS_LAST(n) (next[PRODUCER] == ((n) | CLOSED))
#else
#define IS_LAST(n) 0
#endif

inline ready_ticket(role, rc, ticket)
{
    do
    :: atomic {
           n = next[role];
           if
           :: n & CLOSED -> rc = EPIPE; break
           :: else -> skip
           fi
       }
       atomic {
           d = (sequence[SLOT(n)] - (2 * n + role)) & SEQUENCE_MASK;
           if
           :: d == 0 -> ticket = n; rc = OK; break
           :: d != 0 && d < MOD -> d = 0 /* `next` is out of date */
           :: d >= MOD ->
              rc = EAGAIN
#ifdef CLOSE
              ;
              if
              :: role == CONSUMER -> skip
              :: else -> break
              fi
#else
              ;
              break
#endif
           fi
       }
#ifdef CLOSE
       atomic {
           if
           :: d >= MOD && IS_LAST(n) -> rc = EPIPE; break
           :: d >= MOD && !IS_LAST(n) -> break
           :: else -> skip
           fi
       }
#endif
    od;
    n = 0; d = 0
}

inline try_take(role, rc, ticket)
{
    do
    ::
#ifdef ABORT
       atomic {
           if
           :: aborted -> rc = ECANCELED; break
           :: else -> skip
           fi
       }
#endif
       ready_ticket(role, rc, ticket);
       if
       :: rc != OK -> break
       :: else -> skip
       fi;
#ifdef SEVERAL
       atomic { two = (left > 0 && ((sequence[SLOT(ticket + 1)] - (2 * (ticket + 1) + role)) & SEQUENCE_MASK) == 0) }
#endif
       atomic { /* compare-exchange */
           if
           :: next[role] == ticket ->
              take_ghost(role, ticket);
#ifdef SEVERAL
              if
              :: two -> take_ghost(role, (ticket + 1) % MOD); left--
              :: else -> skip
              fi;
#endif
              next[role] = (ticket + 1 + ALSO) % MOD; break
           :: else -> ticket = 0 /* another thread took it, or closed */
           fi
       }
    od
}

/* From here on the slot is the taker's: it may touch it at once. */
inline take_ghost(role, ticket)
{
    assert(ticket == (FIRST + handed[role]) % MOD);
    handed[role]++;
    if
    :: role == PRODUCER -> assert(gs[SLOT(ticket)] == FREE); gs[SLOT(ticket)] = WRITING
    :: else ->
       assert(gs[SLOT(ticket)] == FULL && content[SLOT(ticket)] == ticket);
       gs[SLOT(ticket)] = READING
    fi
}

inline futex_wake_one(role)
{
    atomic {
        if
        :: asleep[role] & 1 -> asleep[role] = asleep[role] & 2
        :: asleep[role] & 2 -> asleep[role] = asleep[role] & 1
        :: asleep[role] == 0 -> skip
        fi
    }
}

inline wake_all(role)
{
    d_step { futex[role] = (futex[role] + 2) & FUTEX_MASK; }
    d_step { asleep[role] = 0; }
}

inline wake_next(role)
{
    if
    :: waiters[role] == 0 -> skip
    :: else -> wake_next_on(role)
    fi
}

inline wake_next_on(role)
{
    ready_ticket(role, rc2, ticket2);
    ticket2 = 0;
    if
    :: rc2 == OK ->
       atomic { sig2 = futex[role]; }
       if
       :: sig2 % 2 == 0 ->
          atomic { /* compare-exchange */
              if
              :: futex[role] == sig2 -> futex[role] = (sig2 + 1) & FUTEX_MASK; sig2 = 0
              :: else -> sig2 = 1
              fi
          }
          if
          :: sig2 == 0 -> futex_wake_one(role)
          :: else -> skip
          fi
       :: else -> skip
       fi;
       sig2 = 0
#ifndef BROKEN_NO_WAKE_AT_THE_END
    :: rc2 == EPIPE -> wake_all(role)
#endif
    :: else -> skip
    fi;
    rc2 = 0
}

inline futex_before_check(role)
{
    sig = futex[role];
#ifndef BROKEN_SLEEPS_ON_ODD
    do
    :: sig % 2 == 0 -> break
    :: else ->
       d_step { /* compare-exchange */
           if
           :: futex[role] == sig -> sig = (sig + 1) & FUTEX_MASK; futex[role] = sig
           :: else -> sig = futex[role]
           fi
       }
    od
#endif
}

/* Sets gave_up if the time limit has passed. */
inline park(role)
{
    atomic {
        if
        :: futex[role] != sig -> too_late()
        :: else -> asleep[role] = asleep[role] | (1 << me); in_kernel = 1
        fi
    }
    atomic {
        if
        :: !in_kernel -> skip
        :: in_kernel && !(asleep[role] & (1 << me)) -> too_late()
        :: in_kernel && (asleep[role] & (1 << me)) && impatient ->
           asleep[role] = asleep[role] & ~(1 << me); gave_up = 1
        :: in_kernel && (asleep[role] & (1 << me)) && spurious < SPURIOUS ->
           asleep[role] = asleep[role] & ~(1 << me); spurious++
        fi;
        in_kernel = 0
    }
}

/* Not woken by the clock, but past the time limit anyway. */
inline too_late()
{
    if
    :: impatient -> gave_up = 1
    :: skip
    fi
}

inline wait_for_ticket(role)
{
    waiters[role]++;
    do
#ifdef BROKEN_LOOKS_THEN_READS_SIGNAL
    :: try_take(role, rc, ticket);
       futex_before_check(role);
#else
    :: futex_before_check(role);
#ifdef BROKEN_GIVES_UP_WITHOUT_LOOKING
       if
       :: gave_up -> rc = EAGAIN; break
       :: else -> skip
       fi;
#endif
       try_take(role, rc, ticket);
#endif
       if
       :: rc != EAGAIN || gave_up -> break
       :: else -> skip
       fi;
       park(role)
    od;
    atomic { sig = 0; gave_up = 0; waiters[role]--; }
    if
    :: rc == EAGAIN -> rc = ETIMEDOUT
    :: else -> skip
    fi
}

inline take(role)
{
    try_take(role, rc, ticket);
    if
    :: rc == EAGAIN -> wait_for_ticket(role)
    :: else -> skip
    fi;
#ifndef BROKEN_NO_NUDGE_AFTER_TAKE
    if
    :: rc == OK -> wake_next(role)
    :: else -> skip
    fi
#endif
}

#ifdef ABORT
#define ABORTED aborted
#else
#define ABORTED 0
#endif

/* publish: role is the producer's, and 2t + 1 is stored; release: the consumer's, and 2 (t + slots). The holder works
 * on the slot until the store, so the ghost changes in the same step. */
inline hand_over(role, before, after, value)
{
    if
#ifdef ABORT
    :: aborted -> rc = ECANCELED
#endif
    :: !ABORTED ->
#ifdef BROKEN_NUDGE_BEFORE_STORE
       wake_next(1 - role);
#endif
#ifdef BROKEN_LOAD_OVERTAKES_STORE /* allowed by acquire and release alone */
       d_step { rc2 = waiters[1 - role]; }
#endif
       d_step {
           assert(gs[SLOT(ticket)] == before && (role == PRODUCER || content[SLOT(ticket)] == ticket));
#if defined(BROKEN_STORE_BEFORE_DATA)
           sequence[SLOT(ticket)] = (value) & SEQUENCE_MASK;
       }
       d_step {
           assert(gs[SLOT(ticket)] == before);
           content[SLOT(ticket)] = ticket; gs[SLOT(ticket)] = after;
#else
           content[SLOT(ticket)] = ticket; gs[SLOT(ticket)] = after;
           sequence[SLOT(ticket)] = (value) & SEQUENCE_MASK;
#endif
       }
#ifdef SEVERAL
#ifdef BROKEN_WAKES_BEFORE_THE_SECOND
       wake_next((1 - role));
#endif
       if
       :: two ->
          d_step {
              ticket = (ticket + 1) % MOD;
              assert(gs[SLOT(ticket)] == before && (role == PRODUCER || content[SLOT(ticket)] == ticket));
              content[SLOT(ticket)] = ticket; gs[SLOT(ticket)] = after;
              sequence[SLOT(ticket)] = (value) & SEQUENCE_MASK;
              two = 0
          }
       :: else -> skip
       fi;
#endif
#if defined(BROKEN_LOAD_OVERTAKES_STORE)
       if
       :: rc2 == 0 -> skip
       :: else -> wake_next_on((1 - role))
       fi
#elif !defined(BROKEN_NUDGE_BEFORE_STORE) && !defined(BROKEN_WAKES_BEFORE_THE_SECOND)
       wake_next((1 - role))
#endif
    fi;
    ticket = 0
}

inline wake_everybody()
{
    if
    :: waiters[PRODUCER] != 0 -> wake_all(PRODUCER)
    :: else -> skip
    fi;
    if
    :: waiters[CONSUMER] != 0 -> wake_all(CONSUMER)
    :: else -> skip
    fi
}

#ifdef IMPATIENT
#define MAY_GIVE_UP(threads) (me == 0 && (threads) == 2)
#else
#define MAY_GIVE_UP(threads) 0
#endif

inline note_taken(role)
{
#ifdef IMPATIENT
    took_one[role] = (took_one[role] || me == 0)
#else
    skip
#endif
}

/* Remaining work of a thread. One that gives up does so for good; its colleague, which has no time
 * limit, then takes the ticket that it did not: if a wake-up was lost with it, that one sleeps for
 * ever. */
inline next_of_quota(role, colleagues)
{
    if
    :: left > 0 -> left--
    :: else ->
#ifdef IMPATIENT
       if
       :: me == 1 && colleagues == 2 && !took_one[role] && !helped -> gone[role]; helped = 1
          if
          :: took_one[role] -> break
          :: else -> skip
          fi
       :: else -> break
       fi
#else
       break
#endif
    fi
}

inline leave(role)
{
    d_step {
        rc = 0; left = 0; helped = 0;
        FINISH;
        if
        :: me == 0 -> gone[role] = 1
        :: else -> skip
        fi
    }
}

#ifdef SEVERAL
#define TWO bool two = 0; /* the ticket after `ticket` is taken, too */
#else
#define TWO
#endif
#define LOCALS(threads) \
    TWO byte n = 0; byte d = 0; byte rc = 0; byte rc2 = 0; byte ticket = 0; byte ticket2 = 0; byte sig = 0; byte sig2 = 0; \
    bool gave_up = 0; bool in_kernel = 0; bool impatient = MAY_GIVE_UP(threads); bool helped = 0

proctype producer(byte me; byte left)
{
    LOCALS(NP);
    do
    :: next_of_quota(PRODUCER, NP);
       take(PRODUCER);
       if
       :: rc == OK ->
          note_taken(PRODUCER);
          hand_over(PRODUCER, WRITING, FULL, 2 * ticket + 1)
       :: else -> skip
       fi;
       if
       :: rc != OK -> break
       :: else -> skip
       fi
    od;
    leave(PRODUCER)
}

proctype consumer(byte me; byte left)
{
    LOCALS(NC);
    do
    ::
#if !defined(CLOSE) && !defined(ABORT)
       next_of_quota(CONSUMER, NC);
#endif
       take(CONSUMER);
       if
       :: rc == OK ->
          note_taken(CONSUMER);
          hand_over(CONSUMER, READING, FREE, 2 * (ticket + SLOTS))
       :: else -> skip
       fi;
       if
       :: rc != OK -> break
       :: else -> skip
       fi
    od;
    leave(CONSUMER)
}

#ifdef CLOSE
proctype closer()
{
    next[PRODUCER] = next[PRODUCER] | CLOSED;
    wake_everybody();
    FINISH
}
#endif

#ifdef ABORT
proctype aborter()
{
    aborted = 1;
#ifndef BROKEN_ABORT_WITHOUT_WAKE
    wake_everybody();
#endif
    FINISH
}
#endif

#ifdef IMPATIENT
#define QUOTA(me, threads) ((threads) == 1 -> N : ((me) == 0 -> 1 : N - 1))
#else
#define QUOTA(me, threads) ((threads) == 1 -> N : ((me) == 0 -> SHARE(N) : N - SHARE(N)))
#endif
#ifdef CLOSE
#define ENDERS 1
#elif defined(ABORT)
#define ENDERS 1
#else
#define ENDERS 0
#endif

init
{
    atomic {
        byte i = 0;
        do
        :: i < SLOTS -> sequence[SLOT(FIRST + i)] = (2 * (FIRST + i)) & SEQUENCE_MASK; i++
        :: else -> break
        od;
        next[PRODUCER] = FIRST;
        next[CONSUMER] = FIRST;
        futex[PRODUCER] = 62 & FUTEX_MASK;
        futex[CONSUMER] = 62 & FUTEX_MASK;
        run producer(0, QUOTA(0, NP));
        run consumer(0, QUOTA(0, NC));
#if NP == 2
        run producer(1, QUOTA(1, NP));
#endif
#if NC == 2
        run consumer(1, QUOTA(1, NC));
#endif
#ifdef CLOSE
        run closer();
#endif
#ifdef ABORT
        run aborter();
#endif
    }
}

#ifdef ENDS
ltl ends { <> (finished == NP + NC + ENDERS) }
#endif
