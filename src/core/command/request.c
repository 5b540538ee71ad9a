#include "core/command/request.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

void request_init(struct request *request, struct arena *memory)
{
    *request = (struct request){.memory = memory};
}

/* Room for one more element in an array that lies in an arena. When the array grows, the old copy stays unused
 * in the arena. */
static void *grow(struct arena *memory, void *array, size_t count, size_t size, size_t *room)
{
    if (count < *room)
        return array;
    size_t more = *room ? *room * 2 : 8;
    void *bigger = arena_take(memory, more * size);
    if (!bigger)
        return NULL;
    if (count)
        memcpy(bigger, array, count * size);
    *room = more;
    return bigger;
}

static int add_object(struct request *r, struct request_object object)
{
    if (r->object_count == REQUEST_OBJECTS_MAX)
        return PAWL_ETOOBIG;
    void *objects = grow(r->memory, r->objects, r->object_count, sizeof r->objects[0], &r->object_room);
    if (!objects)
        return PAWL_ENOMEM;
    r->objects = objects;
    object.field_first = (uint32_t)r->field_count;
    r->objects[r->object_count++] = object;
    return PAWL_OK;
}

int request_add_argument(struct request *r, uint64_t id, uint16_t type, uint32_t parent, uint16_t container)
{
    assert(r->argument_count == r->object_count);
    assert(parent == REQUEST_NO_PARENT || parent < r->object_count);
    int status = add_object(
        r, (struct request_object){.id = id, .type = type, .parent = parent, .container = container});
    if (status == PAWL_OK)
        r->argument_count++;
    return status;
}

int request_add_record(struct request *r, uint64_t id, uint16_t type)
{
    return add_object(r, (struct request_object){.id = id, .type = type, .parent = REQUEST_NO_PARENT});
}

int request_set(struct request *r, uint16_t place, struct value value)
{
    assert(r->object_count > 0);
    struct request_object *object = &r->objects[r->object_count - 1];
    for (uint32_t i = 0; i < object->field_count; i++)
        if (r->fields[object->field_first + i].place == place)
            return PAWL_EEXISTS;
    void *fields = grow(r->memory, r->fields, r->field_count, sizeof r->fields[0], &r->field_room);
    if (!fields)
        return PAWL_ENOMEM;
    r->fields = fields;
    if (value.type == VALUE_STRING || value.type == VALUE_BYTES) {
        value.bytes = arena_copy(r->memory, value.bytes);
        if (!value.bytes.data)
            return PAWL_ENOMEM;
    }
    r->fields[r->field_count++] = (struct request_field){.place = place, .value = value};
    object->field_count++;
    return PAWL_OK;
}

static uint64_t digest_number(uint64_t digest, uint64_t number)
{
    uint8_t bytes[8];
    put_u64(bytes, number);
    return hash_checksum(digest, (pawl_bytes){bytes, sizeof bytes});
}

static uint64_t digest_value(uint64_t digest, const struct value *value)
{
    digest = digest_number(digest, (uint64_t)value->type);
    switch (value->type) {
    case VALUE_NULL: return digest;
    case VALUE_INT64:
    case VALUE_TIMESTAMP: return digest_number(digest, (uint64_t)value->integer);
    case VALUE_FLOAT64: {
        uint64_t bits;
        memcpy(&bits, &value->real, sizeof bits);
        return digest_number(digest, bits);
    }
    case VALUE_BOOL: return digest_number(digest, value->boolean);
    case VALUE_STRING:
    case VALUE_BYTES: return hash_checksum(digest, value->bytes);
    case VALUE_QNAME: return digest_number(digest, value->name);
    case VALUE_REF: return digest_number(digest, value->id);
    }
    return digest;
}

/* A sum, so that the order of the fields does not matter. */
static uint64_t digest_fields(uint64_t digest, const struct request *r, const struct request_object *o)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < o->field_count; i++) {
        const struct request_field *field = &r->fields[o->field_first + i];
        sum += digest_value(digest_number(digest, field->place), &field->value);
    }
    return digest_number(digest, sum);
}

uint64_t request_digest(const struct request *r)
{
    uint64_t digest = digest_number(r->wsid, (uint64_t)r->command << 16 | r->kind);
    digest = digest_number(digest, r->argument_count);
    for (size_t i = 0; i < r->object_count; i++) {
        const struct request_object *o = &r->objects[i];
        /* With a name, the place does not count: it depends on the schema and on who built the request. */
        uint64_t container = o->container_name.size ? 0 : o->container;
        digest = digest_number(digest, o->id);
        digest = digest_number(digest, (uint64_t)o->type << 48 | container << 32 | o->parent);
        if (o->container_name.size)
            digest = hash_checksum(digest, o->container_name);
        digest = digest_number(digest, o->parent_id);
        digest = digest_number(digest, (uint64_t)o->active << 32 | o->field_count);
        digest = digest_fields(digest, r, o);
    }
    return digest;
}

/* Text that grows to the end of its room and no further. */
struct path {
    char *text;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void path_add(struct path *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(path->text + path->size, REQUEST_PATH_MAX - path->size, format, arguments);
    va_end(arguments);
    assert(size >= 0);
    path->size += (size_t)size;
    if (path->size >= REQUEST_PATH_MAX)
        path->size = REQUEST_PATH_MAX - 1;
}

static size_t place_among_siblings(const struct request *r, size_t object)
{
    size_t place = 0;
    for (size_t i = 0; i < object; i++)
        place += r->objects[i].parent == r->objects[object].parent
                 && r->objects[i].container == r->objects[object].container;
    return place;
}

static void add_argument_path(const struct request *r, const struct schema *schema, size_t object,
                              struct path *path)
{
    size_t line[SCHEMA_DEPTH_MAX + 1], depth = 0;
    for (uint32_t at = (uint32_t)object;
         depth <= SCHEMA_DEPTH_MAX && r->objects[at].parent != REQUEST_NO_PARENT; at = r->objects[at].parent)
        line[depth++] = at;
    path_add(path, "$.argument");
    while (depth-- > 0) {
        const struct request_object *o = &r->objects[line[depth]];
        const struct schema_type *parent = schema_type_by_id(schema, r->objects[o->parent].type);
        if (parent && o->container >= 1 && o->container <= parent->container_count) {
            pawl_bytes name = parent->containers[o->container - 1].name;
            path_add(path, ".%.*s", (int)name.size, (const char *)name.data);
        }
        path_add(path, "[%zu]", place_among_siblings(r, line[depth]));
    }
}

char *request_path(const struct request *r, const struct schema *schema, size_t object, int place, char *text)
{
    struct path path = {.text = text};
    bool argument = object < r->argument_count;
    if (argument)
        add_argument_path(r, schema, object, &path);
    else
        path_add(&path, "$.records[%zu]", object - r->argument_count);
    const struct schema_type *type = schema_type_by_id(schema, r->objects[object].type);
    if (place >= 0 && type && (size_t)place < type->field_count) {
        pawl_bytes name = type->fields[place].name;
        path_add(&path, argument ? ".%.*s" : ".fields.%.*s", (int)name.size, (const char *)name.data);
    }
    return text;
}
