/* engine/verify.h: verify a log by the words that name it. */
#ifndef ENGINE_VERIFY_H
#define ENGINE_VERIFY_H

#include "adapter/journal/verify.h"

/* As journal_verify; release the report as it says. */
int engine_verify(const char *where, void (*progress)(void *arg, uint64_t done, uint64_t of_bytes), void *arg,
                  struct journal_verify_report *ret_report, pawl_error *error);

#endif
