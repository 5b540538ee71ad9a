/* adapter/journal/salvage_to.h: where salvage puts what it has found: a fresh journal, and files beside it for
 * what lies behind a hole. Inside salvage only. */
#ifndef JOURNAL_SALVAGE_TO_H
#define JOURNAL_SALVAGE_TO_H

#include "adapter/journal/record.h"
#include "adapter/journal/salvage.h"

struct rescue;

/* PAWL_EEXISTS: the directory is there and not empty. */
int rescue_open(const struct journal_salvage_options *options, struct rescue **ret_rescue, pawl_error *error);

/* One entry, in the order of the log. Copies its body. */
int rescue_entry(struct rescue *rescue, const struct record *r, pawl_error *error);

/* Write and sync what is left, and close. rescue is freed in any case. */
int rescue_close(struct rescue *rescue, pawl_error *error);

/* After an error: free it, and let what was written be. */
void rescue_abandon(struct rescue *rescue);

#endif
