/* http/server/requests.h: a bounded set of requests for commands, used again and again. */
#ifndef HTTP_SERVER_REQUESTS_H
#define HTTP_SERVER_REQUESTS_H

#include <pawl/pawl.h>

struct requests;

int requests_new(pawl_engine *engine, uint32_t most, struct requests **ret_requests, pawl_error *error);
void requests_free(struct requests *requests); /* none may be out. NULL is allowed */

/* Any thread. PAWL_EBUSY: all are out; PAWL_ENOMEM. */
int requests_take(struct requests *requests, pawl_request **ret_request, pawl_error *error);
void requests_give(struct requests *requests, pawl_request *request);

#endif
