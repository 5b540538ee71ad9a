/* engine/log/adopt.h: a directory with a log in files goes over to the cluster that its log was imported into.
 *
 *     import_done in group0 names the directory's journal, and how many entries that had
 *         │ the same journal, with as many entries
 *         ▼
 *     places in its stores: none ──► DIR/node: a node ID, the URL ──► a node on Kafka, with the state that it had
 *
 * Offsets are the same in both logs, so the state stands. Only places, which say where in the log an entry lies, mean
 * something else there; the next event that a partition applies brings one of the new log. A kill at any moment leaves
 * a directory that opens: with no places in its stores it still opens on its files. DIR/log stays, and is not used any
 * more. */
#ifndef ENGINE_LOG_ADOPT_H
#define ENGINE_LOG_ADOPT_H

#include <pawl/log.h>

#include "engine/directory/directory.h"

/* The caller holds the directory's lock. On success file is what the directory's node file says now. PAWL_EINVAL: this
 * log was not imported there, or was written to since; PAWL_EBUSY: the import was not ended; errors of reading both
 * logs and of writing the stores. */
int directory_adopt(const char *dir, const char *url, struct node_file *file, pawl_error *error);

#endif
