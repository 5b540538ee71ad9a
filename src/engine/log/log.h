/* engine/log/log.h: a log by the words that name it (pawl/log.h), and what lies behind them. */
#ifndef ENGINE_LOG_LOG_H
#define ENGINE_LOG_LOG_H

#include <pawl/pawl.h>

#include "engine/directory/directory.h"
#include "engine/log/entries.h"
#include "engine/log/witness.h"
#include "port/env.h"
#include "port/log.h"

struct engine_log;

/* As pawl_log_open, together with an env of its own, which has one shard and a pool. Blocks. */
int engine_log_open(const char *where, bool read_only, struct engine_log **ret_log, pawl_error *error);

/* Blocks until all is put away. PAWL_EMISUSE, and still open, with a request outstanding. */
int engine_log_close(struct engine_log *log);

/* The highest place in the log that the stores of an engine's directory know to be durable; zero if there are
 * none that can be believed (engine/log/witness.h). */
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
