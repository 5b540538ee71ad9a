#include "test/lib/schema.h"

#include <stdlib.h>
#include <string.h>

const char schema_shop[] =
    "{ 'schema': 1, 'package': 'shop',\n"
    "  'workspaces': { 'tenant': { 'sequences': { 'invoice': {'first': 1},"
    "                                             'order': {'first': 1000, 'end': 999999999} } } },\n"
    "  'types': {\n"
    "    'Customer':  { 'kind': 'CDoc', 'fields': { 'name': {'type': 'string', 'required': true},"
    "                                               'tier': {'type': 'string'} } },\n"
    "    'Order':     { 'kind': 'ODoc', 'fields': { 'customer': {'type': 'ref', 'to': 'Customer'},"
    "                                               'number': {'type': 'int64', 'sequence': 'order'} },\n"
    "                   'children': { 'lines': 'OrderLine' } },\n"
    "    'OrderLine': { 'kind': 'ORecord', 'fields': { 'sku': {'type': 'string'}, 'qty': {'type': 'int64'},"
    "                                                  'cents': {'type': 'int64'} } },\n"
    "    'Invoice':   { 'kind': 'WDoc', 'fields': { 'number': {'type': 'int64', 'sequence': 'invoice'},"
    "                                               'order': {'type': 'ref', 'to': 'Order'},"
    "                                               'cents': {'type': 'int64'} } } },\n"
    "  'commands': { 'PlaceOrder': { 'argument': 'Order', 'records': ['Invoice'] },"
    "                'AddCustomer': { 'records': ['Customer'] } },\n"
    "  'entities': { 'CustomerTotal': { 'key': ['customer'], 'fields': { 'customer': {'type': 'ref', 'to': "
    "'Customer'},"
    "                                                                    'orders': {'type': 'int64'} } } },\n"
    "  'projectors': { 'totals': { 'on': ['PlaceOrder'], 'do': [ { 'upsert': 'CustomerTotal',"
    "                  'key': { 'customer': '$event.argument.customer' },"
    "                  'set': { 'orders': 'coalesce(orders, 0) + 1' } } ] } },\n"
    "  'views': { 'invoices_by_number': { 'base': 'Invoice', 'key': ['number'], 'include': ['cents'] } } }\n";

int schema_command(const pawl_allocator *alloc, const char *text, struct arena *arena, pawl_bytes *ret_command,
                   pawl_error *error)
{
    char *json = strdup(text);
    if (!json)
        abort();
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
        else if (*at == '`')
            *at = '\'';
    struct definition definition;
    arena_init(arena, alloc, 4096);
    int status = schema_read((pawl_bytes){json, strlen(json)}, arena, &definition, error);
    if (status == PAWL_OK)
        status = group0_schema_encode(&definition, arena, ret_command);
    free(json);
    return status;
}

int schema_check(struct group0 *group0, const char *text, enum group0_outcome *ret_outcome, pawl_error *error)
{
    struct arena arena;
    pawl_bytes command;
    int status = schema_command(NULL, text, &arena, &command, error);
    if (status == PAWL_OK)
        status = group0_check(group0, command, ret_outcome, error);
    arena_release(&arena);
    return status;
}

int schema_apply(struct group0 *group0, const char *text, enum group0_outcome *ret_outcome, pawl_error *error)
{
    struct arena arena;
    pawl_bytes command;
    int status = schema_command(NULL, text, &arena, &command, error);
    if (status == PAWL_OK)
        status = group0_apply(group0, group0_position(group0) + 1, command, ret_outcome, error);
    arena_release(&arena);
    return status;
}
