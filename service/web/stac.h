/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_STAC_H
#define PB_WEB_STAC_H
/* The STAC API at /stac: landing page, collections, their items with pages, and searches. Items are
 * the published files, with the addresses of this server. Thread: any. */
struct pb_web_catalog;
struct pb_web_document;
struct pb_web_query;

#define PB_WEB_STAC_PATH "/stac"

/* Answers a request. products: the directory of products. */
void pb_web_stac(struct pb_web_catalog *catalog, const char *products,
                 const struct pb_web_query *query, struct pb_web_document *out);
#endif
