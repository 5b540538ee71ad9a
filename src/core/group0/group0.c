#include "core/group0/group0.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/group0/group0_impl.h"

static struct version *version_of(const struct schema *schema)
{
    return (struct version *)((uintptr_t)schema - offsetof(struct version, resolved.schema));
}

const struct schema *schema_hold(const struct schema *schema)
{
    version_hold(version_of(schema));
    return schema;
}

void schema_drop(const struct schema *schema)
{
    if (schema)
        version_drop(version_of(schema));
}

const struct definition *schema_package(const struct schema *schema, size_t i)
{
    const struct version *version = version_of(schema);
    return i < version->package_count ? &version->packages[i] : NULL;
}

static struct version *newest(const struct group0 *group0)
{
    return group0->versions[group0->count - 1].version;
}

static int reserve(struct group0 *group0)
{
    if (group0->count < group0->room)
        return PAWL_OK;
    size_t room = group0->room ? group0->room * 2 : 8, size = sizeof group0->versions[0];
    void *versions = mem_resize(group0->alloc, group0->versions, group0->room * size, room * size);
    if (!versions)
        return PAWL_ENOMEM;
    group0->versions = versions;
    group0->room = room;
    return PAWL_OK;
}

int group0_keep(struct group0 *group0, pawl_bytes command, pawl_bytes *ret_copy)
{
    int status = reserve(group0);
    void *copy = status == PAWL_OK && command.size ? mem_new(group0->alloc, 1, command.size) : NULL;
    if (status != PAWL_OK || (command.size && !copy))
        return PAWL_ENOMEM;
    if (command.size)
        memcpy(copy, command.data, command.size);
    *ret_copy = (pawl_bytes){copy, command.size};
    return PAWL_OK;
}

void group0_unkeep(struct group0 *group0, pawl_bytes copy)
{
    mem_free(group0->alloc, (void *)(uintptr_t)copy.data, copy.size);
}

int group0_new(const pawl_allocator *alloc, struct group0 **ret_group0)
{
    struct group0 *group0 = mem_new(alloc, 1, sizeof *group0);
    if (!group0)
        return PAWL_ENOMEM;
    group0->alloc = alloc;
    int status = building_init(&group0->building, alloc);
    if (status == PAWL_OK)
        status = reserve(group0);
    if (status == PAWL_OK)
        status = version_first(alloc, &group0->versions[0].version);
    if (status) {
        group0_free(group0);
        return status;
    }
    group0->versions[0].command = (pawl_bytes){0};
    group0->count = 1;
    *ret_group0 = group0;
    return PAWL_OK;
}

void group0_free(struct group0 *group0)
{
    if (!group0)
        return;
    building_release(&group0->building);
    for (size_t i = 0; i < group0->count; i++) {
        version_drop(group0->versions[i].version);
        group0_unkeep(group0, group0->versions[i].command);
    }
    mem_free(group0->alloc, group0->versions, group0->room * sizeof group0->versions[0]);
    mem_free(group0->alloc, group0, sizeof *group0);
}

void group0_configure(struct group0 *group0, uint32_t partitions, uint32_t nodes, uint32_t shards)
{
    tablet_map_init(&group0->building.map, partitions, nodes, shards);
}

void group0_set_term(struct group0 *group0, uint64_t term)
{
    group0->term = term;
}

const struct building *group0_building(const struct group0 *group0)
{
    return &group0->building;
}

const struct assignment *group0_assignment(const struct group0 *group0)
{
    return &group0->assignment;
}

/* What a command would do, or does. */
struct judgement {
    struct version *version; /* that it makes; NULL: none */
    bool changed;
};

/* The package of a version that a command was about. */
static const struct definition *subject(const struct version *version, const struct group0_command *command)
{
    if (command->kind != GROUP0_SCHEMA)
        return NULL;
    return definition_find(version->packages, version->package_count, sizeof *version->packages,
                           command->schema.package);
}

static int judge_schema(struct group0 *group0, uint64_t position, const struct group0_command *command,
                        bool dry, struct judgement *judgement, pawl_error *error)
{
    int status = version_next(newest(group0), position, command, &judgement->version, error);
    if (status || !judgement->version)
        return status;
    struct version *version = judgement->version;
    status = building_schema(&group0->building, &version->resolved.schema, subject(version, command), position,
                             dry, error);
    if (status)
        version_drop(version);
    judgement->changed = true;
    return status;
}

static int judge_view(struct group0 *group0, uint64_t position, const struct group0_command *command, bool dry,
                      struct judgement *judgement, pawl_error *error)
{
    if (dry && group0->term && command->guard.term && command->guard.term != group0->term)
        return error_set(error, PAWL_ECONFLICT, "this was decided by a leader of another term");
    return building_apply(&group0->building, command, position, group0_schema(group0), dry, &judgement->changed,
                          error);
}

/* An assignment always changes something: claims rest on its position. */
static int judge_assign(struct group0 *group0, uint64_t position, const struct group0_command *command,
                        bool dry, struct judgement *judgement)
{
    if (!dry) {
        group0->assignment = command->assignment;
        group0->assignment.position = position;
    }
    judgement->changed = true;
    return PAWL_OK;
}

/* Whoever was assigned before was assigned in the place that the log was imported from. */
static int judge_import_done(struct group0 *group0, bool dry, struct judgement *judgement)
{
    if (!dry)
        group0->assignment = (struct assignment){0};
    judgement->changed = true;
    return PAWL_OK;
}

static int judge_decoded(struct group0 *group0, uint64_t position, const struct group0_command *command,
                         bool dry, struct judgement *judgement, pawl_error *error)
{
    if (command->kind == GROUP0_ASSIGN)
        return judge_assign(group0, position, command, dry, judgement);
    if (command->kind == GROUP0_IMPORT_DONE)
        return judge_import_done(group0, dry, judgement);
    return group0_is_about_views(command->kind)
               ? judge_view(group0, position, command, dry, judgement, error)
               : judge_schema(group0, position, command, dry, judgement, error);
}

/* dry: nothing changes, but for the version that the judgement has. */
static int judge(struct group0 *group0, uint64_t position, pawl_bytes bytes, bool dry,
                 struct judgement *judgement, pawl_error *error)
{
    struct arena arena;
    struct group0_command command = {0};
    *judgement = (struct judgement){0};
    error_clear(error);
    arena_init(&arena, group0->alloc, VERSION_CHUNK);
    int status = group0_command_decode(bytes, &arena, &command, error);
    if (status == PAWL_OK)
        status = judge_decoded(group0, position, &command, dry, judgement, error);
    bool about_views = group0_is_about_views(command.kind); /* if it could be decoded */
    arena_release(&arena);
    if (status && error && error->code != status)
        error_set(error, status, "%s", pawl_status_text(status));
    if (!dry && about_views && status != PAWL_OK && status != PAWL_ENOMEM) {
        judgement->version = NULL;
        judgement->changed = false;
        return PAWL_ECONFLICT; /* G4 */
    }
    return status;
}

int group0_check(const struct group0 *group0, pawl_bytes command, enum group0_outcome *ret_outcome,
                 pawl_error *error)
{
    struct judgement judgement;
    /* A dry judgement changes nothing. */
    int status =
        judge((struct group0 *)(uintptr_t)group0, group0->position + 1, command, true, &judgement, error);
    if (status)
        return status;
    *ret_outcome = judgement.changed ? GROUP0_CHANGED : GROUP0_UNCHANGED;
    if (judgement.version)
        version_drop(judgement.version);
    return PAWL_OK;
}

int group0_apply(struct group0 *group0, uint64_t position, pawl_bytes command, enum group0_outcome *ret_outcome,
                 pawl_error *error)
{
    if (position <= group0->position)
        return error_set(error, PAWL_EMISUSE, "group0 position %llu is not above %llu",
                         (unsigned long long)position, (unsigned long long)group0->position);
    struct judgement judgement;
    pawl_bytes copy;
    int status = group0_keep(group0, command, &copy);
    if (status)
        return error_set(error, status, "%s", pawl_status_text(status));
    status = judge(group0, position, command, false, &judgement, error);
    bool refused = status == PAWL_ECONFLICT;
    if (status == PAWL_OK && judgement.version)
        group0->versions[group0->count++] = (struct kept_version){judgement.version, copy};
    else
        group0_unkeep(group0, copy);
    if (status && !refused)
        return error_wrap(error, status, "group0 position %llu", (unsigned long long)position);
    group0->position = position;
    *ret_outcome = refused ? GROUP0_REFUSED : judgement.changed ? GROUP0_CHANGED : GROUP0_UNCHANGED;
    return PAWL_OK;
}

uint64_t group0_position(const struct group0 *group0)
{
    return group0->position;
}

const struct schema *group0_schema(const struct group0 *group0)
{
    return &newest(group0)->resolved.schema;
}

/* How many of the first count versions are at or before the position: at least one. */
static size_t versions_until(const struct group0 *group0, size_t count, uint64_t position)
{
    size_t low = 1, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group0->versions[middle].version->resolved.schema.position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct schema *group0_schema_at(const struct group0 *group0, uint64_t position)
{
    return &group0->versions[versions_until(group0, group0->count, position) - 1].version->resolved.schema;
}

/* What a version knows of a lane, whether or not the lane is there; NULL: the lane came later. */
static const struct known_lane *known(const struct version *version, uint16_t lane)
{
    return lane >= 1 && lane <= version->resolved.lane_count ? &version->resolved.lanes[lane - 1] : NULL;
}

/* Generations only grow, and a lane that comes back gets a new one. So the versions that have this generation
 * follow each other, and one version alone tells whether it lies behind them. */
static bool is_behind(const struct version *version, uint16_t lane, uint32_t generation)
{
    const struct known_lane *k = known(version, lane);
    return k && (k->lane.generation > generation || (k->lane.generation == generation && !k->present));
}

const struct schema *group0_schema_for(const struct group0 *group0, uint16_t lane, uint32_t generation,
                                       uint64_t event_schema)
{
    size_t low = 1, high = group0->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_behind(group0->versions[middle].version, lane, generation))
            high = middle;
        else
            low = middle + 1;
    }
    const struct known_lane *last = known(group0->versions[low - 1].version, lane);
    if (!last || last->lane.generation != generation)
        return NULL;
    uint64_t until = event_schema > last->lane.born ? event_schema : last->lane.born;
    return &group0->versions[versions_until(group0, low, until) - 1].version->resolved.schema;
}

struct hash128 group0_digest(const struct group0 *group0)
{
    struct hash128 digest = newest(group0)->digest;
    building_digest(&group0->building, &digest);
    const struct assignment *a = &group0->assignment;
    if (a->position > 0) {
        uint8_t bytes[24];
        put_u64(bytes, a->position);
        put_u64(bytes + 8, a->node);
        put_u64(bytes + 16, (uint64_t)a->time);
        hash_chain(&digest, (pawl_bytes){bytes, sizeof bytes});
        hash_chain(&digest, (pawl_bytes){a->name, a->name_size});
    }
    return digest;
}
