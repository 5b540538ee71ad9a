/* http/routes/body.h: the members of a JSON body, one by one. The first thing that is wrong is kept, with its place;
 * body_end answers with it, and also if there is a member that nobody has asked for.
 *
 *     struct body body;
 *     if (!body_begin(x, &body))
 *         return;
 *     const char *name = body_string(&body, "projector", BODY_NEEDED);
 *     pawl_duration wait = body_duration(&body, "wait", MOST, 0);
 *     if (!body_end(&body))
 *         return;                                     // answered with 400
 *     ...
 *     body_release(&body);                            // name lasts until here */
#ifndef HTTP_ROUTES_BODY_H
#define HTTP_ROUTES_BODY_H

#include "http/exchange/exchange.h"

#define BODY_MEMBERS_MAX 16
#define BODY_NEEDED      true
#define BODY_OPTIONAL    false

struct body {
    struct exchange *x;
    json_t *tree;
    const char *known[BODY_MEMBERS_MAX];
    size_t known_count;
    bool failed;
    pawl_error error;
};

/* False: it is no object, and the request was answered. An empty body is an object without members. */
bool body_begin(struct exchange *x, struct body *ret_body);

/* Each reads one member, and returns its value; of one that is missing or wrong NULL, 0, false or fallback. */
const char *body_string(struct body *body, const char *name, bool needed);
bool body_flag(struct body *body, const char *name);
uint64_t body_number(struct body *body, const char *name, uint64_t least, uint64_t most, bool needed);

/* "500ms", "30s", "5m", or a number of seconds. */
pawl_duration body_duration(struct body *body, const char *name, pawl_duration most, pawl_duration fallback);

/* The ID of an operation, which must be there. */
pawl_operation_id body_operation(struct body *body);

/* An array of strings, borrowed from the body: names has room for most. Returns how many. */
size_t body_strings(struct body *body, const char *name, size_t most, bool needed, const char **names);

/* A member that the caller reads itself; NULL: it is missing. */
json_t *body_member(struct body *body, const char *name);

/* Whether the body has this member, which was asked for already. */
bool body_has(const struct body *body, const char *name);

/* A number, also as a string; false: the value is none, or out of range. */
bool body_value_number(const json_t *value, uint64_t least, uint64_t most, uint64_t *ret_number);

/* Say what is wrong with a member that the caller reads itself. The first complaint counts. */
PAWL_PRINTF(3, 4) void body_complain(struct body *body, const char *name, const char *format, ...);

/* A number; from 2^53 on it is a string, which every reader of JSON understands. */
json_t *json_number64(uint64_t number);

/* False: something was wrong; the request was answered, and the body is released. */
bool body_end(struct body *body);
void body_release(struct body *body);

#endif
