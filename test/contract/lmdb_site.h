/* lmdb_site.h: a directory for stores of the test's own, for tests of what only the LMDB store meets. */
#ifndef TEST_CONTRACT_LMDB_SITE_H
#define TEST_CONTRACT_LMDB_SITE_H

#include "adapter/lmdb/store.h"
#include "test/lib/child.h"
#include "test/lib/dir.h"

static char base[256];

static inline int set_up(void **state)
{
    test_dir_make(base, sizeof base);
    return 0;
}

static inline int tear_down(void **state)
{
    test_dir_remove(base);
    return 0;
}

static inline struct lmdb_options options_for(const char *name, enum pawl_store_mode mode)
{
    static char dir[300];
    snprintf(dir, sizeof dir, "%s/%s", base, name);
    return (struct lmdb_options){.dir = dir, .mode = mode, .boot_id = "this boot"};
}

static inline pawl_store *open_ok(struct lmdb_options options, struct lmdb_opened *ret_opened)
{
    pawl_store *store = NULL;
    pawl_error error = {0};
    int status = lmdb_store_open(&options, ret_opened, &store, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
    return store;
}

static inline void put_one(pawl_store *store)
{
    assert_ok(pawl_store_put(store, 0, text_bytes("k"), text_bytes("v")));
    assert_ok(pawl_store_commit(store));
}

static inline bool has_one(pawl_store *store)
{
    pawl_bytes value;
    return pawl_store_get(pawl_store_writer(store), 0, text_bytes("k"), &value) == PAWL_OK;
}

/* A test with such a directory. */
#define EDGE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
