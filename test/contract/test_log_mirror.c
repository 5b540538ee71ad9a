/* A mirror before a log on files, under the contract of all logs: whoever uses it notices nothing. */
#include <ftw.h>
#include <unistd.h>

#include "adapter/journal/journal.h"
#include "adapter/mirror/mirror.h"
#include "adapter/uv/env.h"
#include "test/contract/log_contract.h"
#include "test/contract/log_fixture.h"

struct files {
    char dir[64];
    struct uv_env *env;
};

static void open_both(struct files *files, pawl_env **ret_env, pawl_log **ret_log)
{
    const struct uv_env_options options = {.shards = 2, .pool_threads = 2};
    char log[80], mirror[80];
    pawl_error error = {0};
    snprintf(log, sizeof log, "%s/log", files->dir);
    snprintf(mirror, sizeof mirror, "%s/mirror", files->dir);
    assert_ok(uv_env_open(&options, &files->env, NULL));
    *ret_env = uv_env_port(files->env);
    const struct journal_options journal = {.dir = log, .env = *ret_env};
    struct mirror_options wrap = {
        .dir = mirror, .id = "contract", .bytes_max = MIRROR_BYTES_MIN, .env = *ret_env};
    int status = journal_open(&journal, &wrap.log, &error);
    if (status == PAWL_OK)
        status = mirror_open(&wrap, ret_log, &error);
    if (status != PAWL_OK)
        fail_msg("%s", error.text);
}

static void *files_open(pawl_env **ret_env, pawl_log **ret_log)
{
    struct files *files = calloc(1, sizeof *files);
    assert_non_null(files);
    snprintf(files->dir, sizeof files->dir, "/tmp/pawl-mirror-XXXXXX");
    assert_non_null(mkdtemp(files->dir));
    open_both(files, ret_env, ret_log);
    return files;
}

static void files_reopen(void *arg, pawl_env **ret_env, pawl_log **ret_log)
{
    struct files *files = arg;
    assert_ok(uv_env_close(files->env));
    open_both(files, ret_env, ret_log);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void files_free(void *arg)
{
    struct files *files = arg;
    assert_ok(uv_env_close(files->env));
    assert_int_equal(nftw(files->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(files);
}

static const struct log_contract contract = {
    .open = files_open,
    .reopen = files_reopen,
    .free = files_free,
};

int main(void)
{
    return log_contract_run("mirror", &contract);
}
