/* What the tests of unique views share: a partition of items, each with a code; and commands about them.
 *
 *     p.codes    no two items of a workspace have the same code
 *     p.live     no two active items of a workspace have the same rank */
#ifndef TEST_LIB_CODES_H
#define TEST_LIB_CODES_H

#include "test/lib/ask.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

#define CODES_PACKAGE                                                                                          \
    "{'schema': 1, 'package': 'p', 'workspaces': {'w': {'sequences': {'no': {'first': 1}}}},"                  \
    " 'types': {'Item': {'kind': 'CDoc', 'fields': {'code': {'type': 'string'}, 'rank': {'type': 'int64'}}},"  \
    "           'Note': {'kind': 'WDoc', 'fields': {'text': {'type': 'string'},"                               \
    "                    'no': {'type': 'int64', 'sequence': 'no'}}}},"                                        \
    " 'commands': {'Put': {'records': ['Item', 'Note']}}, 'views': {"
#define CODES_CODES "'codes': {'base': 'Item', 'key': ['code'], 'unique': true}"
#define CODES_LIVE  "'live': {'base': 'Item', 'key': ['rank'], 'unique': true, 'filter': 'active'}"

static const char codes_schema[] = CODES_PACKAGE CODES_CODES ", " CODES_LIVE "}}";
static const char codes_without[] = CODES_PACKAGE "}}";

static inline void codes_open(struct partition *p, const char *schema)
{
    partition_open(p, 1);
    partition_apply(p, schema);
    p->with_views = true;
    p->options.workspaces_max = p->options.windows_max = 8;
}

static inline void codes_create(struct partition *p, uint64_t wsid)
{
    struct ask ask;
    ask_create(&ask, p, wsid, "p.w");
    assert_ok(ask_and_wait(&ask));
    ask_release(&ask);
}

/* A command with no object yet. */
static inline void codes_ask(struct ask *ask, struct partition *p, uint64_t wsid)
{
    ask_init(ask, p, wsid, "p.Put");
}

/* One object more: a new item (id is raw) or one that is there. code NULL: null; "": as it is. */
static inline void codes_item(struct ask *ask, uint64_t id, const char *code)
{
    ask_record(ask, id, "p.Item");
    if (!code)
        ask_null(ask, "code");
    else if (*code)
        ask_text(ask, "code", code);
}

static inline void codes_active(struct ask *ask, bool active)
{
    ask->request.objects[ask->request.object_count - 1].active = active ? ACTIVE_YES : ACTIVE_NO;
}

/* A command about one item. */
static inline void codes_put(struct ask *ask, struct partition *p, uint64_t wsid, uint64_t id, const char *code)
{
    codes_ask(ask, p, wsid);
    codes_item(ask, id, code);
}

#endif
