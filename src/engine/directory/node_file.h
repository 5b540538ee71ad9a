/* engine/directory/node_file.h: what a data directory was made with, and where its parts are.
 *
 *     DIR/node        text: "pawl 1", "partitions 16", "shards 2", one a line; in a directory that holds only
 *                     state, derived from another's log, also "log /path/of/it"
 *     DIR/lock        the process that writes, as long as it has a lock on it
 *     DIR/log/        the journal
 *     DIR/state/N/    the live store of shard N; the checkpoint stores are engine/checkpoint/stores.h's */
#ifndef ENGINE_DIRECTORY_NODE_FILE_H
#define ENGINE_DIRECTORY_NODE_FILE_H

#include <pawl/types.h>

#define NODE_FILE_VERSION 1
#define NODE_PATH_MAX     4096
#define NODE_LOCK         "lock"

struct node_file {
    uint32_t partitions;
    uint32_t shards;
    char log[NODE_PATH_MAX]; /* "": the directory's own */
};

/* PAWL_ENOTFOUND: there is none. PAWL_EFORMAT, PAWL_EVERSION, and those of reading it. */
int node_file_read(const char *dir, struct node_file *ret_file, pawl_error *error);

/* Make the directory, if it is not there. */
int node_directory_make(const char *dir, pawl_error *error);

/* Make the directory with its parts, and then the file, synced: whoever finds the file finds the rest. One
 * process at a time: whoever makes a directory to write in it has its lock. */
int node_file_make(const char *dir, const struct node_file *file, pawl_error *error);

/* Be the one that writes, which a lock on a file of this name says until it is closed, whoever closes it.
 * PAWL_ELOCKED: another is, and named. */
int node_lock(const char *dir, const char *name, int *ret_fd, pawl_error *error);

/* Whether the directory holds nothing, but for what a process that was killed while it made one has left there,
 * and making it again takes over. errno if it cannot be looked into. */
int node_is_new(const char *dir, bool *ret_new);

/* "DIR/log", "DIR/state/3". PAWL_ETOOBIG. */
int node_path(const char *dir, char *ret_path, pawl_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
