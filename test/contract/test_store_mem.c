#include "test/contract/store_contract.h"

#include "adapter/mem/store.h"

static void *make(void)
{
    mem_store_disk *disk = NULL;
    return mem_store_disk_new(NULL, &disk) == PAWL_OK ? disk : NULL;
}

static void destroy(void *site)
{
    mem_store_disk_free(site);
}

static int open_store(void *site, const char *name, enum pawl_store_mode mode, uint32_t max_snapshots,
                      bool *ret_discarded, pawl_store **ret_store, pawl_error *error)
{
    return mem_store_open(
        site, &(struct mem_store_options){.name = name, .mode = mode, .max_snapshots = max_snapshots},
        ret_discarded, ret_store, error);
}

static void path(void *site, const char *name, char *text, size_t size)
{
    snprintf(text, size, "%s", name);
}

static void die(void *site, const char *name, enum pawl_store_mode mode, bool (*work)(pawl_store *))
{
    pawl_store *store;
    assert_ok(open_store(site, name, mode, 4, NULL, &store, NULL));
    assert_true(work(store));
    mem_store_disk_crash(site);
}

static void power_cut(void *site)
{
    mem_store_disk_power_cut(site);
}

#define KIND(text, how)                                                                                        \
    {                                                                                                          \
        .name = (text), .mode = (how), .make = make, .destroy = destroy, .open = open_store, .path = path,     \
        .die = die, .power_cut = power_cut                                                                     \
    }

int main(void)
{
    static const struct store_kind kinds[] = {
        KIND("mem fast", PAWL_STORE_FAST),
        KIND("mem durable", PAWL_STORE_DURABLE),
    };
    return store_contract_run(kinds, 2);
}
