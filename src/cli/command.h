/* cli/command.h: a command of the program.
 *
 * A file holds one command, or the few verbs of a noun; main.c has the table of them. A command gets its
 * options parsed and returns the program's exit code. If that is not 0, it has said why on stderr. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/options.h"

/* Part of the interface: docs/CLI.md. A signal that ended the work makes it 128 and its number. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_CORRUPT = 3,
    CLI_OWNED = 4,  /* for good: pawl.service is not started again */
    CLI_LOCKED = 5, /* it may be free soon */
};

/* The words that a value may be: "WHEN", "applied durable". */
struct choice {
    const char *called;
    const char *words; /* with a space between them */
};

#define CHOICES_MAX 2

/* These tables are the one source of the help, the manual pages and the completion of shells. */
struct command {
    const char *name; /* "log append": a noun and its verb; or a verb alone */
    const char *summary;
    const char *about; /* the long help, in lines */
    const char *arguments[ARGUMENTS_MAX];
    struct option_spec options[OPTIONS_MAX];
    struct choice choices[CHOICES_MAX]; /* of its arguments and options */
    int (*run)(const struct options *options);
};

extern const struct command command_audit;
extern const struct command command_backup;
extern const struct command command_bench;
extern const struct command command_cluster_check;
extern const struct command command_cluster_export;
extern const struct command command_cluster_import;
extern const struct command command_cluster_init;
extern const struct command command_cluster_skip;
extern const struct command command_command;
extern const struct command command_completion;
extern const struct command command_doctor;
extern const struct command command_entity_get;
extern const struct command command_entity_list;
extern const struct command command_events_follow;
extern const struct command command_events_read;
extern const struct command command_help;
extern const struct command command_init;
extern const struct command command_lease_list;
extern const struct command command_lease_reclaim;
extern const struct command command_lease_retry;
extern const struct command command_lease_stats;
extern const struct command command_lease_void;
extern const struct command command_log_append;
extern const struct command command_log_read;
extern const struct command command_man;
extern const struct command command_op_read;
extern const struct command command_project_list;
extern const struct command command_project_pause;
extern const struct command command_project_rebuild;
extern const struct command command_project_resume;
extern const struct command command_project_run;
extern const struct command command_project_status;
extern const struct command command_record_get;
extern const struct command command_record_list;
extern const struct command command_replay;
extern const struct command command_restore;
extern const struct command command_schema_apply;
extern const struct command command_schema_show;
extern const struct command command_seq_list;
extern const struct command command_serve;
extern const struct command command_system;
extern const struct command command_tablet_list;
extern const struct command command_tablet_merge;
extern const struct command command_tablet_split;
extern const struct command command_token_create;
extern const struct command command_token_list;
extern const struct command command_token_revoke;
extern const struct command command_status;
extern const struct command command_top;
extern const struct command command_verify;
extern const struct command command_version;
extern const struct command command_view_create;
extern const struct command command_view_drop;
extern const struct command command_view_get;
extern const struct command command_view_list;
extern const struct command command_view_pause;
extern const struct command command_view_query;
extern const struct command command_view_rebuild;
extern const struct command command_view_resume;
extern const struct command command_view_status;
extern const struct command command_view_throttle;
extern const struct command command_view_wait;
extern const struct command command_ws_create;
extern const struct command command_ws_export;
extern const struct command command_ws_freeze;
extern const struct command command_ws_list;
extern const struct command command_ws_show;

#endif
