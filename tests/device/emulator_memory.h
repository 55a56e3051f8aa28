/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EMULATOR_MEMORY_H
#define PB_EMULATOR_MEMORY_H
/* CUDA's loads and atomic functions on the host, where one fiber runs at a time. Part of
 * emulator.h. */
#include <algorithm>

template <class T> inline T __ldg(const T *p)
{
    return *p;
}
template <class T, class V> inline T atomicAdd(T *p, V v)
{
    T old = *p;
    *p = static_cast<T>(old + v);
    return old;
}
template <class T, class V> inline T atomicMax(T *p, V v)
{
    T old = *p;
    *p = std::max(old, static_cast<T>(v));
    return old;
}
template <class T, class V> inline T atomicMin(T *p, V v)
{
    T old = *p;
    *p = std::min(old, static_cast<T>(v));
    return old;
}
template <class T, class V> inline T atomicOr(T *p, V v)
{
    T old = *p;
    *p = old | static_cast<T>(v);
    return old;
}
template <class T, class V> inline T atomicAnd(T *p, V v)
{
    T old = *p;
    *p = old & static_cast<T>(v);
    return old;
}
template <class T, class V> inline T atomicCAS(T *p, V wanted, V v)
{
    T old = *p;
    *p = old == static_cast<T>(wanted) ? static_cast<T>(v) : old;
    return old;
}
template <class T, class V> inline T atomicExch(T *p, V v)
{
    T old = *p;
    *p = static_cast<T>(v);
    return old;
}
#endif
