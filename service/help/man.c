/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/man.h"

#include "config/base/clock.h"
#include "config/base/err.h"
#include "config/config.h"
#include "config/schema_doc.h"

#include <stdlib.h>
#include <string.h>

/* Prints a paragraph as a separate line, in which roff finds no command. */
static void put(FILE *out, const char *text, size_t bytes)
{
    if (bytes > 0 && (text[0] == '.' || text[0] == '\''))
        (void)fputs("\\&", out);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\\')
            (void)fputs("\\e", out);
        else if (text[i] == '-')
            (void)fputs("\\-", out);
        else if (text[i] == '\'')
            (void)fputs("\\(aq", out);
        else if (text[i] == '~')
            (void)fputs("\\(ti", out);
        else if (text[i] == '^')
            (void)fputs("\\(ha", out);
        else
            (void)fputc(text[i] == '\n' ? ' ' : text[i], out);
    }
}

static void put_text(FILE *out, const char *text)
{
    put(out, text, strlen(text));
}

static void paragraphs(FILE *out, const char *text)
{
    while (text != NULL && *text) {
        const char *end = strstr(text, "\n\n");
        (void)fputs(".PP\n", out);
        put(out, text, end ? (size_t)(end - text) : strlen(text));
        (void)fputc('\n', out);
        text = end ? end + 2 : NULL;
    }
}

/* Prints the date of the page: today, or SOURCE_DATE_EPOCH, which packagers set for reproducible
 * builds. */
static void print_date(FILE *out)
{
    char text[PB_CLOCK_TEXT_BYTES];
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    long long seconds = epoch ? strtoll(epoch, NULL, 10) : 0;
    pb_clock_text(seconds > 0 ? seconds * 1000 : pb_clock_wall_ms(), text);
    (void)fprintf(out, "%.10s", text);
}

static void head(FILE *out, const char *name, int section, const char *summary)
{
    (void)fprintf(out,
                  ".\\\" SPDX\\-FileCopyrightText: pushbroom authors\n"
                  ".\\\" SPDX\\-License\\-Identifier: Apache\\-2.0\n"
                  ".TH %s %d \"",
                  name, section);
    print_date(out);
    (void)fprintf(out, "\" \"pushbroom %s\" \"pushbroom\"\n.SH NAME\n", PB_VERSION);
    put_text(out, name);
    (void)fputs(" \\- ", out);
    put_text(out, summary);
    (void)fputc('\n', out);
}

static void options(FILE *out, const struct pb_help_option *option)
{
    for (; option->name != NULL; option++) {
        (void)fputs(".TP\n", out);
        if (option->letter != 0)
            (void)fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
        (void)fputs("\\fB\\-\\-", out);
        put_text(out, option->name);
        (void)fprintf(out, "\\fR%s", option->value ? " \\fI" : "");
        if (option->value != NULL)
            (void)fprintf(out, "%s\\fR", option->value);
        (void)fputc('\n', out);
        put_text(out, option->doc);
        (void)fputs(".\n", out);
    }
}

static void usage(FILE *out, const char *program, const struct pb_help_page *page)
{
    (void)fputs("\\fB", out);
    put_text(out, program ? program : page->name);
    if (program != NULL) {
        (void)fputc(' ', out);
        put_text(out, page->name);
    }
    (void)fputs("\\fR ", out);
    put_text(out, page->arguments);
    (void)fputc('\n', out);
}

static void see_also(FILE *out, const char *own)
{
    static const struct {
        const char *name;
        int section;
    } pages[] = {{"pushbroom", 1},       {"pushbroom.yaml", 5},   {"pushbroom-errors", 7},
                 {"pushbroomd", 8},      {"pushbroom-notify", 8}, {"pushbroom-web", 8},
                 {"pushbroom-ccsds", 8}, {"pushbroom-fetch", 8}};
    const char *comma = "";
    (void)fputs(".SH SEE ALSO\n", out);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(pages[i].name, own) == 0)
            continue;
        (void)fprintf(out, "%s\\fB", comma);
        put_text(out, pages[i].name);
        (void)fprintf(out, "\\fR(%d)", pages[i].section);
        comma = ",\n";
    }
    (void)fputc('\n', out);
}

/* Prints the examples of all pages that have one. */
static void example_section(FILE *out, const struct pb_help_page *const *pages, size_t n)
{
    (void)fputs(".SH EXAMPLES\n.nf\n.RS\n", out);
    for (size_t i = 0; i < n; i++) {
        if (pages[i]->example == NULL)
            continue;
        put_text(out, pages[i]->example);
        (void)fputc('\n', out);
    }
    (void)fputs(".RE\n.fi\n", out);
}

/* Prints the shapes of the output with --json. */
static void json_section(FILE *out)
{
    static const char *const rows[][2] = {
        {"run", "an object per scene"},
        {"submit, retry, again, cancel", "the job, an object each"},
        {"status", "a job per line, the newest first, without its report"},
        {"status JOB, quarantine show", "the job with its report"},
        {"status --watch", "the job, an object per change"},
        {"quarantine list", "a job per line"},
        {"metrics", "an object with the text"},
        {"operators, indices, patterns, devices, new", "an object per entry"},
        {"the same with a NAME", "one object"},
        {"check-config", "one object with errors, warnings and the effective configuration"},
        {"an error", "an object with error: code, message and hint; of a job of several also job"}};
    (void)fputs(".SH JSON\nWith \\fB\\-\\-json\\fR each line of the standard output is one JSON "
                "object; a list is one object a line, also when it has one element.\n",
                out);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)fputs(".TP\n", out);
        put_text(out, rows[i][0]);
        (void)fputc('\n', out);
        put_text(out, rows[i][1]);
        (void)fputs(".\n", out);
    }
}

void pb_man_program(const struct pb_help_page *page, FILE *out)
{
    head(out, page->name, 8, page->summary);
    (void)fputs(".SH SYNOPSIS\n", out);
    usage(out, NULL, page);
    (void)fputs(".SH DESCRIPTION\n", out);
    put_text(out, page->name);
    (void)fputc(' ', out);
    put_text(out, page->summary);
    (void)fputs(".\n", out);
    paragraphs(out, page->text);
    (void)fputs(".SH OPTIONS\n", out);
    options(out, page->options);
    if (page->example != NULL)
        example_section(out, &page, 1);
    (void)fputs(".SH FILES\n.TP\n\\fI/etc/pushbroom/pushbroom.yaml\\fR\nThe configuration.\n"
                ".TP\n\\fI/etc/pushbroom/pipelines.d/*.yaml\\fR\nFurther pipelines, by name.\n",
                out);
    see_also(out, page->name);
}

static void command(FILE *out, const struct pb_help_page *page)
{
    (void)fputs(".SS \"", out);
    put_text(out, page->name);
    (void)fputc(' ', out);
    put_text(out, page->arguments);
    (void)fputs("\"\n", out);
    put_text(out, page->summary);
    (void)fputs(".\n", out);
    paragraphs(out, page->text);
    options(out, page->options);
    if (page->example == NULL)
        return;
    (void)fputs(".PP\nExample:\n.PP\n.nf\n.RS\n", out);
    put_text(out, page->example);
    (void)fputs("\n.RE\n.fi\n", out);
}

void pb_man_commands(const struct pb_man_commands *commands, FILE *out)
{
    head(out, "pushbroom", 1, "satellite images in, finished products out");
    (void)fputs(".SH SYNOPSIS\n\\fBpushbroom\\fR \\fICOMMAND\\fR [options]\n"
                ".SH DESCRIPTION\n"
                "Makes cloud\\-optimised GeoTIFFs, quicklooks, statistics and STAC items of "
                "scenes, tile by tile, on the CPU or a GPU: here and now, or as a client of the "
                "service \\fBpushbroomd\\fR(8).\n",
                out);
    for (size_t i = 0; i < commands->n; i++) {
        if (commands->groups[i] != NULL) {
            (void)fputs(".SH \"", out);
            put_text(out, commands->groups[i]);
            (void)fputs("\"\n", out);
        }
        command(out, commands->pages[i]);
    }
    json_section(out);
    example_section(out, commands->pages, commands->n);
    (void)fputs(
        ".SH \"EXIT STATUS\"\n.TP\n0\nDone.\n.TP\n1\nA job failed.\n.TP\n2\nWrong usage or "
        "configuration.\n.TP\n3\nThe service cannot be reached.\n.PP\nA run that is interrupted "
        "ends by the signal (130 in a shell).\n"
        ".SH ENVIRONMENT\n.TP\n\\fBPUSHBROOM_SOCKET\\fR\nWhere the service listens.\n"
        ".TP\n\\fBPUSHBROOM_TUNING\\fR\nFile of measured transfer plans.\n"
        ".TP\n\\fBPUSHBROOM_PRESETS\\fR\nDirectory of presets that is searched first.\n"
        ".TP\n\\fBNO_COLOR\\fR\nNo colours on a terminal.\n"
        ".TP\n\\fBCOLUMNS\\fR\nWidth of lists and of wrapped text.\n"
        ".SH FILES\n.TP\n\\fI/run/pushbroom/status.sock\\fR\nThe socket of the service.\n",
        out);
    see_also(out, "pushbroom");
}

/* --- pushbroom.yaml(5) --- */

static void key(FILE *out, const struct pb_key *key)
{
    char room[120];
    const char *range = pb_key_range(key, room, sizeof room);
    (void)fputs(".TP\n\\fB", out);
    put_text(out, key->name);
    (void)fputs("\\fR: ", out);
    if (key->choices == NULL)
        put_text(out, pb_key_form(key->type));
    for (const char *c = key->choices; c != NULL && *c; c++)
        (void)fputs(*c == '|' ? " | " : (char[]){*c, '\0'}, out);
    if (range != NULL && key->type != PB_KEY_NUMBER) {
        (void)fputs(", ", out);
        put_text(out, range);
    }
    (void)fputc('\n', out);
    put_text(out, key->doc);
    if (key->required || key->def != NULL) {
        (void)fputs(key->required ? " Required" : " Default: ", out);
        put_text(out, key->required ? "" : key->def);
        (void)fputc('.', out);
    }
    (void)fputc('\n', out);
}

static void section(void *user, const char *path, const struct pb_section *section)
{
    FILE *out = user;
    (void)fputs(".SH \"", out);
    put_text(out, path);
    (void)fputs("\"\n", out);
    put_text(out, section->doc);
    (void)fputc('\n', out);
    for (size_t i = 0; i < section->n; i++)
        key(out, &section->keys[i]);
}

void pb_man_config(const struct pb_product_kinds *kinds, FILE *out)
{
    head(out, "pushbroom.yaml", 5, "configuration of pushbroom");
    (void)fputs(".SH DESCRIPTION\nA YAML file with the maps \\fBservice\\fR, \\fBcompute\\fR, "
                "\\fBlimits\\fR and \\fBpipelines\\fR, and the list \\fBnotify\\fR. Only "
                "\\fBpipelines\\fR is needed: a map of names to pipelines. A scene is processed by "
                "the first pipeline whose \\fBinput.match\\fR fits its name.\n.PP\n"
                "A configuration called \\fIpushbroom.yaml\\fR also has the pipelines of the files "
                "\\fIpipelines.d/*.yaml\\fR in its directory, in the order of their names and "
                "after its own. Each of these files is a map \\fBpipelines\\fR; no two pipelines "
                "may have one name.\n.PP\n"
                "\\fBinput\\fR: \\fINAME\\fR takes the input of a preset: names of files, grid, "
                "nodata, metadata and quality band of a sensor. \\fBpushbroom new\\fR lists the "
                "presets. Relative paths begin at the file that has them.\n.PP\n"
                "Sizes are written as 512MiB, 1.5GiB or 10MB, durations as 500ms, 2s, 5m, 1h or "
                "1d. \\fBpushbroom check\\-config\\fR finds mistakes and shows what is in effect; "
                "\\fBpushbroom operators\\fR lists what \\fBsteps\\fR may be.\n",
                out);
    pb_config_sections(kinds, section, out);
    (void)fputs(".SH FILES\n.TP\n\\fI/etc/pushbroom/pushbroom.yaml\\fR\nThe configuration of the "
                "service.\n.TP\n\\fI/etc/pushbroom/pipelines.d/*.yaml\\fR\nFurther pipelines.\n"
                ".TP\n\\fI/etc/pushbroom/presets/*.yaml\\fR\nPresets of this machine; "
                "they are found before the installed ones.\n"
                ".TP\n\\fI/usr/share/pushbroom/presets/*.yaml\\fR\nInstalled presets.\n"
                ".TP\n\\fI/usr/share/pushbroom/pushbroom.yaml\\fR\nA configuration with every "
                "key, its description and default.\n",
                out);
    see_also(out, "pushbroom.yaml");
}

void pb_man_errors(FILE *out)
{
    head(out, "pushbroom-errors", 7, "error codes of pushbroom and what to do");
    (void)fputs(".SH DESCRIPTION\nThe code is for programs; the message with it names the mistake "
                "and its place.\n.SH CODES\n",
                out);
    for (int i = PB_OK + 1; i < PB_E_COUNT; i++) {
        const char *hint = pb_code_hint((enum pb_code)i);
        (void)fputs(".TP\n\\fB", out);
        put_text(out, pb_code_id((enum pb_code)i));
        (void)fputs("\\fR\n", out);
        put_text(out, hint[0] ? hint : "The message is complete without a hint.");
        (void)fputc('\n', out);
    }
    see_also(out, "pushbroom-errors");
}
