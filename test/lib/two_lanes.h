/* test/lib/two_lanes.h: a bed with two lanes and a projector of each sort, and one workspace, for tests made by
 * hand. */
#ifndef TEST_LIB_TWO_LANES_H
#define TEST_LIB_TWO_LANES_H

#include "test/lib/lane.h"
#include "test/lib/test.h"

/* In the schema's order: lanes, and in each its projectors. */
enum { MAIN, SIDE };
enum { ADD, SLOW, SWEEP, SHARE, TRY };
enum { WS = 7 };

static const char two_lanes[] =
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

static inline void open_lanes(struct lane_bed *b)
{
    lane_bed_open(b, two_lanes);
    lane_bed_boot(b);
}

static inline void close_lanes(struct lane_bed *b)
{
    lane_bed_halt(b);
    lane_bed_close(b);
}

static inline void acquire(struct attempt *a, struct lane_bed *b, uint32_t projection)
{
    assert_true(attempt_acquire(a, b, MAIN, projection, 0));
}

/* Of a row of t.Sum, as lane_bed_field. */
static inline int64_t x_of(struct lane_bed *b, int64_t k)
{
    return lane_bed_field(b, "t.Sum", WS, k, "x");
}

static inline int64_t y_of(struct lane_bed *b, int64_t k)
{
    return lane_bed_field(b, "t.Sum", WS, k, "y");
}

#endif
