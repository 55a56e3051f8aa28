/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FACTS_H
#define PB_FACTS_H
/* Descriptions of the service as texts, which its loop stores here and the status thread reads, so
 * that a client does not wait for the loop. Thread: any. */
#include "service/base/peer.h"

#include <pthread.h>

struct pb_facts {
    pthread_mutex_t lock; /* protects all below */
    char *info;           /* JSON object, without the members that the status thread adds */
    char *metrics;        /* Prometheus text, same ownership */
    char *machine;        /* Prometheus text about processes and file systems */
    struct pb_admins admins;
    int64_t notifier; /* user of pushbroom-notify, -1 if absent */
    int64_t viewer;   /* user of pushbroom-web, -1 if absent */
    bool viewer_acts; /* the viewer may change jobs (web.actions) */
};

void pb_facts_init(struct pb_facts *facts);
void pb_facts_fini(struct pb_facts *facts);
/* Takes both texts (malloc'd); NULL keeps the present text. */
void pb_facts_set(struct pb_facts *facts, char *info, char *metrics);
/* Does the same for the text about the machine. */
void pb_facts_set_machine(struct pb_facts *facts, char *machine);
void pb_facts_set_admins(struct pb_facts *facts, const struct pb_admins *admins);
/* Copies that the caller must free; NULL = out of memory. */
char *pb_facts_info(struct pb_facts *facts);
char *pb_facts_metrics(struct pb_facts *facts);
bool pb_facts_is_privileged(struct pb_facts *facts, const struct pb_peer *peer);
void pb_facts_set_notifier(struct pb_facts *facts, int64_t uid);
/* Returns true if the peer may take events for delivery: the notifier, and privileged users. */
bool pb_facts_may_deliver(struct pb_facts *facts, const struct pb_peer *peer);
void pb_facts_set_viewer(struct pb_facts *facts, int64_t uid, bool acts);

enum pb_rights {
    PB_RIGHTS_MEMBER, /* any user: changes its own jobs, privileged ones change all */
    PB_RIGHTS_VIEWER, /* pushbroom-web: queries and watches only */
    PB_RIGHTS_ACTOR,  /* pushbroom-web with web.actions: changes all jobs, and submits files */
};
/* A viewer that is privileged is a member. */
enum pb_rights pb_facts_rights(struct pb_facts *facts, const struct pb_peer *peer);
/* Returns true if the peer may change a job of that owner (-1: may change all jobs). */
bool pb_facts_may_change(struct pb_facts *facts, const struct pb_peer *peer, int64_t owner);
#endif
