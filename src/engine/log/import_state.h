/* engine/log/import_state.h: whether a log on Kafka is complete, or a directory's log is being imported into it
 * (core/group0/import.h). */
#ifndef ENGINE_LOG_IMPORT_STATE_H
#define ENGINE_LOG_IMPORT_STATE_H

#include <pawl/log.h>

#include "core/group0/import.h"

/* Read group0 of a log on Kafka from its first record. Blocks. Errors as of reading it. */
int import_look(pawl_log *log, struct import_watch *ret_watch, pawl_error *error);

/* PAWL_EBUSY, with words that say what to do: an import into it is under way, or was not ended. url names it. */
int import_check(pawl_log *log, const char *url, pawl_error *error);

/* HOST:/path/of/the/directory, for people; how many bytes there are. */
uint16_t name_directory(const char *dir, char name[ASSIGNMENT_NAME_MAX + 1]);

#endif
