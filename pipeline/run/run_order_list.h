/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ORDER_LIST_H
#define PB_RUN_ORDER_LIST_H
/* input.order: list. Finds the number of each counted file in the list of the scene. One thread. */
#include "pipeline/run/run_order_parts.h"

/* Sets key: the line number among the lines that name files, from 1, or NaN. Fails with
 *
 *  - input.incomplete: it lists a file that is absent, or that matches no pattern with nth
 *  - input.metadata_invalid: it lists a file twice
 *  - input.ambiguous: two files have the name
 *  - input.metadata_conflict: it lists different numbers of files of two patterns
 *
 * or an error of pb_scene_list_read. */
int pb_run_order_list(const struct pb_ordering *ordering);
#endif
