#include "cli/words/table.h"

#include <stdio.h>
#include <string.h>

size_t command_noun(const struct command *command)
{
    const char *space = strchr(command->name, ' ');
    return space ? (size_t)(space - command->name) : 0;
}

const char *command_verb(const struct command *command)
{
    size_t noun = command_noun(command);
    return noun ? command->name + noun + 1 : command->name;
}

bool command_is_of(const struct command *command, const char *noun, size_t length)
{
    return length > 0 && command_noun(command) == length && memcmp(command->name, noun, length) == 0;
}

bool command_begins_noun(size_t i)
{
    size_t length = command_noun(commands[i]);
    return length > 0 && (i == 0 || !command_is_of(commands[i - 1], commands[i]->name, length));
}

const struct command *noun_find(const char *noun)
{
    for (size_t i = 0; i < commands_count; i++)
        if (command_is_of(commands[i], noun, strlen(noun)))
            return commands[i];
    return NULL;
}

/* How many of the words are the command's name; 0: it is another command. */
static int words_of(const struct command *command, int count, const char *const *words)
{
    const char *rest = command->name;
    for (int k = 0; k < count; k++) {
        size_t length = strcspn(rest, " ");
        if (strlen(words[k]) != length || memcmp(words[k], rest, length) != 0)
            return 0;
        rest += length;
        if (*rest == '\0')
            return k + 1;
        rest++;
    }
    return 0;
}

const struct command *command_find(int count, const char *const *words, int *ret_words)
{
    for (size_t i = 0; i < commands_count; i++) {
        int used = words_of(commands[i], count, words);
        if (used) {
            *ret_words = used;
            return commands[i];
        }
    }
    return NULL;
}

/* List the verbs of a noun. False: there is no such noun. */
static bool say_verbs(const char *noun)
{
    size_t found = 0;
    for (size_t i = 0; i < commands_count; i++) {
        if (!command_is_of(commands[i], noun, strlen(noun)))
            continue;
        if (found++ == 0)
            fprintf(stderr, "pawl: %s what? There is 'pawl %s'", noun, commands[i]->name);
        else
            fprintf(stderr, " and 'pawl %s'", commands[i]->name);
    }
    if (found)
        fputc('\n', stderr);
    return found > 0;
}

int say_unknown(int count, const char *const *words)
{
    char said[64];
    bool two = count > 1 && words[1][0] != '-', noun = noun_find(words[0]) != NULL;
    snprintf(said, sizeof said, two ? "%.24s %.24s" : "%.24s", words[0], two ? words[1] : "");
    const char *near = NULL;
    size_t apart = 4;
    for (size_t i = 0; i < commands_count; i++) {
        const char *name = commands[i]->name;
        size_t to_all = letters_apart(said, name),
               to_first = letters_apart(words[0], command_verb(commands[i]));
        size_t distance = to_all < to_first || noun ? to_all : to_first; /* of a noun, the verb is wrong */
        if (distance < apart) {
            near = name;
            apart = distance;
        }
    }
    if ((!two || !near) && say_verbs(words[0]))
        return CLI_USAGE;
    if (near)
        fprintf(stderr, "pawl: there is no command '%s'; did you mean 'pawl %s'?\n", said, near);
    else
        fprintf(stderr, "pawl: there is no command '%s'; 'pawl help' lists them\n", said);
    return CLI_USAGE;
}
