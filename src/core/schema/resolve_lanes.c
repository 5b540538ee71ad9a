/* core/schema/resolve_lanes.c: which projectors belong together.
 *
 * Projectors that have an entity in common, which one of them writes and the other writes or reads, are in one
 * lane, and so are those whose schema says so by name. A declarative projector reads what it writes and nothing
 * else. A lane is called what it is called in the schema, or as its first projector.
 *
 * A name keeps its lane's ID for ever. The lane gets a new generation when its projectors are others, in
 * another order, or do something else; when it comes back after a schema without it; and when it is told to.
 * What projectors do is compared by a digest of their text, in which names are replaced by their numbers. The
 * generation that serves reads goes on to serve them.
 *
 *   L1  An entity is filled by synchronous projectors, or by the projectors of exactly one lane. Which of the
 *       two never changes, even if for a while nothing fills it, because its rows are there.
 *   L2  The entities that a handler reads are filled by its own lane.
 *   L3  A lane whose projectors have not changed does not change. */
#include "base/bytes.h"
#include "core/schema/resolve_impl.h"

#define LANES_MAX UINT16_MAX

struct grouping {
    size_t *first;     /* by projector: an earlier one, or itself, of the same lane */
    size_t *filler;    /* by type's place: the first projector that fills it, plus 1; 0: none */
    pawl_bytes *names; /* by projector: the lane's name, as the schema says it, qualified; empty: it does not */
};

static size_t group_of(const struct grouping *g, size_t projector)
{
    while (g->first[projector] != projector)
        projector = g->first[projector];
    return projector;
}

/* The path to a member of a projector (NULL: to itself), whose package becomes the one at hand. */
struct steps {
    struct path root, group, projector, member;
};

static const struct path *path_to(struct resolver *r, size_t projector, const char *member, struct steps *steps)
{
    const struct origin *origin = &r->origins[projector];
    resolver_enter(r, origin->package);
    steps->root = (struct path){0};
    steps->group = path_member(&steps->root, "projectors");
    steps->projector = path_name(&steps->group, origin->projector->name);
    if (!member)
        return &steps->projector;
    steps->member = path_member(&steps->projector, member);
    return &steps->member;
}

/* Two become one; the earlier projector stands for both. */
static void unite(struct resolver *r, struct grouping *g, size_t a, size_t b)
{
    a = group_of(g, a);
    b = group_of(g, b);
    if (a == b)
        return;
    struct steps steps;
    size_t early = a < b ? a : b, late = a < b ? b : a;
    if (g->names[early].size && g->names[late].size && !bytes_equal(g->names[early], g->names[late]))
        verdict_refuse(&r->v, path_to(r, late, "lane", &steps),
                       "it is bound to lane %.*s by what its projectors have in common", TEXT(g->names[early]));
    if (!g->names[early].size)
        g->names[early] = g->names[late];
    g->first[late] = early;
}

static enum named_filler filler_was(const struct resolver *r, const struct schema_type *entity)
{
    return schema_name_by_id(&r->out->schema, entity->id)->filler;
}

static void unite_by_entity(struct resolver *r, struct grouping *g, size_t projector)
{
    struct steps steps;
    const struct schema_projector *p = &r->projectors[projector];
    for (size_t i = 0; i < p->write_count && r->v.status == PAWL_OK; i++) {
        const struct schema_type *entity = p->writes[i];
        size_t *filler = &g->filler[entity - r->types];
        if (*filler == 0)
            *filler = projector + 1;
        const struct schema_projector *other = &r->projectors[*filler - 1];
        if (other->sync != p->sync)
            verdict_refuse(
                &r->v, path_to(r, projector, p->handler ? "writes" : "do", &steps),
                "%.*s is filled by %.*s too, and only one of them is synchronous: an entity is filled by "
                "synchronous projectors, or by one lane",
                TEXT(entity->name), TEXT(other->name));
        else if (filler_was(r, entity) == (p->sync ? FILLED_BY_LANE : FILLED_SYNC))
            verdict_refuse(&r->v, path_to(r, projector, p->handler ? "writes" : "do", &steps),
                           "%.*s was filled by %s before, and stays so", TEXT(entity->name),
                           p->sync ? "a lane" : "synchronous projectors");
        else if (!p->sync)
            unite(r, g, *filler - 1, projector);
    }
}

/* L2. After all entities that are filled were seen. */
static void unite_by_reads(struct resolver *r, struct grouping *g, size_t projector)
{
    struct steps steps;
    const struct schema_projector *p = &r->projectors[projector];
    for (size_t i = 0; i < p->read_count && r->v.status == PAWL_OK; i++) {
        size_t filler = g->filler[p->reads[i] - r->types];
        if (filler == 0 || r->projectors[filler - 1].sync)
            verdict_refuse(&r->v, path_to(r, projector, "reads", &steps),
                           "no lane fills %.*s: what a handler reads is filled by its own lane",
                           TEXT(p->reads[i]->name));
        else
            unite(r, g, filler - 1, projector);
    }
}

static void unite_by_name(struct resolver *r, struct grouping *g, size_t projector)
{
    const struct origin *origin = &r->origins[projector];
    pawl_bytes package = origin->package->package, lane = origin->projector->lane;
    if (lane.size == 0)
        return;
    size_t size = package.size + 1 + lane.size;
    char *name = resolver_take(r, size, 1);
    if (!name)
        return;
    memcpy(name, package.data, package.size);
    name[package.size] = '.';
    memcpy(name + package.size + 1, lane.data, lane.size);
    g->names[projector] = (pawl_bytes){name, size};
    for (size_t i = 0; i < projector; i++)
        if (bytes_equal(g->names[i], g->names[projector])) {
            unite(r, g, i, projector);
            return;
        }
}

static void fold_number(struct hash128 *digest, uint64_t number)
{
    uint8_t bytes[8];
    put_u64(bytes, number);
    hash_chain(digest, (pawl_bytes){bytes, sizeof bytes});
}

static void fold_pairs(struct hash128 *digest, const struct schema_type *entity,
                       const struct definition_pair *pairs, size_t count)
{
    fold_number(digest, count);
    for (size_t i = 0; i < count; i++) {
        fold_number(digest, (uint64_t)schema_field_place(entity, pairs[i].name));
        hash_chain(digest, pairs[i].text);
    }
}

static void fold_entities(struct hash128 *digest, const struct schema_type *const *entities, size_t count)
{
    fold_number(digest, count);
    for (size_t i = 0; i < count; i++)
        fold_number(digest, entities[i]->id);
}

static void fold_projector(struct hash128 *digest, const struct schema_projector *p,
                           const struct definition_projector *from)
{
    fold_number(digest, p->id);
    fold_number(digest, p->on_count);
    for (size_t i = 0; i < p->on_count; i++)
        fold_number(digest, p->on[i]);
    fold_number(digest, p->action_count);
    for (size_t i = 0; i < p->action_count; i++) {
        const struct schema_type *entity = p->actions[i].entity;
        fold_number(digest, p->actions[i].kind);
        fold_number(digest, entity->id);
        fold_pairs(digest, entity, from->actions[i].key, from->actions[i].key_count);
        fold_pairs(digest, entity, from->actions[i].sets, from->actions[i].set_count);
        hash_chain(digest, from->actions[i].where);
    }
    if (p->handler) {
        fold_entities(digest, p->writes, p->write_count);
        fold_entities(digest, p->reads, p->read_count);
    }
}

/* The lane of this name: known, or a new one. NULL, and a complaint, if it has projectors already or there can
 * be no more. */
static struct known_lane *claim_lane(struct resolver *r, size_t group, pawl_bytes name)
{
    struct steps steps;
    struct known_lane *lanes = r->out->lanes;
    for (size_t i = 0; i < r->out->lane_count; i++) {
        if (!bytes_equal(lanes[i].lane.name, name))
            continue;
        if (lanes[i].present) {
            verdict_refuse(&r->v, path_to(r, group, "lane", &steps), "%.*s is the name of another lane already",
                           TEXT(name));
            return NULL;
        }
        return &lanes[i];
    }
    if (r->out->lane_count == LANES_MAX) {
        verdict_fail(&r->v, PAWL_EEXHAUSTED);
        return NULL;
    }
    struct known_lane *lane = &lanes[r->out->lane_count++];
    lane->lane = (struct schema_lane){.id = (uint16_t)r->out->lane_count, .name = name};
    return lane;
}

/* What must be known of a lane's projectors to decide whether it gets a new generation. */
struct summary {
    struct hash128 digest;
    uint32_t generation; /* the highest that any of its entities had, in whichever lane */
    bool served;         /* one of them has rows that are read */
};

static struct summary enter_group(struct resolver *r, const struct grouping *g, size_t group, uint16_t lane)
{
    struct summary sum = {.generation = 0};
    for (size_t i = group; i < r->out->schema.projector_count; i++) {
        struct schema_projector *p = &r->projectors[i];
        if (p->sync || group_of(g, i) != group)
            continue;
        p->lane = lane;
        fold_projector(&sum.digest, p, r->origins[i].projector);
        for (size_t k = 0; k < p->write_count; k++) {
            const struct schema_name *entity = schema_name_by_id(&r->out->schema, p->writes[k]->id);
            r->types[p->writes[k] - r->types].lane = lane;
            sum.served = sum.served || entity->serving;
            if (entity->generation > sum.generation)
                sum.generation = entity->generation;
        }
    }
    return sum;
}

/* S5 of schema.h. */
static void begin_generation(struct resolver *r, size_t group, const struct summary *sum,
                             struct schema_lane *lane)
{
    struct steps steps;
    bool first = lane->generation == 0;
    uint32_t highest = lane->generation > sum->generation ? lane->generation : sum->generation;
    if (highest + 1 >= SCHEMA_GENERATIONS)
        verdict_refuse(&r->v, path_to(r, group, NULL, &steps), "lane %.*s has had all of its %u generations",
                       TEXT(lane->name), SCHEMA_GENERATIONS - 1);
    lane->generation = highest + 1;
    lane->born = r->source->position;
    if (first && !sum->served) {
        lane->serving = lane->generation;
        lane->serving_born = lane->born;
        lane->serving_last = UINT64_MAX;
    }
}

static void settle_group(struct resolver *r, const struct grouping *g, size_t group)
{
    pawl_bytes name = g->names[group].size ? g->names[group] : r->projectors[group].name;
    struct known_lane *known = claim_lane(r, group, name);
    if (!known)
        return;
    struct summary sum = enter_group(r, g, group, known->lane.id);
    const struct known_lane *before =
        known->lane.id <= r->source->lane_count ? &r->source->lanes[known->lane.id - 1] : NULL;
    bool rebuild = known->lane.id == r->source->rebuild;
    if (before && before->present && !rebuild && before->digest.low == sum.digest.low
        && before->digest.high == sum.digest.high)
        known->lane = before->lane; /* L3 */
    else
        begin_generation(r, group, &sum, &known->lane);
    known->digest = sum.digest;
    known->present = true;
}

/* A lane as it is for those who come after it: whatever of it is not there again has ended before this schema.
 */
static struct known_lane ended(const struct known_lane *lane, uint64_t before)
{
    struct known_lane end = *lane;
    end.present = false;
    if (end.lane.serving_last == UINT64_MAX)
        end.lane.serving_last = before;
    return end;
}

static void list_lanes(struct resolver *r)
{
    struct schema_lane *lanes = resolver_take(r, r->out->lane_count, sizeof *lanes);
    size_t used = 0;
    for (size_t i = 0; i < r->out->lane_count && lanes; i++)
        if (r->out->lanes[i].present)
            lanes[used++] = r->out->lanes[i].lane;
    r->out->schema.lanes = lanes;
    r->out->schema.lane_count = used;
}

void resolve_lanes(struct resolver *r)
{
    size_t count = r->out->schema.projector_count, known = r->source->lane_count;
    struct grouping g = {
        .first = resolver_take(r, count, sizeof *g.first),
        .filler = resolver_take(r, r->out->schema.type_count, sizeof *g.filler),
        .names = resolver_take(r, count, sizeof *g.names),
    };
    r->out->lanes = resolver_take(r, known + count, sizeof *r->out->lanes);
    if (!g.first || !g.filler || !g.names || !r->out->lanes)
        return;
    for (size_t i = 0; i < known; i++)
        r->out->lanes[i] = ended(&r->source->lanes[i], r->source->before);
    r->out->lane_count = known;

    for (size_t i = 0; i < count && r->v.status == PAWL_OK; i++) {
        g.first[i] = i;
        unite_by_name(r, &g, i);
        unite_by_entity(r, &g, i);
    }
    for (size_t i = 0; i < count && r->v.status == PAWL_OK; i++)
        unite_by_reads(r, &g, i);
    for (size_t i = 0; i < count && r->v.status == PAWL_OK; i++)
        if (!r->projectors[i].sync && g.first[i] == i)
            settle_group(r, &g, i);
    if (r->v.status == PAWL_OK)
        list_lanes(r);
}
