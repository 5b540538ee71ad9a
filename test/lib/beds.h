/* test/lib/beds.h: where the engines of a test have their logs.
 *
 * By default in files. If PAWL_BEDS names brokers, the log of every directory that is made is on them, in a cluster of
 * its own: so the same tests hold there. */
#ifndef TEST_LIB_BEDS_H
#define TEST_LIB_BEDS_H

#include <pawl/cluster.h>
#include <pawl/pawl.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test/lib/test.h"

#define BEDS_URL_MAX          400
#define BEDS_PATIENCE_SECONDS 300

static inline bool beds_are_on_kafka(void)
{
    return getenv("PAWL_BEDS") != NULL;
}

/* Of a test that is about the files of a log. */
#define FOR_FILES_ONLY(why)                                                                                    \
    do {                                                                                                       \
        if (beds_are_on_kafka()) {                                                                             \
            print_message("not on Kafka: %s\n", why);                                                          \
            skip();                                                                                            \
        }                                                                                                      \
    } while (0)

/* Make a cluster of topics on the brokers. */
static inline void beds_make_log(uint32_t partitions, char url[BEDS_URL_MAX])
{
    static unsigned beds;
    pawl_error error = {0};
    snprintf(url, BEDS_URL_MAX, "kafka://%s/bed%d-%u", getenv("PAWL_BEDS"), (int)getpid(), ++beds);
    int status = pawl_cluster_init(url, partitions, 0, &error);
    if (status != PAWL_OK)
        print_error("%s\n", error.text);
    assert_ok(status);
}

/* pawl_open on a log that was just made: a broker may not have heard of its topics yet. */
static inline int beds_open_new(const char *dir, const pawl_options *options, pawl_engine **ret_engine,
                                pawl_error *error)
{
    time_t until = time(NULL) + BEDS_PATIENCE_SECONDS;
    int status = pawl_open(dir, options, ret_engine, error);
    while (status == PAWL_ENOTFOUND && options->log && time(NULL) < until)
        status = pawl_open(dir, options, ret_engine, error);
    return status;
}

/* pawl_open; a directory that is not there gets its log where the logs of these tests are. */
static inline int beds_open(const char *dir, const pawl_options *options, pawl_engine **ret_engine,
                            pawl_error *error)
{
    char url[BEDS_URL_MAX], node[512];
    pawl_options chosen = options ? *options : (pawl_options){0};
    snprintf(node, sizeof node, "%s/node", dir);
    if (beds_are_on_kafka() && !chosen.log && !chosen.read_only && access(node, F_OK) != 0) {
        beds_make_log(chosen.partitions, url);
        chosen.log = url;
        return beds_open_new(dir, &chosen, ret_engine, error);
    }
    return pawl_open(dir, &chosen, ret_engine, error);
}

#endif
