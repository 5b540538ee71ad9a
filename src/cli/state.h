/* cli/state.h: prints whether a state is what its log says. */
#ifndef CLI_STATE_H
#define CLI_STATE_H

#include <jansson.h>

#include <pawl/admin.h>

void print_state(const pawl_state_report *report, double seconds);
json_t *state_json(const pawl_state_report *report);

/* Print the two stores of each shard, and which of them agrees with the log. */
void print_audit(const pawl_state_report *report);
json_t *audit_json(const pawl_state_report *report);

#endif
