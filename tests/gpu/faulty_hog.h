/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTY_HOG_H
#define FAULTY_HOG_H
#ifdef __cplusplus
extern "C" {
#endif
/* Takes all shared memory of the current device for this many seconds, in a stream of its own.
 * Returns once it has it; the process ends if it cannot be had. */
void faulty_hog(double seconds);
#ifdef __cplusplus
}
#endif
#endif
