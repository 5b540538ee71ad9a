/* engine/log/log.h: opens a log by its name (pawl/log.h), and finds its directory. */
#ifndef ENGINE_LOG_LOG_H
#define ENGINE_LOG_LOG_H

#include <pawl/pawl.h>

#include "engine/directory/directory.h"
#include "engine/log/adopt.h"
#include "engine/log/cluster.h"
#include "engine/log/entries.h"
#include "engine/log/import_state.h"
#include "engine/log/witness.h"
#include "port/env.h"
#include "port/log.h"

struct engine_log;

/* As pawl_log_open, together with an env of its own, which has one shard and a pool. Blocks. */
int engine_log_open(const char *where, bool read_only, struct engine_log **ret_log, pawl_error *error);

/* A log on Kafka, opened by a node that claims under this ID. */
int engine_log_open_as(const char *url, uint64_t node, struct engine_log **ret_log, pawl_error *error);

/* Blocks until the log and the env are closed. PAWL_EMISUSE: a request is outstanding; the log stays open. */
int engine_log_close(struct engine_log *log);

/* The highest place in the log that the stores of an engine's directory prove to be durable; zero if there is
 * no store that can be trusted (engine/log/witness.h). */
pawl_place engine_log_witness(const char *where);

pawl_log *engine_log_port(struct engine_log *log);
pawl_env *engine_log_env(struct engine_log *log);

/* The directory that where names, whatever is in it; borrowed from where. PAWL_EINVAL: it names none. */
int engine_directory(const char *where, const char **ret_dir, pawl_error *error);

/* The directory of the log; path has NODE_PATH_MAX bytes. If where names an engine's directory: the directory
 * of its log, or its URL if it is on Kafka, and *ret_engine, which may be NULL, is true. PAWL_EINVAL, and errors of reading the node file,
 * except PAWL_ENOTFOUND. */
int engine_log_directory(const char *where, char *path, bool *ret_engine, pawl_error *error);

#endif
