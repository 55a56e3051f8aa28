/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/device/owner_load.h"

#include <string.h>

static struct pb_json *begin(const struct pb_owner_load *load)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", "load");
    pb_json_int(json, "sessions", load->sessions);
    pb_json_int(json, "bytes", load->bytes);
    return json;
}

struct pb_json *pb_owner_load_print(const struct pb_owner_load *load)
{
    struct pb_json *json = begin(load);
    pb_json_end(json);
    return json;
}

struct pb_json *pb_owner_load_print_all(const struct pb_owner_load *load,
                                        const struct pb_lanes_count *lanes)
{
    struct pb_json *json = begin(load);
    pb_json_int(json, "lanes", lanes->open);
    pb_json_int(json, "launches", lanes->launches);
    pb_json_end(json);
    return json;
}

bool pb_owner_load_take(const struct pb_json_value *line, struct pb_owner_load *out)
{
    const char *event = pb_json_get_text(line, "event");
    struct pb_owner_load load;
    if (event == NULL || strcmp(event, "load") != 0 ||
        pb_json_get_int(line, "sessions", &load.sessions) != 0 ||
        pb_json_get_int(line, "bytes", &load.bytes) != 0)
        return false;
    *out = load;
    return true;
}

static int64_t jobs_of(const struct pb_owner_choice *owner)
{
    return owner->jobs > owner->load.sessions ? owner->jobs : owner->load.sessions;
}

static bool has_less(const struct pb_owner_choice *a, const struct pb_owner_choice *b)
{
    int64_t jobs_a = jobs_of(a), jobs_b = jobs_of(b);
    return jobs_a < jobs_b || (jobs_a == jobs_b && a->load.bytes < b->load.bytes);
}

int pb_owner_choose(const struct pb_owner_choice *owners, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (owners[i].there && (best < 0 || has_less(&owners[i], &owners[best])))
            best = i;
    return best;
}
