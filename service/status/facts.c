/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pb_facts_init(struct pb_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    facts->notifier = facts->viewer = -1;
    (void)pthread_mutex_init(&facts->lock, NULL);
}

void pb_facts_fini(struct pb_facts *facts)
{
    free(facts->info);
    free(facts->metrics);
    free(facts->machine);
    (void)pthread_mutex_destroy(&facts->lock);
}

static char *replace(char **text, char *by)
{
    char *old = by ? *text : NULL;
    if (by != NULL)
        *text = by;
    return old;
}

void pb_facts_set(struct pb_facts *facts, char *info, char *metrics)
{
    (void)pthread_mutex_lock(&facts->lock);
    char *old_info = replace(&facts->info, info), *old_metrics = replace(&facts->metrics, metrics);
    (void)pthread_mutex_unlock(&facts->lock);
    free(old_info);
    free(old_metrics);
}

void pb_facts_set_machine(struct pb_facts *facts, char *machine)
{
    (void)pthread_mutex_lock(&facts->lock);
    char *old = replace(&facts->machine, machine);
    (void)pthread_mutex_unlock(&facts->lock);
    free(old);
}

void pb_facts_set_admins(struct pb_facts *facts, const struct pb_admins *admins)
{
    (void)pthread_mutex_lock(&facts->lock);
    facts->admins = *admins;
    (void)pthread_mutex_unlock(&facts->lock);
}

static char *copy(struct pb_facts *facts, char *const *text)
{
    (void)pthread_mutex_lock(&facts->lock);
    char *copied = *text ? strdup(*text) : NULL;
    (void)pthread_mutex_unlock(&facts->lock);
    return copied;
}

char *pb_facts_info(struct pb_facts *facts)
{
    return copy(facts, &facts->info);
}

char *pb_facts_metrics(struct pb_facts *facts)
{
    char *text = NULL;
    (void)pthread_mutex_lock(&facts->lock);
    if (facts->metrics != NULL &&
        asprintf(&text, "%s%s", facts->metrics, facts->machine ? facts->machine : "") < 0)
        text = NULL;
    (void)pthread_mutex_unlock(&facts->lock);
    return text;
}

bool pb_facts_is_privileged(struct pb_facts *facts, const struct pb_peer *peer)
{
    (void)pthread_mutex_lock(&facts->lock);
    bool is = pb_peer_is_privileged(peer, &facts->admins);
    (void)pthread_mutex_unlock(&facts->lock);
    return is;
}

bool pb_facts_may_change(struct pb_facts *facts, const struct pb_peer *peer, int64_t owner)
{
    (void)pthread_mutex_lock(&facts->lock);
    bool may = pb_peer_may_change(peer, &facts->admins, owner) ||
               (facts->viewer_acts && facts->viewer >= 0 && peer->uid == facts->viewer);
    (void)pthread_mutex_unlock(&facts->lock);
    return may;
}

void pb_facts_set_notifier(struct pb_facts *facts, int64_t uid)
{
    (void)pthread_mutex_lock(&facts->lock);
    facts->notifier = uid;
    (void)pthread_mutex_unlock(&facts->lock);
}

bool pb_facts_may_deliver(struct pb_facts *facts, const struct pb_peer *peer)
{
    (void)pthread_mutex_lock(&facts->lock);
    bool may = pb_peer_is_privileged(peer, &facts->admins) ||
               (facts->notifier >= 0 && peer->uid == facts->notifier);
    (void)pthread_mutex_unlock(&facts->lock);
    return may;
}

void pb_facts_set_viewer(struct pb_facts *facts, int64_t uid, bool acts)
{
    (void)pthread_mutex_lock(&facts->lock);
    facts->viewer = uid;
    facts->viewer_acts = acts;
    (void)pthread_mutex_unlock(&facts->lock);
}

enum pb_rights pb_facts_rights(struct pb_facts *facts, const struct pb_peer *peer)
{
    enum pb_rights rights = PB_RIGHTS_MEMBER;
    (void)pthread_mutex_lock(&facts->lock);
    if (facts->viewer >= 0 && peer->uid == facts->viewer &&
        !pb_peer_is_privileged(peer, &facts->admins))
        rights = facts->viewer_acts ? PB_RIGHTS_ACTOR : PB_RIGHTS_VIEWER;
    (void)pthread_mutex_unlock(&facts->lock);
    return rights;
}
