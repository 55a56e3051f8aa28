/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_LOAD_H
#define PB_OWNER_LOAD_H
/* Load of the owner of a device, and the choice of the least loaded of several owners. Thread:
 * any. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "pipeline/device/lanes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_owner_load {
    int64_t sessions; /* sessions that compute or wait for admission */
    int64_t bytes;    /* bytes of the slots of the computing sessions */
};

/* Prints {"event":"load","sessions","bytes"}; owned by the caller. */
struct pb_json *pb_owner_load_print(const struct pb_owner_load *load);
/* Prints the same with {"lanes","launches"} (pipeline/device/lanes.h). */
struct pb_json *pb_owner_load_print_all(const struct pb_owner_load *load,
                                        const struct pb_lanes_count *lanes);
/* Returns false, and writes nothing, if it is not such a line. */
bool pb_owner_load_take(const struct pb_json_value *line, struct pb_owner_load *out);

struct pb_owner_choice {
    bool there;
    int64_t jobs; /* jobs that were sent to it and are not over: some have no session yet, or are
                     between two */
    struct pb_owner_load load;
};

/* Index of the owner with the fewest jobs or sessions, then with the fewest bytes, then the first;
 * -1 if no owner is there. */
int pb_owner_choose(const struct pb_owner_choice *owners, int n);
#endif
