#include "core/group0/group0.h"

#include "base/alloc.h"
#include "base/error.h"
#include "core/group0/version.h"

struct group0 {
    const pawl_allocator *alloc;
    struct version **versions; /* by position; the first is the empty one */
    size_t count;
    size_t room;
    uint64_t position;
};

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
    return group0->versions[group0->count - 1];
}

/* Make room for one more version first, so that nothing can fail after the decision. */
static int reserve(struct group0 *group0)
{
    if (group0->count < group0->room)
        return PAWL_OK;
    size_t room = group0->room ? group0->room * 2 : 8;
    size_t size = sizeof(struct version *);
    void *versions = mem_resize(group0->alloc, group0->versions, group0->room * size, room * size);
    if (!versions)
        return PAWL_ENOMEM;
    group0->versions = versions;
    group0->room = room;
    return PAWL_OK;
}

int group0_new(const pawl_allocator *alloc, struct group0 **ret_group0)
{
    struct group0 *group0 = mem_new(alloc, 1, sizeof *group0);
    if (!group0)
        return PAWL_ENOMEM;
    group0->alloc = alloc;
    int status = reserve(group0);
    if (status == PAWL_OK)
        status = version_first(alloc, &group0->versions[0]);
    if (status) {
        group0_free(group0);
        return status;
    }
    group0->count = 1;
    *ret_group0 = group0;
    return PAWL_OK;
}

void group0_free(struct group0 *group0)
{
    if (!group0)
        return;
    for (size_t i = 0; i < group0->count; i++)
        version_drop(group0->versions[i]);
    mem_free(group0->alloc, group0->versions, group0->room * sizeof(struct version *));
    mem_free(group0->alloc, group0, sizeof *group0);
}

/* The version that the command makes; NULL if it changes nothing. */
static int judge(const struct group0 *group0, uint64_t position, pawl_bytes bytes, struct version **ret_version,
                 pawl_error *error)
{
    struct arena arena;
    struct group0_command command;
    error_clear(error);
    arena_init(&arena, group0->alloc, VERSION_CHUNK);
    int status = group0_command_decode(bytes, &arena, &command, error);
    if (status == PAWL_OK)
        status = version_next(newest(group0), position, &command, ret_version, error);
    arena_release(&arena);
    if (status && error && error->code != status)
        error_set(error, status, "%s", pawl_status_text(status));
    return status;
}

int group0_check(const struct group0 *group0, pawl_bytes command, enum group0_outcome *ret_outcome,
                 pawl_error *error)
{
    struct version *version;
    int status = judge(group0, group0->position + 1, command, &version, error);
    if (status)
        return status;
    *ret_outcome = version ? GROUP0_CHANGED : GROUP0_UNCHANGED;
    if (version)
        version_drop(version);
    return PAWL_OK;
}

int group0_apply(struct group0 *group0, uint64_t position, pawl_bytes command, enum group0_outcome *ret_outcome,
                 pawl_error *error)
{
    if (position <= group0->position)
        return error_set(error, PAWL_EMISUSE, "group0 position %llu is not above %llu",
                         (unsigned long long)position, (unsigned long long)group0->position);
    struct version *version;
    int status = reserve(group0);
    if (status)
        return error_set(error, status, "%s", pawl_status_text(status));
    status = judge(group0, position, command, &version, error);
    if (status)
        return error_wrap(error, status, "group0 position %llu", (unsigned long long)position);
    group0->position = position;
    if (version)
        group0->versions[group0->count++] = version;
    *ret_outcome = version ? GROUP0_CHANGED : GROUP0_UNCHANGED;
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
        if (group0->versions[middle]->resolved.schema.position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct schema *group0_schema_at(const struct group0 *group0, uint64_t position)
{
    return &group0->versions[versions_until(group0, group0->count, position) - 1]->resolved.schema;
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
        if (is_behind(group0->versions[middle], lane, generation))
            high = middle;
        else
            low = middle + 1;
    }
    const struct known_lane *last = known(group0->versions[low - 1], lane);
    if (!last || last->lane.generation != generation)
        return NULL;
    uint64_t until = event_schema > last->lane.born ? event_schema : last->lane.born;
    return &group0->versions[versions_until(group0, low, until) - 1]->resolved.schema;
}

struct hash128 group0_digest(const struct group0 *group0)
{
    return newest(group0)->digest;
}
