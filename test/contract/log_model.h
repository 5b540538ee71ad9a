/* test/contract/log_model.h: a log against a naive model of one, from a seed. */
#ifndef TEST_CONTRACT_LOG_MODEL_H
#define TEST_CONTRACT_LOG_MODEL_H

#include "test/contract/log_fixture.h"

/* Several streams, appends of several entries, some of them wrong, several in flight; claims and reads in
 * between; the log closed and opened again in the middle and at the end. */
void log_model_run(struct log_fixture *f, uint64_t seed);

#endif
