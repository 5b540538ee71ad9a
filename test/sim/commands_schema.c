/* The schemas that the random commands are of, and the same as the model has it. */
#include "test/sim/commands_model_impl.h"

#define TYPES                                                                                                  \
    "'Contact': {'kind': 'CRecord', 'fields': {'kind': {'type': 'string'}, 'good': {'type': 'bool'}},"         \
    "            'children': {'remarks': 'Remark'}},"                                                          \
    "'Remark': {'kind': 'CRecord', 'fields': {'text': {'type': 'string', 'required': true}}},"                 \
    "'Settings': {'kind': 'CDoc', 'singleton': true, 'fields': {'theme': {'type': 'string'},"                  \
    "             'ratio': {'type': 'float64'}, 'seen': {'type': 'timestamp'}}},"                              \
    "'Order': {'kind': 'ODoc', 'fields': {'customer': {'type': 'ref', 'to': 'Customer'},"                      \
    "          'number': {'type': 'int64', 'sequence': 'order'}}, 'children': {'lines': 'Line'}},"             \
    "'Line': {'kind': 'ORecord', 'fields': {'sku': {'type': 'string'}, 'qty': {'type': 'int64'},"              \
    "         'cents': {'type': 'int64'}, 'of': {'type': 'ref'}}, 'children': {'parts': 'Part'}},"             \
    "'Part': {'kind': 'ORecord', 'fields': {'n': {'type': 'int64'}, 'blob': {'type': 'bytes'}}},"              \
    "'Invoice': {'kind': 'WDoc', 'fields': {'number': {'type': 'int64', 'sequence': 'invoice'},"               \
    "            'order': {'type': 'ref', 'to': 'Order'}, 'cents': {'type': 'int64'}},"                        \
    "            'children': {'rows': 'Row'}},"                                                                \
    "'Row': {'kind': 'WRecord', 'fields': {'cents': {'type': 'int64'}, 'what': {'type': 'qname'}}},"           \
    "'Ticket': {'kind': 'WDoc', 'fields': {'number': {'type': 'int64', 'sequence': 'ticket'},"                 \
    "           'text': {'type': 'string'}}}"
#define COMMANDS                                                                                               \
    "'Place': {'argument': 'Order', 'records': ['Invoice']}, 'Keep': {'records': ['Customer', 'Settings']},"   \
    "'Bill': {'records': ['Invoice', 'Ticket']}, 'Book': {'argument': 'Ticket', 'records': ['Customer']},"     \
    "'Setup': {'argument': 'Settings'}, 'Wipe': {}"
#define PROJECTORS                                                                                             \
    "'entities': {'Total': {'key': ['customer'], 'fields': {'customer': {'type': 'ref'},"                      \
    "             'orders': {'type': 'int64'}, 'cents': {'type': 'int64'}, 'label': {'type': 'string'}}}},"    \
    "'projectors': {"                                                                                          \
    "  'totals': {'on': ['Place'], 'sync': true, 'do': ["                                                      \
    "    {'upsert': 'Total', 'key': {'customer': '$event.argument.customer'},"                                 \
    "     'set': {'orders': 'coalesce(orders, 0) + 1',"                                                        \
    "             'cents': 'coalesce(cents, 0) + coalesce($event.records.sim.Invoice.cents, 0)'}},"            \
    "    {'upsert': 'Total', 'key': {'customer': '$event.argument.customer'}, 'set': {'orders': 'orders + "    \
    "10'}}]},"                                                                                                 \
    "  'sweep': {'on': ['Bill'], 'sync': true, 'do': ["                                                        \
    "    {'update': 'Total', 'where': 'cents > $event.records.sim.Invoice.cents',"                             \
    "     'set': {'cents': 'cents - $event.records.sim.Invoice.cents', 'label': '$event.actor'}},"             \
    "    {'delete': 'Total', 'where': 'orders > 60'}]},"                                                       \
    "  'wipe': {'on': ['Wipe'], 'sync': true, 'do': [{'delete': 'Total'}]}}}"
#define CUSTOMER                                                                                               \
    "'name': {'type': 'string', 'required': true}, 'tier': {'type': 'string'}, 'points': {'type': 'int64'},"   \
    "'boss': {'type': 'ref', 'to': 'Customer'}"
#define TENANT "'invoice': {'first': 1}, 'order': {'first': 1000, 'end': 999999999}"

const char *const model_schemas[MODEL_SCHEMAS] = {
    "{'schema': 1, 'package': 'sim', 'workspaces': {'tenant': {'sequences': {" TENANT "}},"
    "               'branch': {'sequences': {'ticket': {'first': 7, 'end': 120}}}},"
    "'types': {'Customer': {'kind': 'CDoc', 'fields': {" CUSTOMER
    "}, 'children': {'contacts': 'Contact'}}, " TYPES "}, 'commands': {" COMMANDS "}, " PROJECTORS,
    /* a field, a type, a command, a sequence more */
    "{'schema': 1, 'package': 'sim', 'workspaces': {'tenant': {'sequences': {" TENANT
    ", 'memo': {'first': 5}}},"
    "               'branch': {'sequences': {'ticket': {'first': 7, 'end': 120}}}},"
    "'types': {'Customer': {'kind': 'CDoc', 'fields': {" CUSTOMER ", 'note': {'type': 'string'}},"
    "          'children': {'contacts': 'Contact'}}, " TYPES ","
    "          'Memo': {'kind': 'WDoc', 'fields': {'number': {'type': 'int64', 'sequence': 'memo'},"
    "                   'text': {'type': 'string'}}}},"
    "'commands': {" COMMANDS ", 'Note': {'records': ['Memo', 'Customer']}}, " PROJECTORS,
    /* a kind more */
    "{'schema': 1, 'package': 'sim', 'workspaces': {'tenant': {'sequences': {" TENANT
    ", 'memo': {'first': 5}}},"
    "               'branch': {'sequences': {'ticket': {'first': 7, 'end': 120}}}, 'depot': {}},"
    "'types': {'Customer': {'kind': 'CDoc', 'fields': {" CUSTOMER ", 'note': {'type': 'string'}},"
    "          'children': {'contacts': 'Contact'}}, " TYPES ","
    "          'Memo': {'kind': 'WDoc', 'fields': {'number': {'type': 'int64', 'sequence': 'memo'},"
    "                   'text': {'type': 'string'}}}},"
    "'commands': {" COMMANDS ", 'Note': {'records': ['Memo', 'Customer']}}, " PROJECTORS,
};

#define F(t)                                                                                                   \
    {                                                                                                          \
        VALUE_##t, false, M_SEQ_NONE, -1                                                                       \
    }
#define NEED(t)                                                                                                \
    {                                                                                                          \
        VALUE_##t, true, M_SEQ_NONE, -1                                                                        \
    }
#define NUMBER(s)                                                                                              \
    {                                                                                                          \
        VALUE_INT64, false, M_SEQ_##s, -1                                                                      \
    }
#define REF(to)                                                                                                \
    {                                                                                                          \
        VALUE_REF, false, M_SEQ_NONE, to                                                                       \
    }

const struct model_type_info model_types[MODEL_TYPES] = {
    [M_CUSTOMER] = {"sim.Customer",
                    true,
                    true,
                    false,
                    false,
                    M_CONTACT,
                    5,
                    {NEED(STRING), F(STRING), F(INT64), REF(M_CUSTOMER), F(STRING)}},
    [M_CONTACT] = {"sim.Contact", true, true, true, false, M_REMARK, 2, {F(STRING), F(BOOL)}},
    [M_REMARK] = {"sim.Remark", true, true, true, false, -1, 1, {NEED(STRING)}},
    [M_SETTINGS] = {"sim.Settings", true, true, false, true, -1, 3, {F(STRING), F(FLOAT64), F(TIMESTAMP)}},
    [M_ORDER] = {"sim.Order", false, false, false, false, M_LINE, 2, {REF(M_CUSTOMER), NUMBER(ORDER)}},
    [M_LINE] = {"sim.Line", false, false, true, false, M_PART, 4, {F(STRING), F(INT64), F(INT64), F(REF)}},
    [M_PART] = {"sim.Part", false, false, true, false, -1, 2, {F(INT64), F(BYTES)}},
    [M_INVOICE] =
        {"sim.Invoice", true, false, false, false, M_ROW, 3, {NUMBER(INVOICE), REF(M_ORDER), F(INT64)}},
    [M_ROW] = {"sim.Row", true, false, true, false, -1, 2, {F(INT64), F(QNAME)}},
    [M_TICKET] = {"sim.Ticket", true, false, false, false, -1, 2, {NUMBER(TICKET), F(STRING)}},
    [M_MEMO] = {"sim.Memo", true, false, false, false, -1, 2, {NUMBER(MEMO), F(STRING)}},
};

const struct model_command_info model_commands[MODEL_COMMANDS] = {
    [M_PLACE] = {"sim.Place", M_ORDER, {M_INVOICE, -1}}, [M_KEEP] = {"sim.Keep", -1, {M_CUSTOMER, M_SETTINGS}},
    [M_BILL] = {"sim.Bill", -1, {M_INVOICE, M_TICKET}},  [M_BOOK] = {"sim.Book", M_TICKET, {M_CUSTOMER, -1}},
    [M_SETUP] = {"sim.Setup", M_SETTINGS, {-1, -1}},     [M_WIPE] = {"sim.Wipe", -1, {-1, -1}},
    [M_NOTE] = {"sim.Note", -1, {M_MEMO, M_CUSTOMER}},
};

const struct model_kind_info model_kinds[MODEL_KINDS] = {
    [M_TENANT] = {"sim.tenant", {[M_SEQ_ORDER] = true, [M_SEQ_INVOICE] = true, [M_SEQ_MEMO] = true}},
    [M_BRANCH] = {"sim.branch", {[M_SEQ_TICKET] = true}},
    [M_DEPOT] = {"sim.depot", {false}},
};

const struct model_sequence_info model_sequences[MODEL_SEQUENCES] = {
    [M_SEQ_ORDER] = {"sim.order", 1000, 999999999},
    [M_SEQ_INVOICE] = {"sim.invoice", 1, 0},
    [M_SEQ_TICKET] = {"sim.ticket", 7, 120},
    [M_SEQ_MEMO] = {"sim.memo", 5, 0}};

const char *const model_containers[MODEL_TYPES] = {[M_CUSTOMER] = "contacts",
                                                   [M_CONTACT] = "remarks",
                                                   [M_ORDER] = "lines",
                                                   [M_LINE] = "parts",
                                                   [M_INVOICE] = "rows"};
