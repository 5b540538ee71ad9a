/* test/lib/lane_schema.h: two lanes with a projector of each sort, for tests made by hand. */
#ifndef TEST_LIB_LANE_SCHEMA_H
#define TEST_LIB_LANE_SCHEMA_H

/* In the schema's order: lanes, and in each its projectors. */
enum { MAIN, SIDE };
enum { ADD, SLOW, SWEEP, SHARE, TRY };

static const char lane_schema[] =
    "{'schema': 1, 'package': 't', 'workspaces': {'w': {}},"
    "'types': {'Arg': {'kind': 'ODoc', 'fields': {'k': {'type': 'int64'}, 'by': {'type': 'int64'}}}},"
    "'commands': {'Add': {'argument': 'Arg'}, 'Slow': {'argument': 'Arg'}, 'Both': {'argument': 'Arg'},"
    "             'Sweep': {'argument': 'Arg'}, 'Share': {'argument': 'Arg'}, 'Try': {'argument': 'Arg'},"
    "             'Aside': {'argument': 'Arg'}, 'Nothing': {'argument': 'Arg'}},"
    "'entities': {'Sum': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'x': {'type': 'int64'},"
    "                                              'y': {'type': 'int64'}}},"
    "             'Other': {'key': ['k'], 'fields': {'k': {'type': 'int64'}, 'x': {'type': 'int64'}}}},"
    "'projectors': {"
    "  'add': {'lane': 'main', 'on': ['Add', 'Both'], 'do': [{'upsert': 'Sum',"
    "    'key': {'k': '$event.argument.k'}, 'set': {'x': 'coalesce(x, 0) + $event.argument.by'}}]},"
    "  'slow': {'lane': 'main', 'on': ['Slow', 'Both'], 'writes': ['Sum'], 'max_attempts': 2},"
    "  'sweep': {'lane': 'main', 'on': ['Sweep'], 'do': [{'update': 'Sum',"
    "    'where': 'x > $event.argument.by', 'set': {'y': 'x'}}]},"
    "  'share': {'lane': 'main', 'on': ['Share'], 'on_failure': 'void', 'do': [{'update': 'Sum',"
    "    'where': 'k = $event.argument.k', 'set': {'y': '100 / x'}}]},"
    "  'try': {'lane': 'main', 'on': ['Try'], 'writes': ['Sum'], 'on_failure': 'void', 'max_attempts': 2},"
    "  'aside': {'lane': 'side', 'on': ['Aside'], 'do': [{'upsert': 'Other',"
    "    'key': {'k': '$event.argument.k'}, 'set': {'x': 'coalesce(x, 0) + 1'}}]}}}";

#endif
