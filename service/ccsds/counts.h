/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CCSDS_COUNTS_H
#define PB_CCSDS_COUNTS_H
/* Counts of a receiver. They grow only. One thread. */
#include <stddef.h>
#include <stdint.h>

/* PB_COUNT(name, meaning) */
#define PB_CCSDS_COUNTS                                                                            \
    PB_COUNT(datagrams, "datagrams received")                                                      \
    PB_COUNT(datagrams_refused, "datagrams of another size than whole frames or packets, or of "   \
                                "another sender")                                                  \
    PB_COUNT(datagrams_dropped, "datagrams that the system dropped because its buffer was full")   \
    PB_COUNT(octets_skipped, "octets of a file between frames, or between packets")                \
    PB_COUNT(frames, "frames received")                                                            \
    PB_COUNT(frames_damaged, "of these, with a wrong checksum")                                    \
    PB_COUNT(frames_foreign, "of these, of another version, spacecraft or channel")                \
    PB_COUNT(frames_idle, "of these, idle")                                                        \
    PB_COUNT(frames_duplicate, "of these, received before")                                        \
    PB_COUNT(frames_late, "of these, too late to be put in order")                                 \
    PB_COUNT(frames_lost, "frames missing according to the counters of their channels")            \
    PB_COUNT(frames_jumps, "counters of channels that began again")                                \
    PB_COUNT(packets, "packets received")                                                          \
    PB_COUNT(packets_idle, "of these, idle")                                                       \
    PB_COUNT(packets_other, "of these, of an APID without a band")                                 \
    PB_COUNT(packets_damaged, "of these, with a wrong checksum or length")                         \
    PB_COUNT(packets_duplicate, "of these, received before")                                       \
    PB_COUNT(packets_late, "of these, too late to be put in order")                                \
    PB_COUNT(packets_cut, "packets of which a part is missing")                                    \
    PB_COUNT(packets_lost, "packets missing according to their sequence counts")                   \
    PB_COUNT(packets_jumps, "sequence counts that began again")                                    \
    PB_COUNT(packets_stray, "segments without the first one of their line")                        \
    PB_COUNT(lines, "lines received completely")                                                   \
    PB_COUNT(lines_lost, "lines missing between these, which are gaps in the products")            \
    PB_COUNT(lines_incomplete, "lines of which a band or segment is missing")                      \
    PB_COUNT(lines_duplicate, "lines of a band received before")                                   \
    PB_COUNT(lines_late, "lines of a band received too late, or whose number is doubtful")         \
    PB_COUNT(lines_unsent, "lines received while the stream was not open")                         \
    PB_COUNT(scenes, "counters of lines that began again")                                         \
    PB_COUNT(times_invalid, "time codes that are no time")

struct pb_ccsds_counts {
#define PB_COUNT(name, meaning) uint64_t name;
    PB_CCSDS_COUNTS
#undef PB_COUNT
};
#endif
