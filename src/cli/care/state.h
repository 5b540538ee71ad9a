/* cli/care/state.h: whether a state is what its log says, as JSON, and in words for people. The words are made of the JSON,
 * because a server's verification comes as JSON. */
#ifndef CLI_STATE_H
#define CLI_STATE_H

#include <jansson.h>

#include <pawl/admin.h>

json_t *state_json(const pawl_state_report *report);
void print_state(const json_t *state, const json_t *audit, double seconds); /* audit NULL: there was none */

/* The two stores of each shard, and which of them agrees with the log. */
json_t *audit_json(const pawl_state_report *report);
void print_audit(const json_t *audit);

#endif
