/* engine/read/read.h: reading; everything that the other rooms may use of it.
 *
 *     row.h            a row as its reader sees it: a record's, an entity's, an argument's
 *     event.h          an event as its reader sees it
 *     entity_read.h    one read of an entity, wherever its rows come from: a store, or what a run sees
 *     text.h           text on its way to the caller
 *
 * and the calls that check and read on behalf of others, below. */
#ifndef ENGINE_READ_READ_H
#define ENGINE_READ_READ_H

#include "engine/read/entity_read.h"
#include "engine/read/event.h"
#include "engine/read/row.h"
#include "engine/read/text.h"
#include "port/log.h"

/* workspaces.c: whether a workspace exists (PAWL_ENOTFOUND); its last offset, 0 if it has no event. */
int engine_workspace(pawl_engine *engine, uint64_t wsid, pawl_error *error);
int engine_last_offset(pawl_reader *snapshot, uint64_t wsid, uint64_t *ret_last);

/* events.c: read entries of a stream, or of a partition's events, on this thread. ret_next may be NULL. */
int engine_read_log(pawl_engine *engine, pawl_stream stream, uint64_t from, uint64_t limit,
                    bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                    pawl_error *error);
int engine_read_plog(pawl_engine *engine, uint16_t partition, uint64_t from, uint64_t limit,
                     bool (*visit)(pawl_read *, const pawl_entry *, pawl_place), void *arg, uint64_t *ret_next,
                     pawl_error *error);

#endif
