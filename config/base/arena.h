/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ARENA_H
#define PB_ARENA_H
/* Memory that is freed together, for one configuration. A failure is remembered, so callers may go
 * on with NULL where that is harmless and check once at the end. One thread. */
#include <stdbool.h>
#include <stddef.h>

struct pb_arena;

struct pb_arena *pb_arena_create(void); /* NULL = out of memory; the calls below accept that */
void pb_arena_destroy(struct pb_arena *arena);

/* Zeroed, aligned for any type; NULL when out of memory. count x size must not overflow: then NULL
 * too. */
void *pb_arena_alloc(struct pb_arena *arena, size_t count, size_t size);
char *pb_arena_text(struct pb_arena *arena, const char *text, size_t bytes); /* adds the NUL */
/* Whether an allocation has failed so far. */
bool pb_arena_failed(const struct pb_arena *arena);
/* Marks the arena as failed, e.g. when libyaml ran out of memory. */
void pb_arena_fail(struct pb_arena *arena);

/* For tests: lets `good` more requests of this thread succeed (creations and allocations), then
 * fails one; < 0 switches it off, which is the state at start. */
void pb_arena_fail_after(long good);
#endif
