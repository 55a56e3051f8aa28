/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_H
#define PB_OWNER_H
/* The process that owns a device: `pushbroomd --device N --socket PATH`, or --device cpu. It opens
 * the device once and computes the tiles of every job that connects; it decodes nothing. A worker
 * connects for a job and sends "hello"; its child uses the rest of the connection, and a hostile
 * file may have taken over the child: every line and all shared memory is checked. JSON lines:
 *
 *   {"cmd":"hello","version","job","config": YAML text,"config_name","pipeline"}
 *   {"event":"hello","device","index","stream_why","traits"}
 *   {"cmd":"open","bytes"}                                     a session, for one pass of the run;
 *       these bytes follow: struct pb_served_request and its tail (pipeline/plan/served.h)
 *   {"event":"ready","in_slot_bytes","out_slot_bytes","line_px","threads","sync"}  with the memory
 *   {"event":"end","end": struct pb_remote_end}                the channels have ended
 *   {"event":"failed","code","message"}                        instead of any answer
 *
 * Instead of hello, {"cmd":"load"} queries the load; the answer is the event "load" below.
 *
 * One session of a connection at a time. Structs in lines are in hexadecimal digits (blob.h). The
 * end of a connection ends its session: its channels are aborted and its memory is freed. Only root
 * and the owner's user may connect.
 *
 * On stdout: {"event":"device","device","why"} when the device was opened; if it could not be
 * opened, "" and the reason, and the process ends with PB_OWNER_NO_DEVICE. {"event":"load",
 * "sessions","bytes"} (owner_load.h) when the load has changed. The process ends with its parent,
 * at the end of stdin; and with PB_OWNER_LOST when the device failed so that no further session
 * could work. */

#define PB_OWNER_NO_DEVICE 66
#define PB_OWNER_LOST      67

/* device: "cpu" or a number; sessions_max: number of sessions that compute at the same time,
 * further ones wait. Returns the exit code of the process. */
int pb_owner_main(const char *device, const char *socket, int sessions_max, int share_percent);
#endif
