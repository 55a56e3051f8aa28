/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STORE_CHECK_H
#define PB_STORE_CHECK_H
/* Preparation of a PostgreSQL database for the nodes of a service: makes the tables, and checks the
 * settings of the server that the safety and speed of the store depend on. The check changes
 * nothing. Thread: any. */
#include "config/base/err.h"

enum pb_store_grade {
    PB_STORE_FINE,
    PB_STORE_NOTE, /* it works, with the limit that the text explains */
    PB_STORE_MEND, /* jobs may be lost or delayed; the text has the remedy */
    PB_STORE_GRADES
};

struct pb_store_point {
    const char *name; /* "fsync" */
    enum pb_store_grade grade;
    const char *text; /* sentence; borrowed, as name is, until visit returns */
};

/* Connects as the service does, or to a read-only copy if no server takes changes, and visits the
 * points. Returns the number of points to mend; negative: the database cannot be reached. */
int pb_store_check(const char *conninfo,
                   void (*visit)(void *user, const struct pb_store_point *point), void *user,
                   struct pb_err *err);
/* Connects to a server that takes changes, and makes or upgrades the tables. out_place: its address
 * and database in words. Returns a negative value if it cannot be reached, otherwise 0.
 * *out_version: number of the tables; negative: the tables could not be made, see *err. */
int pb_store_init(const char *conninfo, char out_place[256], int *out_version, struct pb_err *err);
#endif
