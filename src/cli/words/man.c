/* cli/words/man.c: the manual pages, as roff, made from the tables that the help is made from.
 *
 * There is pawl(1), a page for each noun, which lists its verbs, and a page for each command: pawl-view(1),
 * pawl-view-create(1). They use the man macros that groff and mandoc share, and have no date: the version says
 * which program a page belongs to. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <pawl/version.h>

#include "cli/show/say.h"
#include "cli/words/help.h"

#define PAGE_NAME_MAX 64

/* Print text so that roff shows it as it is: no character is a command, and none becomes a typographic one that
 * cannot be pasted into a shell. */
static void put(FILE *to, const char *text)
{
    for (const char *at = text; *at; at++) {
        switch (*at) {
        case '\\': fputs("\\e", to); break;
        case '-': fputs("\\-", to); break;
        case '\'': fputs("\\(aq", to); break;
        case '`': fputs("\\(ga", to); break;
        case '^': fputs("\\(ha", to); break;
        case '~': fputs("\\(ti", to); break;
        case '"': fputs("\\(dq", to); break;
        case '.':
            if (at == text || at[-1] == '\n')
                fputs("\\&", to);
            fputc('.', to);
            break;
        default: fputc(*at, to); break;
        }
    }
}

static void put_bold(FILE *to, const char *text)
{
    fputs("\\fB", to);
    put(to, text);
    fputs("\\fR", to);
}

static void put_italic(FILE *to, const char *text)
{
    fputs("\\fI", to);
    put(to, text);
    fputs("\\fR", to);
}

/* "pawl-view-create", of the first letters of a command's name. */
static void page_name(const char *words, size_t length, char name[PAGE_NAME_MAX])
{
    int size = snprintf(name, PAGE_NAME_MAX, "pawl%s%.*s", length ? "-" : "", (int)length, words);
    for (int i = 0; i < size && i < PAGE_NAME_MAX; i++)
        if (name[i] == ' ')
            name[i] = '-';
}

static void put_head(FILE *to, const char *name, const char *summary)
{
    char title[PAGE_NAME_MAX];
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof title; i++)
        title[i] = (char)toupper((unsigned char)name[i]);
    title[i] = '\0';
    fputs(".\\\" Made by 'pawl man' from the tables of the program.\n.TH ", to);
    put(to, title);
    fprintf(to, " 1 \"\" \"pawl %s\" \"Pawl\"\n.SH NAME\n", pawl_version()->version);
    put(to, name);
    fputs(" \\- ", to);
    put(to, summary);
    fputs("\n.SH SYNOPSIS\n", to);
}

/* "--dir DIR", the name bold. */
static void put_option(FILE *to, const struct option_spec *option)
{
    fputs("\\fB\\-\\-", to);
    put(to, option->name);
    fputs("\\fR", to);
    if (option->value) {
        fputs("\\ ", to);
        put_italic(to, option->value);
    }
}

/* An argument, whose name may be in brackets. */
static void put_argument(FILE *to, const char *argument)
{
    size_t length = strcspn(argument, "[]"), optional = argument[0] == '[';
    char name[PAGE_NAME_MAX];
    if (optional)
        length = strcspn(argument + 1, "]");
    snprintf(name, sizeof name, "%.*s", (int)length, argument + optional);
    fputs(optional ? "[" : "", to);
    put_italic(to, name);
    fputs(optional ? "]" : "", to);
}

static void put_synopsis(FILE *to, const struct command *command)
{
    fputs("\\fBpawl ", to);
    put(to, command->name);
    fputs("\\fR\n", to);
    for (size_t i = 0; i < ARGUMENTS_MAX && command->arguments[i]; i++) {
        put_argument(to, command->arguments[i]);
        fputc('\n', to);
    }
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *option = &command->options[i];
        fputs(option->needed ? "" : "[", to);
        put_option(to, option);
        fputs(option->needed ? "" : "]", to);
        fputs(option->many ? " ...\n" : "\n", to);
    }
}

static void put_reference(FILE *to, const char *words, size_t length, const char *behind)
{
    char name[PAGE_NAME_MAX];
    page_name(words, length, name);
    fputs(".BR ", to);
    put(to, name);
    fprintf(to, " (1)%s\n", behind);
}

static void put_command(FILE *to, const struct command *command)
{
    char name[PAGE_NAME_MAX];
    page_name(command->name, strlen(command->name), name);
    put_head(to, name, command->summary);
    put_synopsis(to, command);
    fputs(".SH DESCRIPTION\n", to);
    put(to, command->about);
    if (command->options[0].name)
        fputs(".SH OPTIONS\n", to);
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        fputs(".TP\n", to);
        put_option(to, &command->options[i]);
        fputc('\n', to);
        put(to, command->options[i].help);
        fputc('\n', to);
    }
    fputs(".SH EXIT STATUS\nAs\n.BR pawl (1)\nsays.\n.SH SEE ALSO\n", to);
    put_reference(to, "", 0, command_noun(command) ? "," : "");
    if (command_noun(command))
        put_reference(to, command->name, command_noun(command), "");
}

static void put_noun(FILE *to, const struct command *first)
{
    char name[PAGE_NAME_MAX], noun[PAGE_NAME_MAX], summary[2 * PAGE_NAME_MAX];
    size_t length = command_noun(first);
    snprintf(noun, sizeof noun, "%.*s", (int)length, first->name);
    page_name(noun, length, name);
    snprintf(summary, sizeof summary, "the verbs of 'pawl %s'", noun);
    put_head(to, name, summary);
    fputs("\\fBpawl ", to);
    put(to, noun);
    fputs("\\fR\n\\fIVERB\\fR\n[\\fIARGUMENT\\fR ...]\n[\\fB\\-\\-option\\fR\\ \\fIVALUE\\fR ...]\n"
          ".SH DESCRIPTION\nEach verb has a page of its own.\n",
          to);
    for (size_t i = 0; i < commands_count; i++) {
        if (!command_is_of(commands[i], noun, length))
            continue;
        fputs(".TP\n", to);
        put_reference(to, commands[i]->name, strlen(commands[i]->name), "");
        put(to, commands[i]->summary);
        fputc('\n', to);
    }
    fputs(".SH SEE ALSO\n", to);
    put_reference(to, "", 0, "");
}

/* Of the program, whatever the command is. */
static void put_overview(FILE *to, const struct command *command)
{
    (void)command;
    put_head(to, "pawl", about_pawl);
    fputs(
        "\\fBpawl\\fR\n\\fICOMMAND\\fR\n[\\fIARGUMENT\\fR ...]\n[\\fB\\-\\-option\\fR\\ \\fIVALUE\\fR ...]\n"
        ".SH DESCRIPTION\n"
        "Each command has a page of its own, which is named after it:\n"
        ".BR pawl\\-log\\-append (1)\n"
        "is that of \\(aqpawl log append\\(aq, and\n"
        ".BR pawl\\-log (1)\n"
        "lists the verbs of log.\n"
        "Options may stand before, between or behind the arguments, as \\-\\-name VALUE or \\-\\-name=VALUE.\n"
        "Answers go to stdout, everything else to stderr.\n.PP\n",
        to);
    put(to, about_directory);
    fputs(".SH COMMANDS\n", to);
    for (size_t i = 0; i < commands_count; i++) {
        fputs(".TP\n", to);
        put_bold(to, commands[i]->name);
        fputc('\n', to);
        put(to, commands[i]->summary);
        fputc('\n', to);
    }
    fputs(".SH ENVIRONMENT\n.TP\n\\fBPAWL_DIR\\fR\nthe data directory, if \\-\\-dir is not given\n"
          ".TP\n\\fBPAWL_URL\\fR\na server, if neither \\-\\-url nor \\-\\-dir is given\n"
          ".TP\n\\fBPAWL_TOKEN\\fR\nthe token for it, if \\-\\-token\\-file is not given\n"
          ".TP\n\\fBPAWL_CA\\fR\na file of certificates that are trusted for https, instead of the system's\n"
          ".SH EXIT STATUS\n",
          to);
    for (size_t i = 0; i < EXIT_MEANINGS; i++) {
        fputs(".TP\n", to);
        put_bold(to, exit_meanings[i].code);
        fputc('\n', to);
        put(to, exit_meanings[i].meaning);
        fputc('\n', to);
    }
}

typedef void put_page_fn(FILE *to, const struct command *command);

/* Write a page into a file that is named after the first letters of the command's name; none: pawl(1). */
static int write_page(const char *dir, const struct command *command, size_t letters, put_page_fn *put_page,
                      pawl_error *error)
{
    char name[PAGE_NAME_MAX], path[4096];
    page_name(command->name, letters, name);
    int size = snprintf(path, sizeof path, "%s/%s.1", dir, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return pawl_error_set(error, PAWL_EINVAL, "--to: a path of more than %zu bytes", sizeof path - 1);
    FILE *to = fopen(path, "we");
    if (!to)
        return pawl_error_errno(error, errno, "cannot write %s", path);
    put_page(to, command);
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed)
        return pawl_error_errno(error, errno, "cannot write %s", path);
    return PAWL_OK;
}

static int write_pages(const char *dir, pawl_error *error)
{
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return pawl_error_errno(error, errno, "cannot make %s", dir);
    int status = write_page(dir, &command_man, 0, put_overview, error);
    for (size_t i = 0; status == PAWL_OK && i < commands_count; i++) {
        if (command_begins_noun(i))
            status = write_page(dir, commands[i], command_noun(commands[i]), put_noun, error);
        if (status == PAWL_OK)
            status = write_page(dir, commands[i], strlen(commands[i]->name), put_command, error);
    }
    return status;
}

static int run(const struct options *options)
{
    pawl_error error = {0};
    const char *const *words = options->arguments;
    const char *dir = options_get(options, "to");
    int count = !words[0] ? 0 : !words[1] ? 1 : 2, used;
    if (dir && count > 0) {
        pawl_error_set(&error, PAWL_EINVAL, "--to writes all pages: name none of them");
        return say_usage(&error);
    }
    if (dir)
        return write_pages(dir, &error) == PAWL_OK ? CLI_OK : say_failure(options, &error);
    const struct command *command = count ? command_find(count, words, &used) : NULL;
    const struct command *noun = count == 1 ? noun_find(words[0]) : NULL;
    if (count == 0)
        put_overview(stdout, &command_man);
    else if (command)
        put_command(stdout, command);
    else if (noun)
        put_noun(stdout, noun);
    else
        return say_unknown(count, words);
    return say_finish(&error) == PAWL_OK ? CLI_OK : say_failure(options, &error);
}

const struct command command_man = {
    .name = "man",
    .summary = "print a manual page, or write all of them",
    .about =
        "The page of a command, or of a noun, or without an argument that of the program, as roff: 'pawl man\n"
        "log read | man -l -' shows it. With --to it writes all pages into a directory, which is made if it "
        "is\n"
        "not there.\n",
    .arguments = {"[COMMAND]", "[VERB]"},
    .options = {{"to", "DIR", "write all pages into this directory"}, OPTION_JSON},
    .run = run,
};
