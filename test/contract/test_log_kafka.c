/* The log on Kafka under the contract of all logs: brokers are named by PAWL_KAFKA, "host:port,...". Every test
 * has a cluster of its own on them, so it begins empty. */
#include <unistd.h>

#include "adapter/kafka/kafka.h"
#include "adapter/uv/env.h"
#include "test/contract/log_contract.h"
#include "test/contract/log_fixture.h"

struct brokers {
    char url[1400];
    struct uv_env *env;
};

static pawl_log *open_log(struct brokers *b)
{
    pawl_error error = {0};
    pawl_log *log = NULL;
    const struct kafka_log_options options = {.url = b->url, .env = uv_env_port(b->env)};
    if (kafka_log_open(&options, &log, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    return log;
}

static void open_all(struct brokers *b, pawl_env **ret_env, pawl_log **ret_log)
{
    const struct uv_env_options options = {.shards = 2, .pool_threads = 2};
    assert_ok(uv_env_open(&options, &b->env, NULL));
    *ret_env = uv_env_port(b->env);
    *ret_log = open_log(b);
}

static void *brokers_open(pawl_env **ret_env, pawl_log **ret_log)
{
    static unsigned number;
    const char *list = getenv("PAWL_KAFKA");
    pawl_error error = {0};
    struct brokers *b = calloc(1, sizeof *b);
    assert_non_null(b);
    bool many = strchr(list, ',') != NULL;
    snprintf(b->url, sizeof b->url, "kafka://%s/contract-%d-%u?replication=%d", list, (int)getpid(), ++number,
             many ? 3 : 1);
    if (kafka_cluster_init(b->url, 4, 0, &error) != PAWL_OK)
        fail_msg("%s", error.text);
    open_all(b, ret_env, ret_log);
    return b;
}

static void brokers_reopen(void *arg, pawl_env **ret_env, pawl_log **ret_log)
{
    struct brokers *b = arg;
    assert_ok(uv_env_close(b->env));
    open_all(b, ret_env, ret_log);
}

static pawl_log *brokers_rival(void *arg)
{
    return open_log(arg);
}

static void brokers_free(void *arg)
{
    struct brokers *b = arg;
    assert_ok(uv_env_close(b->env));
    free(b);
}

static const struct log_contract contract = {
    .open = brokers_open,
    .reopen = brokers_reopen,
    .rival = brokers_rival,
    .free = brokers_free,
};

int main(void)
{
    if (!getenv("PAWL_KAFKA")) {
        fputs("PAWL_KAFKA names no brokers\n", stderr);
        return 1;
    }
    return log_contract_run("kafka", &contract);
}
