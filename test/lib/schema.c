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

const char schema_crm[] =
    "{'schema': 1, 'package': 'crm',"
    "'types': {'Note': {'kind': 'WDoc', 'fields': {'about': {'type': 'ref', 'to': 'shop.Customer'},"
    "                                              'number': {'type': 'int64', 'sequence': 'shop.invoice'}}},"
    "          'Config': {'kind': 'CDoc', 'singleton': true, 'children': {'parts': 'Part'}}, 'Part': {'kind': "
    "'CRecord'}},"
    "'commands': {'AddNote': {'argument': 'Note', 'records': ['shop.Customer', 'Config']}},"
    "'entities': {'Notes': {'key': ['about'], 'fields': {'about': {'type': 'ref'}, 'count': {'type': 'int64'},"
    "                                                    'last': {'type': 'timestamp'}, 'by': {'type': "
    "'string'},"
    "                                                    'cents': {'type': 'int64'}}},"
    "             'Letters': {'key': ['to'], 'fields': {'to': {'type': 'ref'}}},"
    "             'Stamps': {'key': ['on'], 'fields': {'on': {'type': 'int64'}}}},"
    "'projectors': {'count': {'on': ['AddNote'], 'sync': true, 'do': [{'upsert': 'Notes', 'key': {'about': "
    "'$event.argument.about'},"
    "                  'set': {'count': 'coalesce(count, 0) + 1', 'last': '$event.time', 'by': "
    "'$event.actor'}}]},"
    "               'bill': {'on': ['AddNote', 'shop.PlaceOrder'], 'sync': true, 'do': [{'update': 'Notes',"
    "                  'where': 'about = $event.records.shop.Invoice.order and count > 0 and by != `x`',"
    "                  'set': {'cents': '$event.records.shop.Invoice.cents'}}, {'delete': 'Notes', 'where': "
    "'count = 99'}]},"
    "               'mail': {'on': ['AddNote'], 'lane': 'post', 'writes': ['Letters', 'Stamps'], 'reads': "
    "['Stamps'], 'on_failure': 'void', 'max_attempts': 3, 'workers': 16}},"
    "'views': {'by_count': {'base': 'Notes', 'key': ['count', 'last'], 'filter': 'count > 1'}}}";

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
    arena_init(arena, alloc, 1);
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

int lane_rebuild(struct group0 *group0, uint16_t lane, enum group0_outcome *ret_outcome, pawl_error *error)
{
    struct arena arena;
    pawl_bytes command;
    arena_init(&arena, NULL, 64);
    int status = group0_rebuild_encode(lane, &arena, &command);
    if (status == PAWL_OK)
        status = group0_apply(group0, group0_position(group0) + 1, command, ret_outcome, error);
    arena_release(&arena);
    return status;
}

int lane_switch(struct group0 *group0, uint16_t lane, uint32_t generation, uint64_t offset,
                enum group0_outcome *ret_outcome, pawl_error *error)
{
    struct arena arena;
    pawl_bytes command;
    arena_init(&arena, NULL, 64);
    int status = group0_switch_encode(lane, generation, &offset, 1, &arena, &command);
    if (status == PAWL_OK)
        status = group0_apply(group0, group0_position(group0) + 1, command, ret_outcome, error);
    arena_release(&arena);
    return status;
}
