/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SQL_POSTGRES_H
#define PB_SQL_POSTGRES_H
/* The engine of PostgreSQL (sql.h), over libpq, which is loaded by the first connect of a process
 * and not before. A lost connection is made again by the next transaction or the next statement
 * outside a transaction, never in the middle of one. Every call ends within the limits of its
 * connection, whatever the server and the network do (the resolver of host names excepted). */
#include "service/jobs/sql.h"

#include "config/base/err.h"

struct pb_postgres_options {
    const char
        *conninfo;       /* connection string of libpq. All texts are borrowed until pb_sql_close */
    const char *program; /* application_name of the connection */
    bool is_reader;      /* changes are refused, and the limits are short */
    bool takes_any;      /* connects to a server that takes no changes as well */
    /* Called after each connect; false: the connection is refused with the message of the engine
     * (pb_postgres_refuse). */
    bool (*greet)(struct pb_sql *db, void *user);
    void *user;
};

/* Connects to a server that takes changes, unless takes_any is set. */
int pb_postgres_open(const struct pb_postgres_options *options, struct pb_err *err,
                     struct pb_sql **out);
/* Runs statements without parameters, separated by semicolons. */
bool pb_postgres_execute(struct pb_sql *db, const char *texts);
/* Sets the message of the connection; returns false. */
bool pb_postgres_refuse(struct pb_sql *db, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Server, port and database of the connection in words, borrowed until it is closed. */
const char *pb_postgres_place(struct pb_sql *db);
/* True if the server wanted a password. */
bool pb_postgres_used_password(struct pb_sql *db);
#endif
