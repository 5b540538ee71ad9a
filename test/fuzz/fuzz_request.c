/* fuzz_request.c: any text is refused with a place, or becomes a request that keeps its promises. The fields of
 * each of its objects, written as a row, shown as JSON and read again, are the same row. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/id.h"
#include "core/schema/row.h"
#include "core/schema/text.h"
#include "engine/json/show.h"
#include "test/lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_field(const struct schema *schema, const struct schema_type *type,
                        const struct request_field *field)
{
    const struct value *v = &field->value;
    require(field->place < type->field_count);
    require(v->type == VALUE_NULL || v->type == type->fields[field->place].type);
    require(v->type != VALUE_STRING || text_is_utf8(v->bytes));
    require(v->type != VALUE_QNAME || schema_name_text(schema, v->name).size > 0);
    require(v->type != VALUE_REF || (v->id > 0 && v->id < UINT64_C(1) << 53));
}

static pawl_bytes row_of(const struct request *r, const struct request_object *o,
                         const struct schema_type *type, struct arena *arena)
{
    static struct value values[SCHEMA_FIELDS_MAX];
    size_t size;
    memset(values, 0, type->field_count * sizeof values[0]);
    for (uint32_t i = 0; i < o->field_count; i++) {
        const struct request_field *f = &r->fields[o->field_first + i];
        require(values[f->place].type == VALUE_NULL);
        values[f->place] = f->value;
    }
    require(row_size(values, type->field_count, &size) == PAWL_OK);
    uint8_t *at = arena_take(arena, size);
    require(at != NULL);
    row_write(values, type->field_count, at);
    return (pawl_bytes){at, size};
}

static void check_row(const struct json_bed *bed, const struct schema_type *type, pawl_bytes row,
                      struct arena *arena)
{
    struct json_out out;
    struct request again;
    json_out_init(&out, NULL);
    out_open(&out, '{');
    out_key(&out, "command");
    out_text(&out, (pawl_bytes){"t.Put", 5});
    out_key(&out, "records");
    out_open(&out, '[');
    out_open(&out, '{');
    out_key(&out, "id");
    out_unsigned(&out, 1);
    out_key(&out, "type");
    out_text(&out, type->name);
    out_key(&out, "fields");
    require(json_row(&out, bed->schema, type, row, NULL) == PAWL_OK);
    out_close(&out, '}');
    out_close(&out, ']');
    out_close(&out, '}');
    require(out.status == PAWL_OK && text_is_utf8(json_out_text(&out)));
    require(json_request(json_out_text(&out), 7, bed->schema, arena, &again, NULL) == PAWL_OK);
    require(again.object_count == 1 && bytes_equal(row, row_of(&again, &again.objects[0], type, arena)));
    json_out_release(&out);
}

static void check_object(const struct json_bed *bed, const struct request *r, size_t i, struct arena *arena)
{
    const struct request_object *o = &r->objects[i];
    const struct schema_type *type = schema_type_by_id(bed->schema, o->type);
    char path[REQUEST_PATH_MAX];
    require(type && type->kind != TYPE_ENTITY);
    require(o->id > 0 && o->id < UINT64_C(1) << 53);
    require(strncmp(request_path(r, bed->schema, i, -1, path), "$.", 2) == 0);
    if (i < r->argument_count) {
        require((i == 0) == (o->parent == REQUEST_NO_PARENT) && (i == 0 || o->parent < i));
        require((i == 0) == (o->container == 0));
    } else
        require((o->parent_id != 0) == (o->container != 0));
    require(o->field_first + o->field_count <= r->field_count);
    for (uint32_t f = 0; f < o->field_count; f++)
        check_field(bed->schema, type, &r->fields[o->field_first + f]);
    check_row(bed, type, row_of(r, o, type, arena), arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct json_bed bed;
    static struct arena arena;
    pawl_error error = {0};
    struct request request;
    if (!bed.group0) {
        json_bed_open(&bed, NULL);
        arena_init(&arena, NULL, 1 << 16);
    }
    arena_reset(&bed.arena);
    int status = json_request((pawl_bytes){data, size}, 7, bed.schema, &bed.arena, &request, &error);
    require(error.code == status);
    require(status == PAWL_OK || strncmp(error.text, "line ", 5) == 0 || error.text[0] == '$');
    for (size_t i = 0; status == PAWL_OK && i < request.object_count; i++) {
        arena_reset(&arena);
        check_object(&bed, &request, i, &arena);
    }
    return 0;
}
