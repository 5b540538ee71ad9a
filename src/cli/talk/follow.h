/* cli/talk/follow.h: events from a server as they come, by server-sent events, on a thread of their own.
 *
 * If the connection is lost, because the server is started again for example, it is made anew, and goes on behind
 * the last event that was handed out: each event comes once. A server that cannot be reached at the beginning is
 * a failure. */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include "cli/talk/session.h"

struct follow;

/* Borrows the session, which must be of a server. line is called on the thread; after it has returned false, and
 * after a failure, the bell is rung (cli/talk/feed.h), once. range->limit is not looked at. */
int follow_start(struct session *session, const struct event_range *range, session_line line, void *arg,
                 int bell, struct follow **ret_follow, pawl_error *error);

/* End it. Returns what has failed. */
int follow_stop(struct follow *follow, pawl_error *error);

#endif
