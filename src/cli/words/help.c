#include "cli/words/help.h"

#include <string.h>

#include <pawl/version.h>

const char about_pawl[] = "an event store that loses nothing it has acknowledged";
const char about_usage[] = "COMMAND [ARGUMENT ...] [--option VALUE ...]";
const char about_directory[] =
    "The directory is always --dir DIR, or PAWL_DIR in the environment; a server is --url URL, or PAWL_URL;\n"
    "a log on Kafka is --log URL.\n";

const struct exit_meaning exit_meanings[EXIT_MEANINGS] = {
    {"0", "done"},
    {"1", "failed; stderr says why"},
    {"2", "wrong use"},
    {"3", "corruption found"},
    {"4", "another node owns the log on Kafka, or has taken it over"},
    {"5", "another process has the directory open for writing"},
    {"128+N", "signal N ended it"},
};

void print_overview(FILE *to)
{
    fprintf(to, "pawl: %s\n\nusage: pawl %s\n\n", about_pawl, about_usage);
    for (size_t i = 0; i < commands_count; i++)
        fprintf(to, "  %-16s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "\n%s\nExit codes:\n", about_directory);
    for (size_t i = 0; i < EXIT_MEANINGS; i++)
        fprintf(to, "  %-8s %s\n", exit_meanings[i].code, exit_meanings[i].meaning);
}

void print_help(const struct command *command)
{
    printf("usage: pawl %s", command->name);
    for (size_t i = 0; i < ARGUMENTS_MAX && command->arguments[i]; i++)
        printf(" %s", command->arguments[i]);
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *o = &command->options[i];
        printf(" %s--%s%s%s%s", o->needed ? "" : "[", o->name, o->value ? " " : "", o->value ? o->value : "",
               o->needed ? "" : "]");
    }
    printf("\n\n%s\n", command->about);
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *o = &command->options[i];
        char name[32];
        snprintf(name, sizeof name, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-22s %s\n", name, o->help);
    }
}

void print_verbs(const struct command *first)
{
    size_t length = command_noun(first);
    printf("usage: pawl %.*s VERB [ARGUMENT ...] [--option VALUE ...]\n\n", (int)length, first->name);
    for (size_t i = 0; i < commands_count; i++)
        if (command_is_of(commands[i], first->name, length))
            printf("  %-16s %s\n", command_verb(commands[i]), commands[i]->summary);
    printf("\n'pawl help %.*s VERB' says more.\n", (int)length, first->name);
}

void print_version(void)
{
    const pawl_version_info *info = pawl_version();
    printf("pawl %s (commit %s%s)\nformats:", info->version, info->commit,
           info->cluster ? "" : ", without Kafka");
    for (size_t i = 0; i < info->format_count; i++)
        printf("%s %s %u", i ? "," : "", info->formats[i].name, info->formats[i].version);
    putchar('\n');
}

static int run_help(const struct options *options)
{
    const char *const *words = options->arguments;
    int count = !words[0] ? 0 : !words[1] ? 1 : 2, used;
    if (count == 0) {
        print_overview(stdout);
        return CLI_OK;
    }
    const struct command *command = command_find(count, words, &used);
    const struct command *noun = count == 1 ? noun_find(words[0]) : NULL;
    if (command)
        print_help(command);
    else if (noun)
        print_verbs(noun);
    else
        return say_unknown(count, words);
    return CLI_OK;
}

static int run_version(const struct options *options)
{
    (void)options;
    print_version();
    return CLI_OK;
}

const struct command command_help = {
    .name = "help",
    .summary = "what a command does, and its options",
    .about =
        "Of a noun it lists the verbs, and without an argument all commands. 'pawl COMMAND --help' says the\n"
        "same.\n",
    .arguments = {"[COMMAND]", "[VERB]"},
    .run = run_help,
};

const struct command command_version = {
    .name = "version",
    .summary = "the version of this program",
    .about = "Its version and commit, and the versions of the formats that it writes.\n",
    .run = run_version,
};
