/* test/lib/lanes.h: an engine with lanes, in a directory of the test's own.
 *
 *     Item (who, cents)   a record of a tenant, by the commands Bill, Raise and Ask
 *     Total               by who: what was billed, kept by a lane of declarative projectors
 *     Note                by event: what a handler or a worker made of it
 *     Mark                the same, of another lane */
#ifndef TEST_LIB_LANES_H
#define TEST_LIB_LANES_H

#include <pawl/pawl.h>

#include "base/wait.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"

#define TENANTS      8
#define BED_PATIENCE (300 * PAWL_SECOND) /* a machine that others keep busy is slow, not broken */

#define LANES_SCHEMA(notes)                                                                                    \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"                                    \
    " \"types\": {\"Item\": {\"kind\": \"WDoc\", \"fields\": {\"who\": {\"type\": \"string\"},"                \
    "   \"cents\": {\"type\": \"int64\"}}}},"                                                                  \
    " \"commands\": {\"Bill\": {\"records\": [\"Item\"]}, \"Raise\": {\"records\": [\"Item\"]},"               \
    "   \"Ask\": {\"records\": [\"Item\"]}},"                                                                  \
    " \"entities\": {"                                                                                         \
    "   \"Total\": {\"key\": [\"who\"], \"fields\": {\"who\": {\"type\": \"string\"},"                         \
    "     \"cents\": {\"type\": \"int64\"}, \"bills\": {\"type\": \"int64\"}}},"                               \
    "   \"Note\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"},"                       \
    "     \"text\": {\"type\": \"string\"}, \"sum\": {\"type\": \"int64\"}}},"                                 \
    "   \"Mark\": {\"key\": [\"event\"], \"fields\": {\"event\": {\"type\": \"int64\"}}}},"                    \
    " \"projectors\": {"                                                                                       \
    "   \"totals\": {\"on\": [\"Bill\"], \"do\": [{\"upsert\": \"Total\","                                     \
    "     \"key\": {\"who\": \"$event.records.Item.who\"},"                                                    \
    "     \"set\": {\"bills\": \"coalesce(bills, 0) + 1\","                                                    \
    "       \"cents\": \"coalesce(cents, 0) + $event.records.Item.cents\"}}]},"                                \
    "   \"raise\": {\"on\": [\"Raise\"], \"do\": [{\"update\": \"Total\","                                     \
    "     \"where\": \"cents > 100\", \"set\": {\"cents\": \"cents + $event.records.Item.cents\"}}]},"         \
    "   \"notes\": {\"on\": [\"Ask\"], \"writes\": [\"Note\"]" notes "},"                                      \
    "   \"marks\": {\"on\": [\"Ask\"], \"do\": [{\"upsert\": \"Mark\","                                        \
    "     \"key\": {\"event\": \"$event.offset\"}, \"set\": {}}]}}}"

struct lanes_bed {
    char dir[256];
    char path[300];
    char log[BEDS_URL_MAX];
    pawl_options options;
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

static inline void bed_opened(struct lanes_bed *bed, int status)
{
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
    assert_ok(pawl_request_new(bed->engine, &bed->request));
}

static inline void bed_open(struct lanes_bed *bed)
{
    bed_opened(bed, pawl_open(bed->path, &bed->options, &bed->engine, &bed->error));
}

static inline void bed_close(struct lanes_bed *bed)
{
    pawl_request_free(bed->request);
    assert_ok(pawl_close(bed->engine));
    bed->engine = NULL;
}

static inline void bed_apply(struct lanes_bed *bed, const char *schema)
{
    int status = pawl_schema_apply(bed->engine, schema, NULL, &bed->error);
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
}

/* Options are for the caller to set in a bed that is otherwise zero. By default nothing expires and nobody
 * gives up while the machine is busy with something else. */
static inline void bed_begin(struct lanes_bed *bed, const char *schema)
{
    pawl_options *o = &bed->options;
    o->wait = o->wait ? o->wait : BED_PATIENCE;
    o->lease_first = o->lease_first ? o->lease_first : BED_PATIENCE;
    o->lease_min = o->lease_min ? o->lease_min : BED_PATIENCE;
    if (bed->options.partitions == 0) {
        bed->options.partitions = 4;
        bed->options.shards = 2;
    }
    if (beds_are_on_kafka() && !bed->options.log) {
        beds_make_log(bed->options.partitions, bed->log);
        bed->options.log = bed->log;
    }
    test_dir_make(bed->dir, sizeof bed->dir);
    snprintf(bed->path, sizeof bed->path, "%s/data", bed->dir);
    bed_opened(bed, beds_open_new(bed->path, &bed->options, &bed->engine, &bed->error));
    bed_apply(bed, schema);
    for (uint64_t wsid = 1; wsid <= TENANTS; wsid++)
        assert_ok(pawl_workspace_create(bed->engine, bed->request, wsid, "t.tenant", NULL, &bed->error));
}

static inline void bed_end(struct lanes_bed *bed)
{
    if (bed->engine)
        bed_close(bed);
    test_dir_remove(bed->dir);
}

/* On any thread, with a request of its own. */
static inline int bed_command(pawl_engine *engine, pawl_request *request, uint64_t wsid, const char *command,
                              const char *who, int64_t cents, pawl_answer *ret_answer, pawl_error *error)
{
    pawl_request_begin(request, wsid, command);
    pawl_request_record(request, 1, "t.Item");
    pawl_request_set_string(request, "who", who);
    pawl_request_set_int64(request, "cents", cents);
    return pawl_command(engine, request, ret_answer, error);
}

/* The event's offset in its partition. */
static inline uint64_t bed_send(struct lanes_bed *bed, uint64_t wsid, const char *command, const char *who,
                                int64_t cents)
{
    pawl_answer answer;
    assert_ok(bed_command(bed->engine, bed->request, wsid, command, who, cents, &answer, &bed->error));
    return answer.offset;
}

static inline void bed_wait(struct lanes_bed *bed, const char *lane)
{
    int status = pawl_lanes_wait(bed->engine, lane, BED_PATIENCE, &bed->error);
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
}

/* A row as JSON, once the lane has come to an offset (0: as it is); "" if there is none. Static memory. */
static inline const char *bed_row(struct lanes_bed *bed, uint64_t wsid, const char *entity, const char *key,
                                  uint64_t min_offset)
{
    static char row[1024];
    pawl_text text;
    pawl_read_options options = {.min_offset = min_offset, .timeout = BED_PATIENCE};
    int status = pawl_entity_get(bed->engine, wsid, entity, text_bytes(key), &options, &text, &bed->error);
    row[0] = '\0';
    if (status == PAWL_ENOTFOUND)
        return row;
    if (status != PAWL_OK)
        print_error("%s\n", bed->error.text);
    assert_ok(status);
    snprintf(row, sizeof row, "%s", text.data);
    pawl_text_free(&text);
    return row;
}

/* How many rows an entity has in a workspace. */
static inline size_t bed_count(struct lanes_bed *bed, uint64_t wsid, const char *entity)
{
    pawl_text text;
    size_t rows = 0;
    assert_ok(pawl_entity_list(bed->engine, wsid, entity, (pawl_bytes){0}, 1000000, NULL, &text, &bed->error));
    for (const char *at = text.data; (at = strchr(at, '\n')); at++)
        rows++;
    pawl_text_free(&text);
    return rows;
}

/* A lane's generation in a partition; number 0: the one that serves. */
struct bed_looking {
    uint16_t partition;
    uint32_t generation;
    bool found;
    pawl_lane_status status;
};

static inline bool bed_look_one(void *arg, const pawl_lane_status *status)
{
    struct bed_looking *l = arg;
    if (status->partition != l->partition
        || (l->generation ? status->generation != l->generation : !status->serving))
        return true;
    l->found = true;
    l->status = *status;
    return false;
}

static inline pawl_lane_status bed_status(struct lanes_bed *bed, const char *lane, uint16_t partition,
                                          uint32_t generation)
{
    struct bed_looking l = {.partition = partition, .generation = generation};
    assert_ok(pawl_lanes_read(bed->engine, lane, bed_look_one, &l, &bed->error));
    assert_true(l.found);
    return l.status;
}

static inline void bed_moment(void)
{
    wait_pause(PAWL_MILLISECOND);
}

/* Something that others bring about; it is looked at again and again. */
#define BED_UNTIL(condition)                                                                                   \
    do {                                                                                                       \
        unsigned bed_tries = 0;                                                                                \
        while (!(condition)) {                                                                                 \
            assert_true(bed_tries++ < 300000);                                                                 \
            bed_moment();                                                                                      \
        }                                                                                                      \
    } while (0)

#endif
