#include "test/lib/json.h"

#include <stdlib.h>
#include <string.h>

#include "test/lib/schema.h"

const char json_schema[] =
    "{ 'schema': 1, 'package': 't',"
    "  'workspaces': { 'tenant': { 'sequences': { 'invoice': {'first': 38}, 'order': {'first': 1007} } } },"
    "  'types': {"
    "    'Customer': { 'kind': 'CDoc', 'fields': { 'name': {'type': 'string', 'required': true},"
    "                                              'tier': {'type': 'string'} },"
    "                  'children': { 'addresses': 'Address' } },"
    "    'Address': { 'kind': 'CRecord', 'fields': { 'city': {'type': 'string'} } },"
    "    'Order': { 'kind': 'ODoc', 'fields': { 'customer': {'type': 'ref'},"
    "                                           'number': {'type': 'int64', 'sequence': 'order'} },"
    "               'children': { 'lines': 'Line', 'notes': 'Note' } },"
    "    'Line': { 'kind': 'ORecord', 'fields': { 'sku': {'type': 'string'}, 'qty': {'type': 'int64'},"
    "                                             'cents': {'type': 'int64'} },"
    "              'children': { 'notes': 'Note' } },"
    "    'Note': { 'kind': 'ORecord', 'fields': { 'said': {'type': 'string'} } },"
    "    'Invoice': { 'kind': 'WDoc', 'fields': { 'number': {'type': 'int64', 'sequence': 'invoice'},"
    "                                             'order': {'type': 'ref', 'to': 'Order'},"
    "                                             'cents': {'type': 'int64'} },"
    "                 'children': { 'parts': 'Part' } },"
    "    'Part': { 'kind': 'WRecord', 'fields': { 'qty': {'type': 'int64'} } },"
    "    'Every': { 'kind': 'WDoc', 'fields': { 'i': {'type': 'int64'}, 'f': {'type': 'float64'},"
    "                                           'b': {'type': 'bool'}, 's': {'type': 'string'},"
    "                                           'x': {'type': 'bytes'}, 't': {'type': 'timestamp'},"
    "                                           'q': {'type': 'qname'}, 'r': {'type': 'ref'} } },"
    "    'Box': { 'kind': 'WDoc', 'children': { 'parts': 'Part', 'bits': 'Bit' } },"
    "    'Crate': { 'kind': 'WDoc', 'children': { 'bits': 'Bit' } },"
    "    'Bit': { 'kind': 'WRecord', 'fields': { 'on': {'type': 'bool'} } },"
    "    'Pole': { 'kind': 'WDoc', 'children': { 'leaves': 'Leaf' } },"
    "    'Rod': { 'kind': 'WDoc', 'children': { 'twigs': 'Leaf' } },"
    "    'Leaf': { 'kind': 'WRecord' } },"
    "  'entities': { 'Total': { 'key': ['customer'], 'fields': { 'customer': {'type': 'ref'},"
    "                                                            'orders': {'type': 'int64'} } } },"
    "  'commands': { 'PlaceOrder': { 'argument': 'Order', 'records': ['Invoice'] },"
    "                'Put': { 'records': ['Every', 'Invoice', 'Customer', 'Box', 'Crate', 'Pole', 'Rod'] } } }";

void json_bed_open(struct json_bed *bed, const pawl_allocator *alloc)
{
    enum group0_outcome outcome;
    pawl_error error = {0};
    if (group0_new(NULL, &bed->group0) || schema_apply(bed->group0, json_schema, &outcome, &error))
        abort();
    bed->schema = group0_schema(bed->group0);
    arena_init(&bed->arena, alloc, 1024);
}

void json_bed_close(struct json_bed *bed)
{
    arena_release(&bed->arena);
    group0_free(bed->group0);
}

int json_bed_read(struct json_bed *bed, const char *text, struct request *ret_request, pawl_error *error)
{
    char *json = strdup(text);
    if (!json)
        abort();
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    int status =
        json_request((pawl_bytes){json, strlen(json)}, 7, bed->schema, &bed->arena, ret_request, error);
    free(json);
    return status;
}

const struct schema_type *json_bed_type(const struct json_bed *bed, const char *name)
{
    const struct schema_type *type = schema_type_by_name(bed->schema, (pawl_bytes){name, strlen(name)});
    if (!type)
        abort();
    return type;
}
