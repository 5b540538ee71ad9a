/* cli/main.c: the pawl program: find the command, parse its options, run it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <pawl/version.h>

#include "cli/say.h"

static const struct command *const commands[] = {
    &command_init,          &command_schema_apply,    &command_schema_show,   &command_ws_create,
    &command_ws_list,       &command_ws_show,         &command_command,       &command_events_read,
    &command_events_follow, &command_record_get,      &command_record_list,   &command_entity_get,
    &command_entity_list,   &command_seq_list,        &command_project_list,  &command_project_status,
    &command_project_run,   &command_project_rebuild, &command_project_pause, &command_project_resume,
    &command_op_read,       &command_lease_list,      &command_lease_stats,   &command_lease_retry,
    &command_lease_reclaim, &command_lease_void,      &command_verify,        &command_replay,
    &command_backup,        &command_restore,         &command_log_append,    &command_log_read,
    &command_doctor,        &command_cluster_init,    &command_cluster_check,
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static void print_overview(FILE *to)
{
    fputs("pawl: an event store that loses nothing it has acknowledged\n\n", to);
    fputs("usage: pawl COMMAND [ARGUMENT ...] [--option VALUE ...]\n\n", to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-16s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help COMMAND     what a command does, and its options\n"
          "  version          the version of this program\n\n"
          "The directory is always --dir DIR, or PAWL_DIR in the environment; a log on Kafka is --log URL.\n\n"
          "Exit codes: 0 done, 1 failed, 2 wrong use, 3 corruption found, 4 another process has it open for\n"
          "writing; 128 and the signal's number if a signal ended it.\n",
          to);
}

static int print_help(const struct command *command)
{
    printf("usage: pawl %s", command->name);
    for (size_t i = 0; i < ARGUMENTS_MAX && command->arguments[i]; i++)
        printf(" %s", command->arguments[i]);
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *o = &command->options[i];
        printf(o->value ? " [--%s %s]" : " [--%s]", o->name, o->value);
    }
    printf("\n\n%s\n", command->about);
    for (size_t i = 0; i < OPTIONS_MAX && command->options[i].name; i++) {
        const struct option_spec *o = &command->options[i];
        char name[32];
        snprintf(name, sizeof name, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-22s %s\n", name, o->help);
    }
    return CLI_OK;
}

static void print_version(void)
{
    const pawl_version_info *info = pawl_version();
    printf("pawl %s (commit %s%s)\nformats:", info->version, info->commit,
           info->cluster ? "" : ", without Kafka");
    for (size_t i = 0; i < info->format_count; i++)
        printf("%s %s %u", i ? "," : "", info->formats[i].name, info->formats[i].version);
    putchar('\n');
}

/* How many words of argv are the command's name; 0: it is another command. */
static int words_of(const struct command *command, int argc, char **argv)
{
    const char *rest = command->name;
    for (int k = 0; k < argc; k++) {
        size_t length = strcspn(rest, " ");
        if (strlen(argv[k]) != length || memcmp(argv[k], rest, length) != 0)
            return 0;
        rest += length;
        if (*rest == '\0')
            return k + 1;
        rest++;
    }
    return 0;
}

static const struct command *find_command(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        *ret_words = words_of(commands[i], argc, argv);
        if (*ret_words)
            return commands[i];
    }
    return NULL;
}

/* The first word is a noun alone: list its verbs. False: there is no such noun. */
static bool say_verbs(const char *noun)
{
    size_t length = strlen(noun), found = 0;
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *name =
            commands[i]->name; // NOLINT(clang-analyzer-core.NullDereference): a table of constants
        if (strncmp(name, noun, length) != 0 || name[length] != ' ')
            continue;
        if (found++ == 0)
            fprintf(stderr, "pawl: %s what? There is 'pawl %s'", noun, name);
        else
            fprintf(stderr, " and 'pawl %s'", name);
    }
    if (found)
        fputc('\n', stderr);
    return found > 0;
}

static int say_unknown(int argc, char **argv)
{
    char said[64];
    bool two = argc > 1 && argv[1][0] != '-';
    snprintf(said, sizeof said, two ? "%.24s %.24s" : "%.24s", argv[0], two ? argv[1] : "");
    const char *near = NULL;
    size_t apart = 4;
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *name =
            commands[i]->name; // NOLINT(clang-analyzer-core.NullDereference): a table of constants
        const char *last_word = strrchr(name, ' ') ? strrchr(name, ' ') + 1 : name;
        size_t to_all = letters_apart(said, name), to_first = letters_apart(argv[0], last_word);
        size_t distance = to_all < to_first ? to_all : to_first;
        if (distance < apart) {
            near = name;
            apart = distance;
        }
    }
    if (!two && say_verbs(argv[0]))
        return CLI_USAGE;
    if (near)
        fprintf(stderr, "pawl: there is no command '%s'; did you mean 'pawl %s'?\n", said, near);
    else
        fprintf(stderr, "pawl: there is no command '%s'; 'pawl help' lists them\n", said);
    return CLI_USAGE;
}

static int help(int argc, char **argv)
{
    int words;
    if (argc == 0) {
        print_overview(stdout);
        return CLI_OK;
    }
    const struct command *command = find_command(argc, argv, &words);
    return command ? print_help(command) : say_unknown(argc, argv);
}

static int run_command(int argc, char **argv)
{
    int words;
    pawl_error error = {0};
    struct options options;
    const struct command *command = find_command(argc, argv, &words);
    if (!command)
        return say_unknown(argc, argv);
    for (int k = words; k < argc; k++)
        if (strcmp(argv[k], "--help") == 0)
            return print_help(command);
    if (options_parse(command->options, command->arguments, argc - words, argv + words, &options, &error)
        != PAWL_OK) {
        pawl_error_wrap(&error, PAWL_EINVAL, "%s", command->name);
        return say_usage(&error);
    }
    return command->run(&options);
}

int main(int argc, char **argv)
{
    /* If stdout's reader is gone, a write fails; the process does not end by a signal. */
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(argv[1], "--help") == 0)
        return help(0, NULL);
    if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0) {
        print_version();
        return CLI_OK;
    }
    return run_command(argc - 1, argv + 1);
}
