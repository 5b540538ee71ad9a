#include "core/group0/version.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "core/group0/compat.h"
#include "core/group0/naming.h"
#include "core/schema/path.h"

/* What the system itself names. */
static const struct schema_name system_names[] = {
    {.id = NAME_WS_CREATE, .kind = NAMED_SYSTEM, .text = {"sys.CreateWorkspace", 19}},
    {.id = NAME_WS_FREEZE, .kind = NAMED_SYSTEM, .text = {"sys.FreezeWorkspace", 19}},
    {.id = NAME_WS_THAW, .kind = NAMED_SYSTEM, .text = {"sys.ThawWorkspace", 17}},
};
static const uint16_t system_names_by_text[] = {0, 1, 2};

static struct version *version_new(const pawl_allocator *alloc)
{
    struct version *version = mem_new(alloc, 1, sizeof *version);
    if (!version)
        return NULL;
    atomic_init(&version->references, 1);
    version->alloc = alloc;
    arena_init(&version->arena, alloc, VERSION_CHUNK);
    return version;
}

void version_hold(struct version *version)
{
    /* Relaxed: the caller holds a reference already, so it learns nothing new by taking another. */
    atomic_fetch_add_explicit(&version->references, 1, memory_order_relaxed);
}

void version_drop(struct version *version)
{
    /* All uses by other threads come before the free: each release orders its own, and the last acquires
     * them. */
    size_t before = atomic_fetch_sub_explicit(&version->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    resolved_release(&version->resolved);
    arena_release(&version->arena);
    mem_free(version->alloc, version, sizeof *version);
}

int version_first(const pawl_allocator *alloc, struct version **ret_version)
{
    struct version *version = version_new(alloc);
    if (!version)
        return PAWL_ENOMEM;
    version->resolved.schema = (struct schema){.names = system_names,
                                               .name_count = sizeof system_names / sizeof *system_names,
                                               .names_by_text = system_names_by_text};
    *ret_version = version;
    return PAWL_OK;
}

static void fold_numbers(struct hash128 *digest, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    uint8_t bytes[32];
    put_u64(bytes, a);
    put_u64(bytes + 8, b);
    put_u64(bytes + 16, c);
    put_u64(bytes + 24, d);
    hash_chain(digest, (pawl_bytes){bytes, sizeof bytes});
}

/* All decisions; what is derived from them needs no digest of its own. */
static struct hash128 digest_of(const struct version *version, struct hash128 before)
{
    const struct resolved *r = &version->resolved;
    struct hash128 digest = before;
    fold_numbers(&digest, r->schema.position, version->package_count, r->schema.name_count, r->lane_count);
    for (size_t i = 0; i < version->package_count; i++)
        hash_chain(&digest, version->package_bytes[i]);
    for (size_t i = 0; i < r->schema.name_count; i++) {
        const struct schema_name *name = &r->schema.names[i];
        fold_numbers(&digest, name->id, (uint64_t)name->kind << 8 | name->filler, name->table, name->singleton);
        fold_numbers(&digest, name->generation, name->serving, 0, 0);
        hash_chain(&digest, name->text);
    }
    for (size_t i = 0; i < r->lane_count; i++) {
        const struct known_lane *lane = &r->lanes[i];
        fold_numbers(&digest, (uint64_t)lane->lane.id << 32 | lane->lane.generation, lane->present,
                     lane->digest.low, lane->digest.high);
        fold_numbers(&digest, lane->lane.born, lane->lane.serving, lane->lane.serving_born,
                     lane->lane.serving_last);
        for (size_t k = 0; k < lane->lane.switched_count; k++)
            fold_numbers(&digest, lane->lane.switched[k], 0, 0, 0);
        hash_chain(&digest, lane->lane.name);
    }
    return digest;
}

/* Copy a package in: its bytes, and lists over them. */
static int take_package(struct version *version, size_t place, pawl_bytes bytes, pawl_error *error)
{
    version->package_bytes[place] = arena_copy(&version->arena, bytes);
    if (!version->package_bytes[place].data)
        return PAWL_ENOMEM;
    return definition_decode(version->package_bytes[place], &version->arena, &version->packages[place], error);
}

static int take_packages(struct version *version, const struct version *before, pawl_error *error)
{
    size_t room = before->package_count + 1;
    version->packages = arena_take(&version->arena, room * sizeof *version->packages);
    version->package_bytes = arena_take(&version->arena, room * sizeof *version->package_bytes);
    if (!version->packages || !version->package_bytes)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < before->package_count; i++) {
        int status = take_package(version, i, before->package_bytes[i], error);
        if (status)
            return status;
    }
    version->package_count = before->package_count;
    return PAWL_OK;
}

static struct definition *find_package(const struct version *version, pawl_bytes name)
{
    return version->package_count
               ? definition_find(version->packages, version->package_count, sizeof *version->packages, name)
               : NULL;
}

/* Check the package, settle it, and put it into its place. ret_same: it is there already. */
static int put_package(struct version *version, const struct definition *package, bool *ret_same,
                       pawl_error *error)
{
    struct arena *arena = &version->arena;
    int status = definition_check(package, arena, error);
    if (status)
        return status;
    struct definition *old = find_package(version, package->package);
    size_t place = old ? (size_t)(old - version->packages) : version->package_count;

    /* Settling writes into the lists, which may be the caller's: so it works on a copy of them. */
    pawl_bytes bytes;
    struct definition settled;
    status = definition_encode(package, arena, &bytes);
    if (status == PAWL_OK)
        status = definition_decode(bytes, arena, &settled, error);
    if (status == PAWL_OK)
        status = definition_settle(&settled, old, arena);
    if (status == PAWL_OK)
        status = definition_encode(&settled, arena, &bytes);
    if (status)
        return status;
    *ret_same = old && bytes_equal(bytes, version->package_bytes[place]);
    if (old && !*ret_same)
        status = compat_check(old, &settled, error);
    if (status)
        return status;
    version->packages[place] = settled;
    version->package_bytes[place] = bytes;
    version->package_count += old ? 0 : 1;
    return PAWL_OK;
}

static int copy_offsets(struct version *version, const uint64_t *offsets, size_t count,
                        struct schema_lane *lane)
{
    uint64_t *copy = arena_take(&version->arena, count * sizeof *copy);
    if (!copy)
        return PAWL_ENOMEM;
    if (count)
        memcpy(copy, offsets, count * sizeof *copy);
    lane->switched = copy;
    lane->switched_count = count;
    return PAWL_OK;
}

static int copy_lanes(struct version *version, const struct version *before, struct known_lane **ret_lanes)
{
    size_t count = before->resolved.lane_count;
    struct known_lane *lanes = arena_take(&version->arena, count * sizeof *lanes);
    if (!lanes)
        return PAWL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        lanes[i] = before->resolved.lanes[i];
        lanes[i].lane.name = arena_copy(&version->arena, lanes[i].lane.name);
        if (!lanes[i].lane.name.data)
            return PAWL_ENOMEM;
        int status =
            copy_offsets(version, lanes[i].lane.switched, lanes[i].lane.switched_count, &lanes[i].lane);
        if (status)
            return status;
    }
    *ret_lanes = lanes;
    return PAWL_OK;
}

/* Whether a command about a lane can be applied. ret_same: it was applied before. A switch may be repeated,
 * because the one who proposed it may not know its outcome. */
static int judge_lane(const struct version *before, const struct group0_command *command, bool *ret_same,
                      pawl_error *error)
{
    const struct schema_lane *lane = schema_lane_by_id(&before->resolved.schema, command->lane);
    if (!lane)
        return error_set(error, PAWL_EINVAL, "there is no lane %u", command->lane);
    if (command->kind == GROUP0_REBUILD)
        return PAWL_OK;
    *ret_same = command->generation == lane->serving;
    if (!*ret_same && command->generation != lane->generation)
        return error_set(error, PAWL_EINVAL,
                         "generation %u of lane %.*s is not its newest, which is %u, and cannot serve",
                         command->generation, TEXT(lane->name), lane->generation);
    return PAWL_OK;
}

static int switch_lane(struct version *version, const struct group0_command *command, struct schema_lane *lane)
{
    lane->serving = lane->generation;
    lane->serving_born = lane->born;
    lane->serving_last = UINT64_MAX;
    return copy_offsets(version, command->offsets, command->offset_count, lane);
}

/* Remember which projector fills which entity, for all later versions. */
static void note_fillers(const struct schema *schema, struct naming *naming)
{
    for (size_t i = 0; i < schema->projector_count; i++) {
        const struct schema_projector *p = &schema->projectors[i];
        const struct schema_lane *lane = schema_lane_by_id(schema, p->lane);
        for (size_t k = 0; k < p->write_count; k++) {
            struct schema_name *name =
                &naming->names[schema_name_by_id(schema, p->writes[k]->id) - naming->names];
            name->filler = lane ? FILLED_BY_LANE : FILLED_SYNC;
            if (lane)
                name->generation = lane->generation;
            if (lane && lane->serving == lane->generation)
                name->serving = lane->serving;
        }
    }
}

static int fill(struct version *version, const struct version *before, uint64_t position,
                const struct group0_command *command, bool *ret_same, pawl_error *error)
{
    const struct definition *package = command->kind == GROUP0_SCHEMA ? &command->schema : NULL;
    struct naming naming;
    struct known_lane *lanes;
    int status = take_packages(version, before, error);
    if (status == PAWL_OK)
        status = package ? put_package(version, package, ret_same, error)
                         : judge_lane(before, command, ret_same, error);
    if (status || *ret_same)
        return status;
    status = naming_extend(&before->resolved.schema, package, &version->arena, &naming, error);
    if (status == PAWL_OK)
        status = copy_lanes(version, before, &lanes);
    if (status == PAWL_OK && command->kind == GROUP0_SWITCH)
        status = switch_lane(version, command, &lanes[command->lane - 1].lane);
    if (status)
        return status;
    struct schema_source source = {.position = position,
                                   .before = before->resolved.schema.position,
                                   .packages = version->packages,
                                   .package_count = version->package_count,
                                   .subject = package ? package->package : (pawl_bytes){NULL, 0},
                                   .names = naming.names,
                                   .name_count = naming.count,
                                   .names_by_text = naming.by_text,
                                   .lanes = lanes,
                                   .lane_count = before->resolved.lane_count,
                                   .rebuild = command->kind == GROUP0_REBUILD ? command->lane : 0};
    status = schema_resolve(&source, &version->arena, &version->resolved, error);
    if (status)
        return status;
    note_fillers(&version->resolved.schema, &naming);
    version->digest = digest_of(version, before->digest);
    return PAWL_OK;
}

int version_next(const struct version *before, uint64_t position, const struct group0_command *command,
                 struct version **ret_version, pawl_error *error)
{
    struct version *version = version_new(before->alloc);
    if (!version)
        return PAWL_ENOMEM;
    bool same = false;
    int status = fill(version, before, position, command, &same, error);
    if (status || same) {
        version_drop(version);
        version = NULL;
    }
    if (status == PAWL_OK)
        *ret_version = version;
    return status;
}
