/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Linked into every program of the thread sanitizer's tree. libuv closes descriptors by
 * syscall(SYS_close), which the sanitizer does not see: a number that is used again then looks like
 * a race between its users before and after. This function replaces syscall() of the C library and
 * makes such a call a close() that the sanitizer knows. */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static long (*real)(long number, ...);

__attribute__((constructor)) static void find_real(void)
{
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
}

long syscall(long number, ...)
{
    long arg[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++) /* registers and stack, whether the caller meant them or not */
        arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_close)
        return close((int)arg[0]);
    if (real == NULL)
        find_real();
    return real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
