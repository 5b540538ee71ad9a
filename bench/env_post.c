/* How long does a post take, from the call to the run?
 *
 *     env_post [rounds]
 *
 * One task goes round: on one shard by posting itself, between two shards back and forth with both otherwise
 * idle (so each hop wakes a sleeping thread), and back and forth as one of many, where wake-ups are shared. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapter/uv/env.h"

struct ball {
    pawl_task task;
    pawl_env *env;
    uint32_t away; /* 1: to the other shard each time */
    uint64_t left;
    sem_t *landed;
};

static void fly(pawl_task *task)
{
    struct ball *ball = (struct ball *)task;
    if (ball->left-- == 0)
        sem_post(ball->landed);
    else
        pawl_env_post(ball->env, pawl_env_self(ball->env) ^ ball->away, task);
}

static void measure(pawl_env *env, const char *what, uint32_t away, uint64_t balls, uint64_t rounds)
{
    static struct ball all[1000];
    sem_t landed;
    sem_init(&landed, 0, 0);
    uint64_t start = pawl_env_now(env).ns;
    for (uint64_t i = 0; i < balls; i++) {
        all[i] = (struct ball){{.fn = fly}, env, away, rounds / balls, &landed};
        pawl_env_post(env, 0, &all[i].task);
    }
    for (uint64_t i = 0; i < balls; i++)
        sem_wait(&landed);
    uint64_t took = pawl_env_now(env).ns - start;
    sem_destroy(&landed);
    printf("%-46s %8.1f ns a post\n", what, (double)took / (double)rounds);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    struct uv_env *env;
    pawl_error error;
    if (rounds < 1000
        || uv_env_open(&(struct uv_env_options){.shards = 2, .pool_threads = 1}, &env, &error) != PAWL_OK)
        return EXIT_FAILURE;
    pawl_env *port = uv_env_port(env);
    measure(port, "to itself", 0, 1, rounds);
    measure(port, "to itself, 1000 tasks", 0, 1000, rounds);
    measure(port, "to the other shard, idle (half a round trip)", 1, 1, rounds / 10);
    measure(port, "to the other shard, 1000 tasks", 1, 1000, rounds);
    return uv_env_close(env) == PAWL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
