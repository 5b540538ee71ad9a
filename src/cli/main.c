/* cli/main.c: the pawl program: find the command, parse its options, run it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/show/say.h"
#include "cli/words/help.h"

const struct command *const commands[] = {
    &command_init,          &command_schema_apply,   &command_schema_show,    &command_ws_create,
    &command_ws_list,       &command_ws_show,        &command_ws_freeze,      &command_ws_export,
    &command_command,       &command_events_read,    &command_events_follow,  &command_record_get,
    &command_record_list,   &command_entity_get,     &command_entity_list,    &command_seq_list,
    &command_project_list,  &command_project_status, &command_project_run,    &command_project_rebuild,
    &command_project_pause, &command_project_resume, &command_op_read,        &command_lease_list,
    &command_lease_stats,   &command_lease_retry,    &command_lease_reclaim,  &command_lease_void,
    &command_verify,        &command_audit,          &command_replay,         &command_backup,
    &command_restore,       &command_log_append,     &command_log_read,       &command_doctor,
    &command_cluster_init,  &command_cluster_check,  &command_cluster_import, &command_cluster_export,
    &command_cluster_skip,  &command_view_create,    &command_view_drop,      &command_view_rebuild,
    &command_view_pause,    &command_view_resume,    &command_view_throttle,  &command_view_list,
    &command_view_status,   &command_view_wait,      &command_view_query,     &command_view_get,
    &command_tablet_list,   &command_tablet_split,   &command_tablet_merge,   &command_system,
    &command_token_create,  &command_token_list,     &command_token_revoke,   &command_help,
    &command_man,           &command_completion,     &command_version,        &command_top,
    &command_status,        &command_bench,
#ifdef PAWL_SERVER
    &command_serve,
#endif
};

const size_t commands_count = sizeof commands / sizeof commands[0];

static int run_command(int argc, char **argv)
{
    int words;
    pawl_error error = {0};
    struct options options;
    const struct command *command = command_find(argc, (const char *const *)argv, &words);
    if (!command && argc > 1 && strcmp(argv[1], "--help") == 0 && noun_find(argv[0])) {
        print_verbs(noun_find(argv[0]));
        return CLI_OK;
    }
    if (!command)
        return say_unknown(argc, (const char *const *)argv);
    for (int k = words; k < argc; k++)
        if (strcmp(argv[k], "--help") == 0) {
            print_help(command);
            return CLI_OK;
        }
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
    if (strcmp(argv[1], "--help") == 0) {
        print_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        print_version();
        return CLI_OK;
    }
    return run_command(argc - 1, argv + 1);
}
