/* http/routes/commands.h: what commands.c and batch.c share. */
#ifndef HTTP_ROUTES_COMMANDS_H
#define HTTP_ROUTES_COMMANDS_H

#include "http/exchange/exchange.h"

/* Read a command into a request. key: of the header, or NULL. Errors: those of the request. */
int command_fill(pawl_request *request, uint64_t wsid, pawl_ack ack, pawl_bytes json, const char *key,
                 pawl_error *error);

/* The parameter ack. False: it is wrong, and the request was answered. */
bool command_ack(struct exchange *x, pawl_ack *ret_ack);

/* batch.c: many commands: before the body, and behind it. */
void batch_begin(struct exchange *x);
void batch_answer(struct exchange *x);

#endif
