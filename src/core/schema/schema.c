/* core/schema/schema.c: looking things up in a schema. */
#include "core/schema/schema.h"

#include "base/bytes.h"

const char *named_kind_text(enum named_kind kind)
{
    static const char *const texts[] = {
        [NAMED_SYSTEM] = "the system's",   [NAMED_WORKSPACE] = "a workspace kind",
        [NAMED_SEQUENCE] = "a sequence",   [NAMED_TYPE] = "a type",
        [NAMED_ENTITY] = "an entity",      [NAMED_COMMAND] = "a command",
        [NAMED_PROJECTOR] = "a projector", [NAMED_VIEW] = "a view",
    };
    return texts[kind];
}

/* Of count items of this size, sorted by the ID that they begin with. */
static const void *by_id(const void *items, size_t count, size_t item_size, uint16_t id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const void *item = (const uint8_t *)items + middle * item_size;
        uint16_t there = *(const uint16_t *)item;
        if (there == id)
            return item;
        if (there < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

_Static_assert(offsetof(struct schema_workspace, id) == 0 && offsetof(struct schema_type, id) == 0
                   && offsetof(struct schema_command, id) == 0 && offsetof(struct schema_name, id) == 0
                   && offsetof(struct schema_lane, id) == 0 && offsetof(struct schema_sequence, id) == 0,
               "by_id finds the ID where the item begins");

const struct schema_workspace *schema_workspace_by_id(const struct schema *schema, uint16_t id)
{
    return by_id(schema->workspaces, schema->workspace_count, sizeof *schema->workspaces, id);
}

bool schema_has_sequence(const struct schema_workspace *kind, uint16_t sequence)
{
    return by_id(kind->sequences, kind->sequence_count, sizeof *kind->sequences, sequence) != NULL;
}

const struct schema_type *schema_type_by_id(const struct schema *schema, uint16_t id)
{
    return by_id(schema->types, schema->type_count, sizeof *schema->types, id);
}

const struct schema_command *schema_command_by_id(const struct schema *schema, uint16_t id)
{
    return by_id(schema->commands, schema->command_count, sizeof *schema->commands, id);
}

const struct schema_lane *schema_lane_by_id(const struct schema *schema, uint16_t id)
{
    return by_id(schema->lanes, schema->lane_count, sizeof *schema->lanes, id);
}

const struct schema_name *schema_name_by_id(const struct schema *schema, uint16_t id)
{
    return by_id(schema->names, schema->name_count, sizeof *schema->names, id);
}

int schema_name_order(pawl_bytes a, pawl_bytes b)
{
    return a.size != b.size ? (a.size < b.size ? -1 : 1) : bytes_compare(a, b);
}

const struct schema_name *schema_name_by_text(const struct schema *schema, pawl_bytes qname)
{
    size_t low = 0, high = schema->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct schema_name *name = &schema->names[schema->names_by_text[middle]];
        int order = schema_name_order(name->text, qname);
        if (order == 0)
            return name;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

uint16_t schema_name_id(const struct schema *schema, pawl_bytes qname)
{
    const struct schema_name *name = schema_name_by_text(schema, qname);
    return name ? name->id : 0;
}

pawl_bytes schema_name_text(const struct schema *schema, uint16_t id)
{
    const struct schema_name *name = schema_name_by_id(schema, id);
    return name ? name->text : (pawl_bytes){NULL, 0};
}

const struct schema_workspace *schema_workspace_by_name(const struct schema *schema, pawl_bytes qname)
{
    return schema_workspace_by_id(schema, schema_name_id(schema, qname));
}

const struct schema_type *schema_type_by_name(const struct schema *schema, pawl_bytes qname)
{
    return schema_type_by_id(schema, schema_name_id(schema, qname));
}

const struct schema_command *schema_command_by_name(const struct schema *schema, pawl_bytes qname)
{
    return schema_command_by_id(schema, schema_name_id(schema, qname));
}

const struct schema_projector *schema_projector_by_name(const struct schema *schema, pawl_bytes qname)
{
    for (size_t i = 0; i < schema->projector_count; i++)
        if (bytes_equal(schema->projectors[i].name, qname))
            return &schema->projectors[i];
    return NULL;
}

const struct schema_lane *schema_lane_by_name(const struct schema *schema, pawl_bytes qname)
{
    for (size_t i = 0; i < schema->lane_count; i++)
        if (bytes_equal(schema->lanes[i].name, qname))
            return &schema->lanes[i];
    return NULL;
}

uint32_t schema_serving_table(const struct schema *schema, const struct schema_type *entity)
{
    const struct schema_name *name = schema_name_by_id(schema, entity->id);
    return schema_table(entity, name->serving ? name->serving : name->generation);
}

int schema_field_place(const struct schema_type *type, pawl_bytes name)
{
    for (size_t i = 0; i < type->field_count; i++)
        if (bytes_equal(type->fields[i].name, name))
            return (int)i;
    return -1;
}

bool schema_in_key(const struct schema_type *entity, int place)
{
    for (size_t i = 0; i < entity->key_count; i++)
        if (entity->key[i] == place)
            return true;
    return false;
}

int schema_container_place(const struct schema_type *type, pawl_bytes name)
{
    for (size_t i = 0; i < type->container_count; i++)
        if (bytes_equal(type->containers[i].name, name))
            return (int)i;
    return -1;
}
