/* cli/words/table.h: all commands of the program, and how one is found by its words.
 *
 * The table is the one source of what the program can be told: the help, the manual pages and the completion of
 * shells are made from it. A command's name is a verb alone ("verify"), or a noun and its verb ("log append"). */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/command.h"

/* In the order in which they are listed; the verbs of a noun stand together. main.c has them. */
extern const struct command *const commands[];
extern const size_t commands_count;

/* The length of the command's noun; 0: its name is a verb alone. */
size_t command_noun(const struct command *command);

/* The command's verb. */
const char *command_verb(const struct command *command);

/* Whether the command is a verb of this noun, which has this length. */
bool command_is_of(const struct command *command, const char *noun, size_t length);

/* Whether commands[i] is the first verb of its noun. */
bool command_begins_noun(size_t i);

/* The first verb of this noun; NULL: there is no such noun. */
const struct command *noun_find(const char *noun);

/* The command that these words begin with, and how many of them are its name. NULL: there is none. */
const struct command *command_find(int count, const char *const *words, int *ret_words);

/* Say on stderr that these words, at least one, are no command, and which one may be meant. Returns CLI_USAGE. */
int say_unknown(int count, const char *const *words);

#endif
