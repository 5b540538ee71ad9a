/* test/contract/log_contract.h: one suite for every log.
 *
 * An implementation describes itself by a log_contract. log_contract_run runs every test twice: with calls from
 * a shard of its env, and with calls from a thread that is no shard. Nothing here knows how a log works
 * inside. */
#ifndef TEST_CONTRACT_LOG_CONTRACT_H
#define TEST_CONTRACT_LOG_CONTRACT_H

#include "port/env.h"
#include "port/log.h"
#include "test/lib/test.h"

struct log_contract {
    /* An env of two shards and an empty log on it. */
    void *(*open)(pawl_env **ret_env, pawl_log **ret_log);

    /* The log was closed: open it again, on the same env or a new one. */
    void (*reopen)(void *impl, pawl_env **ret_env, pawl_log **ret_log);

    /* The process and what it had not made durable are gone, requests and all; then as reopen. NULL: cannot. */
    void (*crash)(void *impl, pawl_env **ret_env, pawl_log **ret_log);

    /* Another process' log on the same data, on the same env; closed by the suite. NULL: cannot. */
    pawl_log *(*rival)(void *impl);

    /* The log is closed. */
    void (*free)(void *impl);

    /* Make things happen until holds(arg); false if it never will. NULL: they happen in other threads, and the
     * suite waits. */
    bool (*drive)(void *impl, bool (*holds)(void *arg), void *arg);
};

/* The suite as a program's result; name is put before the tests' names. */
int log_contract_run(const char *name, const struct log_contract *contract);

#endif
