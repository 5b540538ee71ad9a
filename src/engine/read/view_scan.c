/* engine/read/view_scan.c: reads rows of a view in the order of their keys, on the caller's thread.
 *
 *     one workspace       one range of keys: from the lower bound to the upper one
 *     all workspaces      partition by partition, which is the order of tokens; where there are bounds, from
 *                         workspace to workspace, over what lies between their ranges
 *
 * Invariants
 *   V1  A snapshot shows at most ROWS_AT_ONCE rows; the next one goes on behind the last row that was shown, in
 *       whatever table the view has then.
 *   V2  Every row was read in a snapshot that has the view's state of that partition: the answer says what it
 *       covers. */
#include <pawl/pawl.h>

#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/id.h"
#include "core/view/view_state.h"
#include "engine/node/node.h"
#include "engine/read/read.h"
#include "engine/read/view_read.h"

#define ROWS_AT_ONCE 1000 /* in one snapshot, which must not live long; seeks count as rows */
#define KEY_ROOM     (KEY_WORKSPACE + VIEW_KEY_BYTES_MAX)

/* A bound of a key, behind its workspace: it is at most as long as the store sorts keys by. */
struct bound {
    uint8_t bytes[VIEW_KEY_BYTES_MAX];
    size_t size; /* 0: there is none */
};

struct view_scan {
    struct view_read read;
    const pawl_view_query *query;
    pawl_bytes prefix, from, to; /* as JSON */
    struct bound low;            /* rows are not before this */
    struct bound high;           /* and before this */
    bool empty;                  /* no key is between them */

    pawl_bytes place; /* in read.memory: a whole key, from which to go on; data NULL: the partition's begin */
    bool shown;       /* there is a row with that key, which was shown */
    bool seek;        /* go on from the place in this snapshot */
    bool cut;         /* there may be more rows behind the place */
    size_t steps;     /* in this snapshot */
    size_t left;
    int status; /* of a visit */

    uint64_t rows;
    uint64_t offset;
    double covered; /* sum over the partitions that were judged */
    uint32_t judged;
    double partition_covered; /* of the one at hand: the least of its snapshots */
};

/* --- bounds --- */

static pawl_bytes bound_bytes(const struct bound *b)
{
    return (pawl_bytes){b->bytes, b->size};
}

/* The first field of a key begins with 0 or 1, so there is always a next. */
static void bound_set_behind(struct bound *b)
{
    uint8_t behind[VIEW_KEY_BYTES_MAX];
    b->size = key_after_prefix(bound_bytes(b), behind).size;
    memcpy(b->bytes, behind, b->size);
}

/* count 0: the bound is left empty. */
static int bound_read(struct view_scan *s, pawl_bytes json, pawl_key key, struct bound *ret_bound)
{
    struct view_read *r = &s->read;
    uint8_t bytes[KEY_ROOM];
    struct value *values;
    size_t count, size;
    ret_bound->size = 0;
    int status = view_read_values(r, json, key, false, &values, &count);
    if (status != PAWL_OK || count == 0)
        return status;
    status = view_prefix(r->view, r->table, r->wsid, values, count, bytes, &size);
    if (status == PAWL_ETOOBIG)
        return error_set(r->error, status, "the first fields of the key take more bytes than are sorted by");
    if (status != PAWL_OK)
        return error_set(r->error, status, "no memory for a key");
    ret_bound->size = size - KEY_WORKSPACE;
    memcpy(ret_bound->bytes, bytes + KEY_WORKSPACE, ret_bound->size);
    return PAWL_OK;
}

static void raise_low(struct view_scan *s, const struct bound *b)
{
    if (b->size && bytes_compare(bound_bytes(b), bound_bytes(&s->low)) > 0)
        s->low = *b;
}

static void lower_high(struct view_scan *s, const struct bound *b)
{
    if (b->size && (s->high.size == 0 || bytes_compare(bound_bytes(b), bound_bytes(&s->high)) < 0))
        s->high = *b;
}

static int read_bounds(struct view_scan *s)
{
    static const pawl_key none; /* those of JSON are read from their texts */
    const pawl_view_query *q = s->query;
    bool json = !s->read.visit;
    struct bound b;
    int status = bound_read(s, s->prefix, json ? none : q->prefix, &b);
    if (status == PAWL_OK && b.size) {
        raise_low(s, &b);
        bound_set_behind(&b);
        lower_high(s, &b);
    }
    if (status == PAWL_OK)
        status = bound_read(s, s->from, json ? none : q->from, &b);
    if (status == PAWL_OK && b.size) {
        if (q->from_exclusive)
            bound_set_behind(&b);
        raise_low(s, &b);
    }
    if (status == PAWL_OK)
        status = bound_read(s, s->to, json ? none : q->to, &b);
    if (status == PAWL_OK && b.size) {
        if (!q->to_exclusive)
            bound_set_behind(&b);
        lower_high(s, &b);
    }
    s->empty = s->high.size && bytes_compare(bound_bytes(&s->low), bound_bytes(&s->high)) >= 0;
    return status;
}

/* --- places --- */

/* head, then tail: the place to go on from. */
static int set_place(struct view_scan *s, pawl_bytes head, pawl_bytes tail, bool shown)
{
    arena_reset(&s->read.memory);
    uint8_t *place = arena_take(&s->read.memory, head.size + tail.size);
    if (!place)
        return error_set(s->read.error, PAWL_ENOMEM, "no memory for a scan");
    memcpy(place, head.data, head.size);
    if (tail.size)
        memcpy(place + head.size, tail.data, tail.size);
    s->place = (pawl_bytes){place, head.size + tail.size};
    s->shown = shown;
    return PAWL_OK;
}

/* What a cursor of this scan is of. Never 0. */
static uint64_t scan_of(const struct view_scan *s)
{
    const struct view *view = s->read.view;
    uint64_t of = hash_checksum(s->read.wsid, view->name);
    for (size_t i = 0; i < view->key_count; i++)
        of = hash_checksum(of + view->row.fields[i].type, view->row.fields[i].name);
    return of ? of : 1;
}

/* Begin where the cursor has stopped. It may come from outside. */
static int resume(struct view_scan *s, uint32_t *partition)
{
    struct view_read *r = &s->read;
    const pawl_cursor *cursor = s->query->cursor;
    pawl_bytes key = scan_cursor_key(cursor);
    uint8_t table[KEY_TABLE];
    if (!key.data)
        return PAWL_OK;
    const uint8_t *at = key.data;
    bool good = scan_cursor_of(cursor) == scan_of(s) && key.size >= KEY_WORKSPACE - KEY_TABLE
                && key.size <= PAWL_KEY_BYTES_MAX - KEY_TABLE;
    uint64_t token = good ? get_u64_sorted(at) : 0, wsid = good ? get_u64_sorted(at + 8) : 0;
    if (!good || token != hash_token(wsid) || (r->wsid && wsid != r->wsid))
        return error_set(r->error, PAWL_EINVAL, "the cursor is of another view, or of another workspace");
    *partition = partition_of(token, r->engine->file.partitions);
    put_u32_sorted(table, r->table);
    return set_place(s, (pawl_bytes){table, KEY_TABLE}, key, !s->query->descending);
}

/* --- rows --- */

/* Whether a row is between the bounds. If not, the place becomes that of the next row that may be. */
static bool is_between(struct view_scan *s, pawl_bytes key)
{
    bool descending = s->query->descending;
    pawl_bytes workspace = {key.data, KEY_WORKSPACE};
    pawl_bytes own = {(const uint8_t *)key.data + KEY_WORKSPACE, key.size - KEY_WORKSPACE};
    uint8_t behind[KEY_WORKSPACE];
    const pawl_bytes none = {0};
    bool before = bytes_compare(own, bound_bytes(&s->low)) < 0;
    if (!before && (s->high.size == 0 || bytes_compare(own, bound_bytes(&s->high)) < 0))
        return true;
    s->seek = true;
    if (before)
        s->status = set_place(s, workspace, descending ? none : bound_bytes(&s->low), false);
    else if (descending)
        s->status = set_place(s, workspace, bound_bytes(&s->high), false);
    else
        s->status = set_place(s, key_after_prefix(workspace, behind), none, false);
    return false;
}

static bool visit_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct view_scan *s = arg;
    struct view_read *r = &s->read;
    if (s->shown) {
        s->shown = false;
        if (bytes_equal(key, s->place))
            return true;
    }
    if (r->wsid == 0 && (s->low.size || s->high.size)) {
        if (key.size < KEY_WORKSPACE) {
            s->status = error_set(r->error, PAWL_ECORRUPT, "a key of the view %s is not valid", r->name);
            return false;
        }
        if (!is_between(s, key))
            return false;
    }
    s->status = view_read_show(r, key, value);
    if (s->status != PAWL_OK)
        return false;
    if (!r->visit)
        out_raw(&r->out, (pawl_bytes){"\n", 1});
    s->rows++;
    s->steps++;
    s->left--;
    if (!r->stopped && s->left > 0 && s->steps < ROWS_AT_ONCE)
        return true;
    s->cut = true;
    s->status = set_place(s, key, (pawl_bytes){0}, !s->query->descending);
    return false;
}

struct range_room {
    uint8_t from[KEY_ROOM];
    uint8_t to[KEY_ROOM];
};

/* The keys of the partition, or of the workspace between the bounds. */
static pawl_range whole_range(const struct view_scan *s, struct range_room *room)
{
    const struct view_read *r = &s->read;
    if (r->wsid == 0)
        return view_partition_range(r->engine->file.partitions, r->partition, VIEW_SPACE, r->table, room->from,
                                    room->to);
    pawl_bytes workspace = key_of_workspace(r->table, r->wsid, room->from);
    pawl_bytes to = key_after_prefix(workspace, room->to);
    if (s->high.size) {
        memcpy(room->to, room->from, KEY_WORKSPACE);
        memcpy(room->to + KEY_WORKSPACE, s->high.bytes, s->high.size);
        to = (pawl_bytes){room->to, KEY_WORKSPACE + s->high.size};
    }
    memcpy(room->from + KEY_WORKSPACE, s->low.bytes, s->low.size);
    return (pawl_range){.space = VIEW_SPACE, .from = {room->from, KEY_WORKSPACE + s->low.size}, .to = to};
}

/* What is left of it. False: nothing. */
static bool rest_of_range(struct view_scan *s, pawl_range *range)
{
    bool descending = s->query->descending;
    if (s->place.data) {
        put_u32_sorted((uint8_t *)(uintptr_t)s->place.data, s->read.table); /* V1 */
        if (!descending && bytes_compare(s->place, range->from) >= 0)
            range->from = s->place;
        else
            s->shown = false;
        if (descending && bytes_compare(s->place, range->to) < 0)
            range->to = s->place;
    }
    return !s->empty && bytes_compare(range->from, range->to) < 0;
}

static int scan_snapshot(struct view_scan *s)
{
    struct range_room room;
    int status = PAWL_OK;
    if (!s->read.visit)
        s->read.schema = engine_schema_refresh(s->read.engine); /* behind the snapshot: it has all names */
    s->cut = false;
    s->steps = 0;
    do {
        pawl_range range = whole_range(s, &room);
        s->seek = false;
        if (!rest_of_range(s, &range))
            break;
        status = pawl_store_scan(s->read.snapshot, range, s->query->descending, visit_row, s);
        if (status != PAWL_OK)
            return error_set(s->read.error, status, "cannot read the view %s", s->read.name);
        status = s->status;
    } while (status == PAWL_OK && s->seek && ++s->steps < ROWS_AT_ONCE);
    s->cut = s->cut || s->seek;
    return status;
}

/* One snapshot of a partition. s->cut: there may be more. */
static int scan_some(struct view_scan *s, uint16_t partition)
{
    struct view_read *r = &s->read;
    int status = view_read_snapshot(r, partition);
    if (status != PAWL_OK)
        return status;
    s->cut = false;
    if (r->covered < s->partition_covered)
        s->partition_covered = r->covered;
    if (s->query->complete && r->covered < 1)
        status = view_read_not_built(r);
    if (status == PAWL_OK && r->snapshot && r->wsid && s->offset == 0)
        status = view_read_offset(r, &s->offset);
    if (status == PAWL_OK && r->snapshot)
        status = scan_snapshot(s);
    view_read_release(r);
    return status;
}

/* --- partitions --- */

static bool is_over(const struct view_scan *s)
{
    return s->read.stopped || s->left == 0;
}

static int scan_partition(struct view_scan *s, uint16_t partition)
{
    int status;
    s->partition_covered = 1;
    do
        status = scan_some(s, partition);
    while (status == PAWL_OK && s->cut && !is_over(s));
    s->covered += s->partition_covered;
    s->judged++;
    return status;
}

/* A partition that is not read, or not yet. */
static int judge_partition(struct view_scan *s, uint16_t partition, double *ret_covered)
{
    int status = view_read_snapshot(&s->read, partition);
    view_read_release(&s->read);
    if (status == PAWL_OK)
        *ret_covered = s->read.covered;
    return status;
}

/* Before the first row, if the caller wants everything of all workspaces. Of one, the first snapshot says it. */
static int check_complete(struct view_scan *s, int64_t first, int64_t end, int64_t step)
{
    int status = PAWL_OK;
    for (int64_t p = first; p != end && status == PAWL_OK; p += step) {
        double covered = 0;
        status = judge_partition(s, (uint16_t)p, &covered);
        if (status == PAWL_OK && covered < 1)
            status = view_read_not_built(&s->read);
    }
    return status;
}

static int scan_all(struct view_scan *s, int64_t first, int64_t end, int64_t step, bool answered)
{
    int status = s->query->complete && s->read.wsid == 0 ? check_complete(s, first, end, step) : PAWL_OK;
    int64_t p = first;
    for (; p != end && status == PAWL_OK && !is_over(s); p += step) {
        status = scan_partition(s, (uint16_t)p);
        if (!is_over(s))
            s->place = (pawl_bytes){0};
    }
    for (; p != end && status == PAWL_OK && answered; p += step) {
        double covered = 0;
        status = judge_partition(s, (uint16_t)p, &covered);
        s->covered += covered;
        s->judged++;
    }
    return status;
}

static int scan(struct view_scan *s, bool answered)
{
    struct view_read *r = &s->read;
    const pawl_view_query *q = s->query;
    const int64_t partitions = r->engine->file.partitions;
    uint32_t partition = r->wsid         ? pawl_partition_of(r->engine, r->wsid)
                         : q->descending ? (uint32_t)partitions - 1
                                         : 0;
    if (q->cursor && q->cursor->done)
        return PAWL_OK;
    int status = read_bounds(s);
    if (status == PAWL_OK)
        status = resume(s, &partition);
    if (status != PAWL_OK)
        return status;
    int64_t first = partition;
    if (r->wsid)
        return scan_all(s, first, first + 1, 1, answered);
    return q->descending ? scan_all(s, first, -1, -1, answered) : scan_all(s, first, partitions, 1, answered);
}

static int move_cursor(struct view_scan *s)
{
    pawl_cursor *cursor = s->query->cursor;
    if (!is_over(s)) {
        cursor->done = true;
        return PAWL_OK;
    }
    pawl_bytes key = {(const uint8_t *)s->place.data + KEY_TABLE, s->place.size - KEY_TABLE};
    int status = scan_cursor_move(cursor, s->read.memory.alloc, scan_of(s), key);
    return status == PAWL_OK ? status : error_set(s->read.error, status, "no memory for a cursor");
}

static pawl_view_answer answer_of(const struct view_scan *s)
{
    double covered = s->judged ? s->covered / s->judged : 1;
    return (pawl_view_answer){.built = covered >= 1, .covered = covered, .rows = s->rows, .offset = s->offset};
}

static int run(struct view_scan *s, pawl_text *ret_text, pawl_view_answer *ret_answer)
{
    struct view_read *r = &s->read;
    const pawl_view_query *q = s->query;
    const pawl_read_options options = {.min_offset = q->min_offset, .timeout = q->timeout};
    int status = engine_enter(r->engine, r->error);
    if (status == PAWL_OK && q->min_offset && !q->wsid)
        status = error_set(r->error, PAWL_EINVAL, "min_offset is of a workspace's partition: which workspace?");
    if (status == PAWL_OK)
        status = view_read_find(r);
    if (status == PAWL_OK)
        status = view_read_wait(r, &options);
    if (status != PAWL_OK)
        return status;
    view_read_begin(r);
    s->left = q->limit ? q->limit : SIZE_MAX;
    status = scan(s, ret_answer != NULL);
    if (status == PAWL_OK && r->wsid && s->rows == 0)
        status = engine_workspace(r->engine, r->wsid, r->error);
    if (status == PAWL_OK && r->out.status == PAWL_OK && q->cursor && !q->cursor->done)
        status = move_cursor(s);
    pawl_view_answer answer = answer_of(s);
    status = view_read_end(r, status, ret_text);
    if (status == PAWL_OK && ret_answer)
        *ret_answer = answer;
    return status;
}

int pawl_view_scan(pawl_engine *e, const char *view, const pawl_view_query *query, pawl_row_visit visit,
                   void *arg, pawl_view_answer *ret_answer, pawl_error *error)
{
    struct view_scan s = {
        .read = {.engine = e, .name = view, .wsid = query->wsid, .visit = visit, .arg = arg, .error = error},
        .query = query};
    return run(&s, NULL, ret_answer);
}

int pawl_view_list(pawl_engine *e, const char *view, const pawl_view_query *query, pawl_bytes prefix,
                   pawl_bytes from, pawl_bytes to, pawl_text *ret_text, pawl_view_answer *ret_answer,
                   pawl_error *error)
{
    struct view_scan s = {.read = {.engine = e, .name = view, .wsid = query->wsid, .error = error},
                          .query = query,
                          .prefix = prefix,
                          .from = from,
                          .to = to};
    return run(&s, ret_text, ret_answer);
}
