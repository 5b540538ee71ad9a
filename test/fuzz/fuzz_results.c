/* fuzz_results.c: any text is refused with a place, or becomes calls that make sense: each field is one of the
 * write's entity, and of the type that the call is for; the fields of a key come first. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/schema/text.h"
#include "engine/json/results.h"
#include "test/lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

struct pawl_results {
    const struct schema *schema;
    const struct schema_type *entity;
    bool set; /* a field outside the key */
    pawl_error error;
};

static int begin(pawl_results *r, const char *entity)
{
    r->entity = schema_type_by_name(r->schema, (pawl_bytes){entity, strlen(entity)});
    r->set = false;
    require(r->entity && r->entity->kind == TYPE_ENTITY);
    return PAWL_OK;
}

int pawl_results_upsert(pawl_results *r, const char *entity)
{
    return begin(r, entity);
}

int pawl_results_update(pawl_results *r, const char *entity, const char *where)
{
    return begin(r, entity);
}

int pawl_results_delete(pawl_results *r, const char *entity, const char *where)
{
    return begin(r, entity);
}

/* VALUE_NULL: any type will do. */
static int set(pawl_results *r, const char *field, enum value_type type)
{
    int place = schema_field_place(r->entity, (pawl_bytes){field, strlen(field)});
    bool in_key = false;
    require(place >= 0 && (type == VALUE_NULL || r->entity->fields[place].type == type));
    for (size_t i = 0; i < r->entity->key_count; i++)
        in_key = in_key || r->entity->key[i] == place;
    require(!in_key || (!r->set && type != VALUE_NULL));
    r->set = r->set || !in_key;
    return PAWL_OK;
}

int pawl_results_set_int64(pawl_results *r, const char *field, int64_t value)
{
    return set(r, field, VALUE_INT64);
}

int pawl_results_set_float64(pawl_results *r, const char *field, double value)
{
    require(isfinite(value));
    return set(r, field, VALUE_FLOAT64);
}

int pawl_results_set_bool(pawl_results *r, const char *field, bool value)
{
    return set(r, field, VALUE_BOOL);
}

int pawl_results_set_text(pawl_results *r, const char *field, pawl_bytes value)
{
    require(text_is_utf8(value));
    return set(r, field, VALUE_STRING);
}

int pawl_results_set_bytes(pawl_results *r, const char *field, pawl_bytes value)
{
    return set(r, field, VALUE_BYTES);
}

int pawl_results_set_time(pawl_results *r, const char *field, pawl_wall value)
{
    return set(r, field, VALUE_TIMESTAMP);
}

int pawl_results_set_name(pawl_results *r, const char *field, const char *qname)
{
    require(schema_name_id(r->schema, (pawl_bytes){qname, strlen(qname)}) != 0);
    return set(r, field, VALUE_QNAME);
}

int pawl_results_set_ref(pawl_results *r, const char *field, uint64_t id)
{
    require(id > 0 && id < UINT64_C(1) << 53);
    return set(r, field, VALUE_REF);
}

int pawl_results_set_null(pawl_results *r, const char *field)
{
    return set(r, field, VALUE_NULL);
}

int pawl_results_set_expr(pawl_results *r, const char *field, const char *expression)
{
    return set(r, field, VALUE_NULL);
}

const struct schema *results_schema(pawl_results *r)
{
    return r->schema;
}

const struct schema_type *results_entity(pawl_results *r)
{
    return r->entity;
}

const pawl_error *results_error(pawl_results *r)
{
    return &r->error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct json_bed bed;
    if (!bed.group0)
        json_bed_open(&bed, NULL);
    pawl_results results = {.schema = bed.schema};
    pawl_error error = {0};
    int status = json_results_read((const char *)data, size, &results, &error);
    require(error.code == status);
    require(status == PAWL_OK || strncmp(error.text, "line ", 5) == 0 || error.text[0] == '$');
    return 0;
}
