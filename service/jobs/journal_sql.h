/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOURNAL_SQL_H
#define PB_JOURNAL_SQL_H
/* Statements about events and their subscribers. Private to the job store. */

/* Condition: subscriber s wants event e. */
#define PB_SUBSCRIBER_WANTS "pb_wants(s.events, s.pipelines, e.kind, e.pipeline)"
#define PB_JOURNAL_ADD_SQL                                                                         \
    "INSERT INTO events (time_ms, kind, job, pipeline, data) VALUES (?1, ?2, ?3, ?4, ?5)"
/* A gap just before the first row belongs to the range: the journal has no event before it. */
#define PB_JOURNAL_RANGE_SQL                                                                       \
    "SELECT coalesce((SELECT g.last_seq + 1 FROM gaps g WHERE g.next_seq + 1 = r.first LIMIT 1),"  \
    " r.first), r.last FROM (SELECT coalesce((SELECT min(seq) FROM events),"                       \
    " (SELECT seq FROM last_event) + 1) AS first, (SELECT seq FROM last_event) AS last) AS r"
/* Numbers between those of a gap were given by a server that was lost. */
#define PB_JOURNAL_LOST_SQL "SELECT 1 FROM gaps WHERE last_seq < ?1 AND next_seq > ?1 LIMIT 1"
#define PB_JOURNAL_GAPS_SQL "SELECT last_seq, next_seq FROM gaps ORDER BY last_seq DESC"
#define PB_JOURNAL_READ_SQL                                                                        \
    "SELECT " PB_EVENT_COLUMNS " FROM events e WHERE e.seq > ?1 AND (?3 = '' OR e.job = ?3)"       \
    " ORDER BY e.seq LIMIT ?2"

#define PB_SUBSCRIBER_NEXT_SQL                                                                     \
    "SELECT " PB_EVENT_COLUMNS " FROM subscribers s JOIN events e ON e.seq > s.seq"                \
    " WHERE s.name = ?1 AND " PB_SUBSCRIBER_WANTS " ORDER BY e.seq LIMIT ?2"
#define PB_SUBSCRIBER_STATES_SQL                                                                   \
    "SELECT s.name, s.seq, s.delivered, s.given_up, s.expired,"                                    \
    " (SELECT count(*) FROM (SELECT 1 FROM events e WHERE e.seq > s.seq AND " PB_SUBSCRIBER_WANTS  \
    " LIMIT ?1) AS w),"                                                                            \
    " (SELECT e.time_ms FROM events e WHERE e.seq > s.seq AND " PB_SUBSCRIBER_WANTS                \
    " ORDER BY e.seq LIMIT 1)"                                                                     \
    " FROM subscribers s ORDER BY s.name"
/* An acknowledgement that arrives twice, or late, moves no cursor back. */
#define PB_SUBSCRIBER_ACK_SQL                                                                      \
    "UPDATE subscribers SET seq = ?2, delivered = delivered + (1 - ?3), given_up = given_up + ?3"  \
    " WHERE name = ?1 AND seq < ?2"
#endif
