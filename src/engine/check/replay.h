/* engine/check/replay.h: the state derived again, from the directory's log or from a copy of it. */
#ifndef ENGINE_CHECK_REPLAY_H
#define ENGINE_CHECK_REPLAY_H

#include <pawl/admin.h>

/* As pawl_replay, of a plain path; log, if it is not NULL, is the URL of a log on Kafka that is read in place of the
 * directory's own. */
int replay_with_log(const pawl_replay_options *options, const char *log, pawl_state_report *ret_report,
                    pawl_error *error);

#endif
