/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES   20
#define STEP_MS 100

static void *grow(void *old, size_t bytes)
{
    static const char text[] = "pushbroom: [memory] no memory for the table of open "
                               "descriptors; free memory and start again\n";
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    void *memory = NULL;
    for (int i = 0; i < TRIES && (memory = realloc(old, bytes)) == NULL; i++)
        (void)nanosleep(&step, NULL);
    if (memory == NULL) {
        (void)!write(STDERR_FILENO, text, strlen(text));
        _exit(EXIT_FAILURE);
    }
    return memory;
}

int pb_loop_init(uv_loop_t *loop)
{
    static bool replaced;
    if (!replaced)
        (void)uv_replace_allocator(malloc, grow, calloc, free);
    replaced = true;
    return uv_loop_init(loop);
}
