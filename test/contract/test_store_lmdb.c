#include "test/contract/store_contract.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapter/lmdb/store.h"
#include "test/lib/dir.h"

/* LMDB gives a page to the writer again once no reader can reach it, by ways that TSan does not see. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:liblmdb.so\n";
}
#endif
#endif

struct site {
    char dir[256];
    char boot[24]; /* the machine's boots, counted */
    int boots;
};

static void *make(void)
{
    struct site *site = calloc(1, sizeof *site);
    test_dir_make(site->dir, sizeof site->dir);
    snprintf(site->boot, sizeof site->boot, "boot 0");
    return site;
}

static void destroy(void *arg)
{
    struct site *site = arg;
    test_dir_remove(site->dir);
    free(site);
}

static void path(void *arg, const char *name, char *text, size_t size)
{
    struct site *site = arg;
    snprintf(text, size, "%s/%s", site->dir, name);
}

static int open_store(void *arg, const char *name, enum pawl_store_mode mode, uint32_t max_snapshots,
                      bool *ret_discarded, pawl_store **ret_store, pawl_error *error)
{
    struct site *site = arg;
    char dir[512];
    struct lmdb_opened opened;
    path(site, name, dir, sizeof dir);
    struct lmdb_options options = {
        .dir = dir, .mode = mode, .max_snapshots = max_snapshots, .boot_id = site->boot};
    int status = lmdb_store_open(&options, &opened, ret_store, error);
    if (status == PAWL_OK && ret_discarded)
        *ret_discarded = opened.discarded;
    return status;
}

static void die(void *site, const char *name, enum pawl_store_mode mode, bool (*work)(pawl_store *))
{
    pid_t child = fork();
    if (child == 0) {
        pawl_store *store;
        if (open_store(site, name, mode, 4, NULL, &store, NULL) == PAWL_OK && work(store))
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

static void power_cut(void *arg)
{
    struct site *site = arg;
    snprintf(site->boot, sizeof site->boot, "boot %d", ++site->boots);
}

#define KIND(text, how)                                                                                        \
    {                                                                                                          \
        .name = (text), .mode = (how), .make = make, .destroy = destroy, .open = open_store, .path = path,     \
        .die = die, .power_cut = power_cut                                                                     \
    }

int main(void)
{
    static const struct store_kind kinds[] = {
        KIND("lmdb fast", PAWL_STORE_FAST),
        KIND("lmdb durable", PAWL_STORE_DURABLE),
    };
    return store_contract_run(kinds, 2);
}
