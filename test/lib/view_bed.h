/* test/lib/view_bed.h: an engine with rows to be viewed, in a directory of the test's own, and a check that every view
 * of every store is what its base says.
 *
 *     Invoice (customer, number, cents, paid)   a record of a tenant, by Bill and Pay
 *     Total                                     by customer, kept by a lane
 *     Last                                      the same, kept with the command */
#ifndef TEST_LIB_VIEW_BED_H
#define TEST_LIB_VIEW_BED_H

#include <pawl/pawl.h>

#include <stdio.h>
#include <stdlib.h>

#include "adapter/lmdb/store.h"
#include "base/wait.h"
#include "engine/checkpoint/checkpointer.h"
#include "engine/node/node.h"
#include "test/lib/dir.h"
#include "test/lib/test.h"
#include "test/lib/views.h"

#define VIEW_TENANTS  12
#define VIEW_PATIENCE (300 * PAWL_SECOND) /* a machine that others keep busy is slow, not broken */

#define VIEW_SCHEMA(fields, factor, views)                                                                     \
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {\"sequences\": {\"invoice\": {}}}},"    \
    " \"types\": {\"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"customer\": {\"type\": \"string\"},"        \
    "   \"number\": {\"type\": \"int64\", \"sequence\": \"invoice\"}, \"cents\": {\"type\": \"int64\"},"       \
    "   \"paid\": {\"type\": \"bool\"}" fields "}},"                                                           \
    "   \"Note\": {\"kind\": \"CDoc\", \"fields\": {\"text\": {\"type\": \"string\"}}}},"                      \
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\"]}, \"Jot\": {\"records\": [\"Note\"]}},"             \
    " \"entities\": {"                                                                                         \
    "   \"Total\": {\"key\": [\"customer\"], \"fields\": {\"customer\": {\"type\": \"string\"},"               \
    "     \"cents\": {\"type\": \"int64\"}}},"                                                                 \
    "   \"Last\": {\"key\": [\"customer\"], \"fields\": {\"customer\": {\"type\": \"string\"},"                \
    "     \"cents\": {\"type\": \"int64\"}}}},"                                                                \
    " \"projectors\": {"                                                                                       \
    "   \"totals\": {\"on\": [\"Bill\"], \"do\": [{\"upsert\": \"Total\","                                     \
    "     \"key\": {\"customer\": \"coalesce($event.records.Invoice.customer, '')\"},"                         \
    "     \"set\": {\"cents\": \"coalesce(cents, 0) + " factor                                                 \
    " * coalesce($event.records.Invoice.cents, 0)\"}}]},"                                                      \
    "   \"last\": {\"on\": [\"Bill\"], \"sync\": true, \"do\": [{\"upsert\": \"Last\","                        \
    "     \"key\": {\"customer\": \"coalesce($event.records.Invoice.customer, '')\"},"                         \
    "     \"set\": {\"cents\": \"$event.records.Invoice.cents\"}}]}},"                                         \
    " \"views\": {" views "}}"

struct view_bed {
    char dir[256];
    char path[300];
    pawl_options options;
    struct engine_knobs knobs;
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

#define assert_bed_ok(bed, call)                                                                               \
    do {                                                                                                       \
        int bed_status_ = (call);                                                                              \
        if (bed_status_ != PAWL_OK)                                                                            \
            print_error("%s: %s\n", #call, (bed)->error.text);                                                 \
        assert_int_equal(bed_status_, PAWL_OK);                                                                \
    } while (0)

static inline void view_bed_open(struct view_bed *bed)
{
    assert_bed_ok(bed, engine_open(bed->path, &bed->options, &bed->knobs, &bed->engine, &bed->error));
    assert_ok(pawl_request_new(bed->engine, &bed->request));
}

static inline void view_bed_close(struct view_bed *bed)
{
    pawl_request_free(bed->request);
    assert_ok(pawl_close(bed->engine));
    bed->engine = NULL;
}

static inline void view_bed_reopen(struct view_bed *bed)
{
    view_bed_close(bed);
    view_bed_open(bed);
}

static inline void view_bed_begin(struct view_bed *bed, uint32_t shards)
{
    pawl_answer answer;
    *bed = (struct view_bed){.options = {.partitions = 8, .shards = shards}};
    test_dir_make(bed->dir, sizeof bed->dir);
    snprintf(bed->path, sizeof bed->path, "%s/d", bed->dir);
    bed->knobs.threads = 64; /* a thread for each shard, however few processors there are */
    bed->knobs.slice_rows = 64;
    bed->knobs.checkpoint_age = 50 * PAWL_MILLISECOND;
    view_bed_open(bed);
    assert_bed_ok(bed, pawl_schema_apply(bed->engine, VIEW_SCHEMA("", "1", ""), NULL, &bed->error));
    for (uint64_t wsid = 1; wsid <= VIEW_TENANTS; wsid++)
        assert_bed_ok(bed,
                      pawl_workspace_create(bed->engine, bed->request, wsid, "t.tenant", &answer, &bed->error));
}

static inline void view_bed_end(struct view_bed *bed)
{
    if (bed->engine)
        view_bed_close(bed);
    test_dir_remove(bed->dir);
}

/* One invoice; customer NULL: null. *ret_id may be NULL. */
static inline int view_bed_bill(struct view_bed *bed, pawl_request *request, uint64_t wsid,
                                const char *customer, int64_t cents, uint64_t *ret_id, pawl_error *error)
{
    pawl_answer answer;
    (void)pawl_request_begin(request, wsid, "t.Bill");
    (void)pawl_request_record(request, 1, "t.Invoice");
    if (customer)
        (void)pawl_request_set_string(request, "customer", customer);
    (void)pawl_request_set_int64(request, "cents", cents);
    int status = pawl_command(bed->engine, request, &answer, error);
    if (status == PAWL_OK && ret_id)
        *ret_id = pawl_request_id(request, 1);
    return status;
}

/* Invoices of some customers in every workspace. */
static inline void view_bed_fill(struct view_bed *bed, unsigned each)
{
    for (unsigned i = 0; i < each; i++)
        for (uint64_t wsid = 1; wsid <= VIEW_TENANTS; wsid++) {
            char customer[32];
            snprintf(customer, sizeof customer, "customer %u", (i * 7 + (unsigned)wsid) % 23);
            assert_bed_ok(bed,
                          view_bed_bill(bed, bed->request, wsid, customer, (int64_t)i - 5, NULL, &bed->error));
        }
}

static inline int view_bed_create(struct view_bed *bed, const char *name, const char *base, const char *first,
                                  const char *second, const char *filter, bool unique)
{
    const char *key[] = {first, second};
    pawl_view_definition definition = {.name = name,
                                       .base = base,
                                       .key = key,
                                       .key_count = second ? 2 : 1,
                                       .filter = filter,
                                       .unique = unique};
    return pawl_view_create(bed->engine, &definition, &bed->error);
}

static inline void view_bed_wait(struct view_bed *bed, const char *name)
{
    assert_bed_ok(bed, pawl_view_wait(bed->engine, name, VIEW_PATIENCE, &bed->error));
}

static inline bool view_bed_keep_status(void *arg, const pawl_view_status *status)
{
    *(pawl_view_status *)arg = *status; /* its strings are gone when this returns */
    return true;
}

static inline pawl_view_status view_bed_status(struct view_bed *bed, const char *name)
{
    pawl_view_status status = {0};
    assert_bed_ok(bed, pawl_view_status_read(bed->engine, name, view_bed_keep_status, &status, &bed->error));
    return status;
}

/* Every view of a store that is open: view = filter(base), row by row. */
static inline void view_bed_check_store(struct view_bed *bed, pawl_store *store, uint32_t shard)
{
    pawl_engine *e = bed->engine;
    uint16_t which[64];
    size_t count = e->shards[shard].partitions.count;
    for (size_t i = 0; i < count; i++)
        which[i] = partition_set_at(&e->shards[shard].partitions, i);
    pawl_reader *snapshot;
    assert_ok(pawl_store_snapshot(store, &snapshot));
    bool right =
        views_are_right(snapshot, engine_views(e), engine_schema(e), e->file.partitions, which, count, true);
    pawl_store_release(store, snapshot);
    assert_true(right);
}

static inline void view_bed_check(struct view_bed *bed)
{
    for (uint32_t i = 0; i < bed->engine->file.shards; i++)
        view_bed_check_store(bed, bed->engine->shards[i].store, i);
}

/* The same of the checkpoint stores, which the engine has open. */
static inline void view_bed_check_checkpoints(struct view_bed *bed)
{
    for (uint32_t i = 0; i < bed->engine->file.shards; i++) {
        struct checkpointer *c = bed->engine->shards[i].checkpointer;
        pthread_mutex_lock(&c->store_lock);
        if (c->store)
            view_bed_check_store(bed, c->store, i);
        pthread_mutex_unlock(&c->store_lock);
    }
}

#endif
