/* cli/talk/courier.h: takes commands to a server, in their order, and brings the answers back.
 *
 *     session_send ──► queue ──thread──► one request with all that wait ──► answers, a line each ──► done
 *
 * One request is under way at a time; those that come meanwhile go with the next one. So a command that comes alone
 * goes at once, many go together, and their order is kept.
 *
 * Invariant
 *   C1  A command that was given to the courier is answered exactly once, whatever becomes of the connection. */
#ifndef CLI_COURIER_H
#define CLI_COURIER_H

#include "cli/talk/remote.h"
#include "cli/talk/session.h"

struct courier;

/* Borrows both. */
int courier_start(struct remote *remote, const struct command_wish *wish, struct courier **ret_courier,
                  pawl_error *error);

/* Takes command->json. */
void courier_send(struct courier *courier, struct session_command *command);

/* Answer what is there, and end. */
void courier_stop(struct courier *courier);

#endif
