/* engine/node/known.h: how far a node knows each stream of its log on Kafka, kept in DIR/local.
 *
 * To claim a stream, or to read its end, one must have judged everything before (port/claim.h). A log that is opened
 * knows nothing, and would read every stream from its beginning. So a node keeps what its log knows:
 *
 *     log ── every few seconds, and at closing ──► DIR/local ── at opening ──► log: it reads from there on
 *
 * What is kept is a fact about the log, and stays true whatever becomes of the node: it need not be written with the
 * state, and may be older or newer than that. If it is lost, opening reads more. */
#ifndef ENGINE_NODE_KNOWN_H
#define ENGINE_NODE_KNOWN_H

#include <pawl/pawl.h>

#include "port/env.h"

struct known_streams {
    pawl_timer timer;
    bool started;
};

/* Teach the log what is kept; at opening. A row that cannot be used is ignored. */
void known_load(pawl_engine *engine);

/* From now on keep what the log learns; nothing as long as it may be another log than that of the directory (file_is_ahead).
 * Not on a shard. It may fail: then nothing is kept. */
void known_start(pawl_engine *engine);

/* Give a directory that is being made what another one knows of their log: where it claims, it reads from there on. What
 * cannot be read is left out. Errors of writing. */
int known_copy(const char *from, const char *to, const pawl_allocator *alloc, pawl_error *error);

/* Keep what the log knows, before it is closed. */
void known_close(pawl_engine *engine);

#endif
