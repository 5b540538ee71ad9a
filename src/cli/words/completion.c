#include "cli/words/completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/show/say.h"

static bool is_called(const char *called, const char *name)
{
    size_t open = called[0] == '[', length = strlen(name);
    return strncmp(called + open, name, length) == 0 && strcmp(called + open + length, open ? "]" : "") == 0;
}

enum value_kind completion_kind(const struct command *command, const char *called, const char **ret_words)
{
    static const struct {
        const char *name;
        enum value_kind kind;
    } kinds[] = {{"FILE", VALUE_FILE},        {"DIR", VALUE_DIRECTORY}, {"NEWDIR", VALUE_DIRECTORY},
                 {"BACKUP", VALUE_DIRECTORY}, {"LOG", VALUE_DIRECTORY}, {"COMMAND", VALUE_COMMAND},
                 {"VERB", VALUE_VERB}};
    for (size_t i = 0; i < CHOICES_MAX && command->choices[i].called; i++)
        if (is_called(called, command->choices[i].called)) {
            *ret_words = command->choices[i].words;
            return VALUE_CHOICE;
        }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_called(called, kinds[i].name))
            return kinds[i].kind;
    return VALUE_UNKNOWN;
}

static int run(const struct options *options)
{
    pawl_error error = {0};
    const char *shell = options->arguments[0];
    if (strcmp(shell, "bash") == 0)
        completion_bash();
    else if (strcmp(shell, "zsh") == 0)
        completion_zsh();
    else {
        pawl_error_set(&error, PAWL_EINVAL,
                       "there is no completion for '%s'; there is one for bash and for zsh", shell);
        return say_usage(&error);
    }
    return say_finish(&error) == PAWL_OK ? CLI_OK : say_failure(options, &error);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print a script that lets a shell complete the commands of pawl",
    .about =
        "SHELL is bash or zsh. Where Pawl is installed, the shells find their script by themselves;\n"
        "elsewhere 'source <(pawl completion bash)', or the same with zsh behind its compinit, is enough.\n",
    .arguments = {"SHELL"},
    .options = {OPTION_JSON},
    .choices = {{"SHELL", "bash zsh"}},
    .run = run,
};
