/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REQUEST_KIND_H
#define PB_REQUEST_KIND_H
/* What a client may ask for a job. */
enum pb_request_kind { PB_REQUEST_CANCEL, PB_REQUEST_RETRY, PB_REQUEST_DROP };
#endif
