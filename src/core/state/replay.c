#include "core/state/replay.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/hash.h"
#include "core/state/key.h"

int replay_event(struct replay *r, uint64_t offset, pawl_place place, pawl_bytes body, pawl_error *error)
{
    struct event event;
    struct changes changes;
    struct state state = {.overlay = r->overlay, .reader = pawl_store_writer(r->store), .scratch = r->scratch};
    int status = event_decode(body, &event, error);
    if (status != PAWL_OK)
        return status;
    struct derivation derivation = {
        .offset = offset, .event = &event, .schema = r->schema_at(r->ctx, event.head.schema)};
    if (!derivation.schema)
        return error_set(error, PAWL_ECORRUPT,
                         "the event was made under the schema at %" PRIu64 ", which is not known",
                         event.head.schema);
    status = derive(&derivation, &state, r->memory, &changes, error);
    if (status != PAWL_OK)
        return status;
    overlay_remove(r->overlay, &changes);
    status = digests_add(&r->position->digests, &changes);
    if (status == PAWL_OK)
        status = changes_put(&changes, r->store, r->watch);
    r->rows += changes.count;
    r->position->offset = offset;
    r->position->place = place;
    r->position->checksum = hash_checksum(0, body);
    return status == PAWL_OK ? status
                             : error_set(error, status, "cannot write the state: %s", pawl_status_text(status));
}

int replay_put(struct replay *r)
{
    return position_write(r->position, r->store);
}
