/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* `pushbroom indices`: prints the catalogue, the indices that a set of bands allows, or all about
 * one index. */
#include "service/cli/cli.h"

#include "config/base/json_writer.h"
#include "kernels/index/index_table.h"
#include "kernels/nearest.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS = 64, BANDS_KNOWN = 64 };

struct options {
    const char *name, *domain;
    char *bands_text;
    const char *band[BANDS];
    size_t n_bands;
    bool json, bands_help;
};

/* Returns true if an index uses the name: a band, or another input such as a wavelength. */
static bool is_used(const char *name)
{
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < pb_index_count(); i++)
        for (const char *at = pb_index_at(i)->bands; (at = strstr(at, name)) != NULL; at += bytes)
            if ((at == pb_index_at(i)->bands || strchr(", ", at[-1]) != NULL) &&
                strchr(", ", at[bytes]) != NULL)
                return true;
    return false;
}

static int check_band(const char *name)
{
    if (is_used(name))
        return CLI_DONE;
    const char *names[BANDS_KNOWN];
    size_t n = 0;
    for (; n < pb_index_band_count() && n < BANDS_KNOWN; n++) {
        names[n] = pb_index_band_at(n)->name;
        if (strcmp(names[n], name) == 0)
            return CLI_DONE; /* a later index may use the name */
    }
    const char *near = pb_nearest(name, names, n);
    return cli_usage("indices",
                     "there is no band '%s'%s%s%s 'pushbroom indices --bands-help' lists the names",
                     name, near ? "; did you mean '" : ";", near ? near : "", near ? "'?" : "");
}

static int split_bands(struct options *o, const char *list)
{
    free(o->bands_text); /* the last --bands counts */
    o->n_bands = 0;
    o->bands_text = strdup(list);
    if (o->bands_text == NULL)
        return CLI_USAGE;
    char *save = NULL;
    for (char *p = strtok_r(o->bands_text, ", ", &save); p != NULL;
         p = strtok_r(NULL, ", ", &save)) {
        if (o->n_bands == BANDS)
            return cli_usage("indices", "--bands takes at most %d names", BANDS);
        if (check_band(p) != CLI_DONE)
            return CLI_USAGE;
        o->band[o->n_bands++] = p;
    }
    return o->n_bands > 0 ? CLI_DONE
                          : cli_usage("indices", "--bands wants names, for example B,G,R,N");
}

static int check_domain(const char *domain)
{
    const char *known[32];
    size_t n = 0;
    for (size_t i = 0; i < pb_index_count(); i++) {
        const char *d = pb_index_at(i)->domain;
        bool seen = strcmp(d, domain) == 0;
        if (seen)
            return CLI_DONE;
        for (size_t j = 0; j < n; j++)
            seen = seen || strcmp(known[j], d) == 0;
        if (!seen && n < sizeof known / sizeof known[0])
            known[n++] = d;
    }
    char list[300] = "";
    for (size_t j = 0, used = 0; j < n && used < sizeof list; j++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", j ? ", " : "", known[j]);
    return cli_usage("indices", "there is no domain '%s'; known: %s", domain, list);
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"bands", 1, 0, 'b'},
                                          {"bands-help", 0, 0, 'B'},
                                          {"domain", 1, 0, 'd'},
                                          {"json", 0, 0, 'j'},
                                          {0, 0, 0, 0}};
    opterr = 0;
    int rc = CLI_DONE;
    for (int c; rc == CLI_DONE && (c = getopt_long(argc, argv, ":", longs, NULL)) != -1;) {
        switch (c) {
        case 'b':
            rc = split_bands(o, optarg);
            break;
        case 'B':
            o->bands_help = true;
            break;
        case 'd':
            o->domain = optarg;
            break;
        case 'j':
            o->json = true;
            break;
        default:
            rc = cli_bad_option("indices", argv, c, longs);
        }
    }
    if (rc == CLI_DONE && optind < argc)
        o->name = argv[optind++];
    if (rc == CLI_DONE && o->domain != NULL)
        rc = check_domain(o->domain);
    if (rc == CLI_DONE && optind < argc)
        rc = cli_usage("indices", "one name at a time, '%s' is too many", argv[optind]);
    return rc;
}

static bool can(const struct options *o, const struct pb_index *index, char *missing, size_t n)
{
    missing[0] = '\0';
    return o->n_bands == 0 || pb_index_can(index, o->band, o->n_bands, NULL, 0, missing, n);
}

static int json_index(const struct options *o, const struct pb_index *index)
{
    struct pb_json *json = pb_json_create(false);
    char missing[200];
    bool ok = can(o, index, missing, sizeof missing);
    pb_json_object(json, NULL);
    pb_json_string(json, "name", index->name);
    pb_json_string(json, "long_name", index->long_name);
    pb_json_string(json, "domain", index->domain);
    pb_json_string(json, "formula", index->formula);
    pb_json_string(json, "bands", index->bands);
    pb_json_string(json, "reference", index->reference);
    if (o->n_bands > 0) {
        pb_json_bool(json, "available", ok);
        pb_json_string(json, "missing", ok ? NULL : missing);
    }
    pb_json_end(json);
    return cli_finish_json(json);
}

static void print_one(const struct options *o, const struct pb_index *index)
{
    char missing[200];
    printf("%s%s%s  %s\n", cli_color(stdout, CLI_BOLD), index->name, cli_color(stdout, CLI_PLAIN),
           index->long_name);
    printf("  domain     %s\n  formula    ", index->domain);
    cli_wrap(stdout, 13, 80, index->formula);
    printf("  needs      %s\n", index->bands);
    char *names = strdup(index->bands), *save = NULL;
    for (char *p = names ? strtok_r(names, " ", &save) : NULL; p != NULL;
         p = strtok_r(NULL, " ", &save)) {
        const struct pb_index_constant *c = pb_index_constant_find(p);
        if (c != NULL && c->has_default)
            printf("  %-10s %g by default, set by 'constants': %s\n", c->name, c->value, c->doc);
        else if (c != NULL)
            printf("  %-10s must be given in 'constants': %s\n", c->name, c->doc);
    }
    free(names);
    printf("  reference  %s\n", index->reference);
    if (o->n_bands > 0)
        printf("  with these bands: %s%s\n",
               can(o, index, missing, sizeof missing) ? "yes" : "no, missing ", missing);
}

static void print_list(const struct options *o)
{
    size_t shown = 0, available = 0;
    char missing[200];
    for (size_t i = 0; i < pb_index_count(); i++) {
        const struct pb_index *index = pb_index_at(i);
        if (o->domain != NULL && strcmp(o->domain, index->domain) != 0)
            continue;
        bool ok = can(o, index, missing, sizeof missing);
        shown++;
        available += ok;
        if (o->n_bands == 0)
            printf("%-14s %-10s %.54s\n", index->name, index->domain, index->long_name);
        else
            printf("%s%-3s%s %-14s %-10s %s%.42s\n", cli_color(stdout, ok ? CLI_GREEN : CLI_DIM),
                   ok ? "yes" : "no", cli_color(stdout, CLI_PLAIN), index->name, index->domain,
                   ok ? "" : "missing ", ok ? index->long_name : missing);
    }
    if (o->n_bands > 0)
        printf("\n%zu of %zu can be evaluated with these bands.\n", available, shown);
    else
        printf("\n%zu indices; 'pushbroom indices NAME' shows one in full.\n", shown);
}

static int json_bands(void)
{
    int rc = CLI_DONE;
    for (size_t i = 0; rc == CLI_DONE && i < pb_index_band_count(); i++) {
        const struct pb_index_band *band = pb_index_band_at(i);
        struct pb_json *json = pb_json_create(false);
        pb_json_object(json, NULL);
        pb_json_string(json, "name", band->name);
        pb_json_string(json, "meaning", band->meaning);
        pb_json_int(json, "shortest_nm", band->shortest_nm);
        pb_json_int(json, "longest_nm", band->longest_nm);
        pb_json_string(json, "sentinel2", band->sentinel2[0] ? band->sentinel2 : NULL);
        pb_json_string(json, "landsat8", band->landsat8[0] ? band->landsat8 : NULL);
        pb_json_string(json, "planetscope", band->planetscope[0] ? band->planetscope : NULL);
        pb_json_end(json);
        rc = cli_finish_json(json);
    }
    return rc;
}

/* Prints the meaning of the names of bands that indices use. */
static int show_bands(bool as_json)
{
    if (as_json)
        return json_bands();
    printf("%-4s %-28s %-14s %-10s %-9s %s\n", "NAME", "MEANING", "NANOMETRES", "SENTINEL-2",
           "LANDSAT 8", "PLANET");
    for (size_t i = 0; i < pb_index_band_count(); i++) {
        const struct pb_index_band *band = pb_index_band_at(i);
        printf("%-4s %-28s %5d to %-5d %-10s %-9s %s\n", band->name, band->meaning,
               band->shortest_nm, band->longest_nm, band->sentinel2, band->landsat8,
               band->planetscope);
    }
    puts("\nGive these names to the bands of a scene under input.bands or input.files.");
    return CLI_DONE;
}

int cli_indices(int argc, char **argv)
{
    struct options o = {0};
    int rc = parse(argc, argv, &o);
    const struct pb_index *one = o.name ? pb_index_find(o.name) : NULL;
    if (rc == CLI_DONE && o.bands_help) {
        rc = show_bands(o.json);
    } else if (rc == CLI_DONE && o.name != NULL && one == NULL) {
        rc = cli_unknown_name("indices", "index", o.name, pb_index_nearest(o.name));
    } else if (rc == CLI_DONE && o.json) {
        for (size_t i = 0; rc == CLI_DONE && i < pb_index_count(); i++) {
            const struct pb_index *index = pb_index_at(i);
            if ((one == NULL || one == index) &&
                (o.domain == NULL || strcmp(o.domain, index->domain) == 0))
                rc = json_index(&o, index);
        }
    } else if (rc == CLI_DONE && one != NULL) {
        print_one(&o, one);
    } else if (rc == CLI_DONE) {
        print_list(&o);
    }
    free(o.bands_text);
    return rc;
}
