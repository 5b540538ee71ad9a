/* engine/directory/node_file.h: what a data directory was made with, and what lies where in it.
 *
 *     DIR/node        text: "pawl 1", "partitions 16", "shards 2", one a line; in a directory that holds only
 *                     state, derived from the log of another one, also "log /path/of/it". If the log is on
 *                     Kafka: "pawl 3", and at the end "node 0123456789abcdef", "kafka ID" and "log kafka://...";
 *                     "pawl 2" without "kafka ID", if no opening has learnt yet which Kafka cluster that is
 *     DIR/lock        the ID of the writing process, which holds a lock on this file
 *     DIR/log/        the journal
 *     DIR/state/N/    the live store of shard N; the checkpoint stores are engine/checkpoint/stores.h's */
#ifndef ENGINE_DIRECTORY_NODE_FILE_H
#define ENGINE_DIRECTORY_NODE_FILE_H

#include <pawl/types.h>

#define NODE_FILE_VERSION 3 /* the newest; a directory with a log of its own is still of version 1 */
#define NODE_PATH_MAX     4096
#define NODE_KAFKA_MAX    256 /* an ID of a Kafka cluster, with its zero byte */
#define NODE_LOCK         "lock"

struct node_file {
    uint32_t partitions;
    uint32_t shards;
    uint64_t node;              /* on Kafka: this directory's ID among those that share the log; otherwise 0 */
    char kafka[NODE_KAFKA_MAX]; /* on Kafka: the ID of the Kafka cluster that the log is in; "": not known */
    char log[NODE_PATH_MAX];    /* "": the directory's own; kafka://...; otherwise the path of another's */
};

/* Whether the log is on Kafka. Such a directory may own it, as one with a log of its own does. */
bool node_is_on_kafka(const struct node_file *file);

/* Whether it holds only state, of another directory's log. */
static inline bool node_is_derived(const struct node_file *file)
{
    return file->log[0] != '\0' && !node_is_on_kafka(file);
}

/* An ID for a new directory, by chance; never 0, and never one of an import's (core/group0/import.h). */
uint64_t node_id_new(void);

/* PAWL_ENOTFOUND: there is no such file. PAWL_EFORMAT, PAWL_EVERSION, and errors of reading it. */
int node_file_read(const char *dir, struct node_file *ret_file, pawl_error *error);

/* Make the directory, if it is not there. */
int node_directory_make(const char *dir, pawl_error *error);

/* Make the directory with all that is in it, and the file last, all synced: if the file is there, so is the
 * rest. A caller that makes a directory to write to it must hold its lock, so that one process does this at a
 * time. */
int node_file_make(const char *dir, const struct node_file *file, pawl_error *error);

/* Write the file again, with something else in it. The caller holds the lock. */
int node_file_replace(const char *dir, const struct node_file *file, pawl_error *error);

/* Write a file anew, with this text, synced; its name is not. */
int node_text_write(const char *path, const char *text, pawl_error *error);

/* Become the only writer, by a lock on the file of this name. The lock ends when *ret_fd is closed, also by the
 * end of the process. PAWL_ELOCKED: another process has the lock; error names it. */
int node_lock(const char *dir, const char *name, int *ret_fd, pawl_error *error);

/* Whether the directory is empty, or has only files of a process that was killed while it made the directory;
 * node_file_make uses or replaces these. Returns an errno if the directory cannot be read. */
int node_is_new(const char *dir, bool *ret_new);

/* "DIR/log", "DIR/state/3". PAWL_ETOOBIG. */
int node_path(const char *dir, char *ret_path, pawl_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
