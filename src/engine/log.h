/* engine/log.h: open a log by the words that name it, together with the env it runs on.
 *
 *     DIR, file://DIR    a journal in that directory, or that of the engine's directory that it is
 *     kafka://...        on Apache Kafka: adapter/kafka/url.h; read_only makes no difference there */
#ifndef ENGINE_LOG_H
#define ENGINE_LOG_H

#include <pawl/pawl.h>

#include "engine/node_file.h"
#include "port/env.h"
#include "port/log.h"

struct engine_log;

/* The log's env has one shard and a pool. Blocks. Errors: PAWL_EINVAL (not the name of a log), and those of
 * opening it: journal.h, kafka.h. */
int engine_log_open(const char *where, bool read_only, struct engine_log **ret_log, pawl_error *error);

/* Blocks until all is put away. PAWL_EMISUSE, and still open, with a request outstanding. */
int engine_log_close(struct engine_log *log);

/* As pawl_unwitnessed; of a log on Kafka nothing is left out. Any thread. */
int engine_log_unwitnessed(struct engine_log *log, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);

/* Open a log for writing and close it, if it has entries that nothing witnesses: then they are durable, and
 * readers show them. Takes the journal's lock, and before it that of the engine's directory, if one was named.
 * Blocks. Errors: PAWL_ELOCKED (somebody writes, and will witness them), PAWL_EREADONLY (it is the log of
 * another directory), PAWL_EINVAL (on Kafka), and those of opening. */
int engine_log_recover(const char *where, pawl_error *error);

/* The highest place in the log that the stores of an engine's directory know to be durable; zero if there are
 * none that can be believed (engine/witness.h). */
pawl_place engine_log_witness(const char *where);

pawl_log *engine_log_port(struct engine_log *log);
pawl_env *engine_log_env(struct engine_log *log);

/* The directory that the words name, whatever lies in it; borrowed from where. PAWL_EINVAL: they name none. */
int engine_directory(const char *where, const char **ret_dir, pawl_error *error);

/* The directory of the log; path has NODE_PATH_MAX bytes. If an engine's directory was named, its log's, and
 * ret_engine, which may be NULL, is true. PAWL_EINVAL, and those of reading the node file, but for
 * PAWL_ENOTFOUND. */
int engine_log_directory(const char *where, char *path, bool *ret_engine, pawl_error *error);

#endif
