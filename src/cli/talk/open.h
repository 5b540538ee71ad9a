/* cli/talk/open.h: an engine's directory, or a log alone, opened for one command.
 *
 * A command that only reads opens it read-only, which works beside a process that writes. A command that writes
 * is refused while another process writes. */
#ifndef CLI_OPEN_H
#define CLI_OPEN_H

#include <pawl/pawl.h>

#include <signal.h>

#include "cli/show/say.h"

enum opening { OPEN_TO_READ, OPEN_TO_WRITE };

/* Open the directory that the options name. On failure it has said why, and returns the exit code. CLI_OK: it
 * is open. */
int open_dir(const struct options *options, enum opening opening, pawl_engine **ret_engine);

/* The same with this directory, without saying why it failed. */
int try_open(const char *dir, enum opening opening, pawl_engine **ret_engine, pawl_error *error);

/* Open this directory for writing, with its log where the options --log and --take-over say; log: NULL, as it was made.
 * With a log, a directory that is not there is made. Shows how far it has come if there is much to derive; signals, if
 * not NULL, are blocked, and one that waits ends that. Returns the exit code: CLI_LOCKED if another process has
 * it, CLI_OWNED if another node has the log. */
int open_owner(const struct options *options, const char *dir, const pawl_options *how, const sigset_t *signals,
               pawl_engine **ret_engine);

/* The options of that. */
#define OPTION_OWNED_LOG                                                                                       \
    {                                                                                                          \
        "log", "URL", "the log is on Kafka: kafka://HOST:PORT[,HOST:PORT...]/CLUSTER"                          \
    }
#define OPTION_TAKE_OVER                                                                                       \
    {                                                                                                          \
        "take-over", NULL, "take the log over from the node that owns it, which is out then"                   \
    }

/* The exit code of a failure to open a directory, after it was said: CLI_OWNED if another node has its log. */
int owner_failure(const struct options *options, const pawl_error *error);

/* Open it for writing, so that what goes on by itself goes on; if another process has it open for writing,
 * which does the same, read-only: *ret_reading. */
int try_open_to_wait(const char *dir, pawl_engine **ret_engine, bool *ret_reading, pawl_error *error);

/* Say on stderr how many entries are not shown (cli/show/left_out.h). close_dir does it; a command that follows does
 * it when it begins. */
void say_left_out(pawl_engine *engine);

/* Close the directory, and check that stdout took everything. status and error: how the command ended; a
 * failure is said on stderr. Returns the exit code: CLI_OWNED if another node took the log over meanwhile. */
int close_dir(const struct options *options, pawl_engine *engine, int status, pawl_error *error);

/* The same with nothing to close. */
int end_output(const struct options *options, int status, pawl_error *error);

/* A log, with threads of its own. */
struct open_log {
    pawl_env *env;
    pawl_log *log;
};

int open_log(const char *where, bool read_only, struct open_log *ret_log, pawl_error *error);
int close_log(struct open_log *log);

/* The options of a read: --min-offset. */
int options_read(const struct options *options, pawl_read_options *ret_read, pawl_error *error);
#define OPTION_MIN_OFFSET                                                                                      \
    {                                                                                                          \
        "min-offset", "N", "wait until the state has this offset of the partition"                             \
    }

/* Print it, and free it. */
void print_text(pawl_text *text);

/* Read a whole file, or stdin if it is "-". A zero byte is put behind it; free() it. PAWL_ETOOBIG beyond
 * bytes_max. */
int read_whole(const char *file, size_t bytes_max, char **ret_data, size_t *ret_size, pawl_error *error);

#endif
