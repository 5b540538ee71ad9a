/* engine/node/projectors.c: the projectors and lanes of the schema that is in force, for whoever wants to show
 * them. */
#include <pawl/pawl.h>

#include "base/error.h"
#include "engine/node/node.h"

#define ARENA_CHUNK ((size_t)4096)

static pawl_bytes *entity_names(struct arena *memory, const struct schema_type *const *types, size_t count)
{
    pawl_bytes *names = arena_take(memory, count * sizeof *names);
    for (size_t i = 0; names && i < count; i++)
        names[i] = types[i]->name;
    return names;
}

/* Names in the memory; false: there is none. */
static bool describe(const struct schema *schema, const struct schema_projector *p, struct arena *memory,
                     pawl_projector *ret_projector)
{
    const struct schema_lane *lane = p->lane ? schema_lane_by_id(schema, p->lane) : NULL;
    pawl_bytes *on = arena_take(memory, p->on_count * sizeof *on);
    for (size_t i = 0; on && i < p->on_count; i++)
        on[i] = schema_name_text(schema, p->on[i]);
    *ret_projector = (pawl_projector){
        .name = p->name,
        .lane = lane ? lane->name : (pawl_bytes){0},
        .generation = lane ? lane->generation : 0,
        .serving = lane ? lane->serving : 0,
        .handler = p->handler,
        .on = on,
        .on_count = p->on_count,
        .writes = entity_names(memory, p->writes, p->write_count),
        .write_count = p->write_count,
        .reads = entity_names(memory, p->reads, p->read_count),
        .read_count = p->read_count,
        .workers = p->workers,
        .attempts_max = p->attempts_max,
        .voids = p->on_failure == ON_FAILURE_VOID,
    };
    return on && ret_projector->writes && ret_projector->reads;
}

int pawl_projectors_read(pawl_engine *e, pawl_projector_visit visit, void *arg, pawl_error *error)
{
    struct arena memory;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    const struct schema *schema = engine_schema(e);
    arena_init(&memory, e->options.allocator, ARENA_CHUNK);
    for (size_t i = 0; i < schema->projector_count; i++) {
        pawl_projector projector;
        arena_reset(&memory);
        if (!describe(schema, &schema->projectors[i], &memory, &projector)) {
            status = error_set(error, PAWL_ENOMEM, "no memory to describe projectors");
            break;
        }
        if (!visit(arg, &projector))
            break;
    }
    arena_release(&memory);
    return status;
}

/* Names in the memory; false: there is none. */
static bool describe_lane(const struct schema *schema, const struct schema_lane *lane, struct arena *memory,
                          pawl_schema_lane *ret_lane)
{
    pawl_bytes *projectors = arena_take(memory, schema->projector_count * sizeof *projectors);
    pawl_bytes *entities = arena_take(memory, schema->type_count * sizeof *entities);
    size_t projector_count = 0, entity_count = 0;
    if (!projectors || !entities)
        return false;
    for (size_t i = 0; i < schema->projector_count; i++)
        if (schema->projectors[i].lane == lane->id)
            projectors[projector_count++] = schema->projectors[i].name;
    for (size_t i = 0; i < schema->type_count; i++)
        if (schema->types[i].lane == lane->id)
            entities[entity_count++] = schema->types[i].name;
    *ret_lane = (pawl_schema_lane){.name = lane->name,
                                   .id = lane->id,
                                   .generation = lane->generation,
                                   .serving = lane->serving,
                                   .projectors = projectors,
                                   .projector_count = projector_count,
                                   .entities = entities,
                                   .entity_count = entity_count};
    return true;
}

int pawl_schema_lanes_read(pawl_engine *e, pawl_schema_lane_visit visit, void *arg, pawl_error *error)
{
    struct arena memory;
    int status = engine_enter(e, error);
    if (status != PAWL_OK)
        return status;
    const struct schema *schema = engine_schema_refresh(e);
    arena_init(&memory, e->options.allocator, ARENA_CHUNK);
    for (size_t i = 0; i < schema->lane_count; i++) {
        pawl_schema_lane lane;
        arena_reset(&memory);
        if (!describe_lane(schema, &schema->lanes[i], &memory, &lane)) {
            status = error_set(error, PAWL_ENOMEM, "no memory to describe lanes");
            break;
        }
        if (!visit(arg, &lane))
            break;
    }
    arena_release(&memory);
    return status;
}
