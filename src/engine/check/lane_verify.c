/* engine/check/lane_verify.c: whether the operations of lanes come out the same again, handlers included. */
#include "adapter/lmdb/store.h"
#include "base/error.h"
#include "engine/check/replay_lanes.h"
#include "engine/directory/directory.h"

static int verify_into(pawl_engine *e, const struct schema_lane *only, const char *dir,
                       pawl_lane_verdict *report, pawl_error *error)
{
    struct lmdb_options options = {.dir = dir, .mode = PAWL_STORE_FAST, .alloc = e->options.allocator};
    struct replay_lanes lanes = {
        .source = e, .only = only, .reproject = true, .report = report, .alloc = e->options.allocator};
    int status = lmdb_store_open(&options, NULL, &lanes.store, error);
    if (status != PAWL_OK)
        return status;
    for (uint32_t p = 0; status == PAWL_OK && p < e->file.partitions; p++) {
        lanes.partition = (uint16_t)p;
        status = replay_lanes(&lanes, error);
    }
    (void)pawl_store_close(lanes.store);
    return status;
}

int pawl_lane_verify(pawl_engine *e, const char *name, pawl_lane_verdict *ret_verdict, pawl_error *error)
{
    const struct schema_lane *lane = NULL;
    pawl_lane_verdict verdict = {0};
    char dir[NODE_PATH_MAX];
    int status = engine_enter(e, error);
    if (status == PAWL_OK && name)
        status = lanes_find(e, name, &lane, error);
    if (status == PAWL_OK)
        status = tree_make_temporary("verify", dir, error);
    if (status != PAWL_OK)
        return status;
    status = verify_into(e, lane, dir, &verdict, error);
    tree_remove(dir);
    if (status != PAWL_OK)
        return status;
    *ret_verdict = verdict;
    return PAWL_OK;
}
