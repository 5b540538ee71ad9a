/* test/contract/store_contract.h: what port/store.h promises, asked of every implementation in both modes. */
#ifndef TEST_CONTRACT_STORE_CONTRACT_H
#define TEST_CONTRACT_STORE_CONTRACT_H

#include "test/lib/test.h"

#include "port/store.h"

/* How to make one kind of store, and to harm it. A site is where stores with names lie. */
struct store_kind {
    const char *name;
    enum pawl_store_mode mode;
    void *(*make)(void);
    void (*destroy)(void *site);
    int (*open)(void *site, const char *name, enum pawl_store_mode mode, uint32_t max_snapshots,
                bool *ret_discarded, pawl_store **ret_store, pawl_error *error);
    /* What to hand to copy so that its result can be opened under the name. */
    void (*path)(void *site, const char *name, char *path, size_t size);
    /* A process opens the store, works on it, and is killed; work returns whether all went as it should. */
    void (*die)(void *site, const char *name, enum pawl_store_mode mode, bool (*work)(pawl_store *));
    /* While no store is open. */
    void (*power_cut)(void *site);
};

int store_contract_run(const struct store_kind *kinds, size_t count);

/* For the test files of the suite. */

struct store_rig {
    const struct store_kind *kind;
    void *site;
    pawl_store *store; /* "a", open in the kind's mode; NULL if a test has closed it */
};

struct store_test {
    const char *name;
    void (*fn)(struct store_rig *rig);
};

extern const struct store_test store_state_tests[];
extern const size_t store_state_tests_count;
extern const struct store_test store_random_tests[];
extern const size_t store_random_tests_count;

pawl_store *rig_open(struct store_rig *rig, const char *name, enum pawl_store_mode mode, bool *ret_discarded);
void rig_put(pawl_store *store, uint8_t space, const char *key, const char *value);
/* The value as text, or "-" if there is none. */
const char *rig_get(pawl_reader *reader, uint8_t space, const char *key);
/* The keys of a scan, each followed by a space. */
const char *rig_keys(pawl_reader *reader, uint8_t space, const char *from, const char *to, bool reverse);
pawl_reader *rig_snapshot(pawl_store *store);
pawl_digest rig_digest(pawl_reader *reader);

#endif
