/* Whether reads stand: by cases, and against a model that remembers everything. */
#include "test/lib/test.h"

#include "core/project/reads.h"
#include "core/state/key.h"
#include "test/lib/alloc.h"
#include "test/lib/entities.h"

#define FIELDS 4
#define ROWS   8 /* that one operation may write */

enum effect { INSERTS, DELETES, UPDATES };

/* One row of an operation. */
struct wrote {
    enum effect effect;
    uint32_t table;
    uint64_t wsid;
    uint64_t id;
    uint64_t set;     /* bits, of those that an update sets */
    uint64_t cleared; /* bits, of those that it makes null */
};

static pawl_bytes row_key(uint32_t table, uint64_t wsid, uint64_t id, uint8_t key[KEY_NUMBERED])
{
    return key_numbered(table, wsid, id, key);
}

static void note(struct recent_writes *recent, uint64_t number, const struct wrote *rows, size_t count)
{
    struct operation_maker maker;
    struct row_change change[ROWS] = {0};
    uint8_t keys[ROWS][KEY_NUMBERED];
    struct changes changes = {.first = count ? change : NULL, .count = count};
    struct operation o = {.kind = OPERATION_WRITES, .number = number};
    operation_maker_init(&maker, NULL);
    assert_true(count <= ROWS);
    for (size_t i = 0; i < count; i++) {
        const struct wrote *w = &rows[i];
        struct value values[FIELDS] = {0};
        uint64_t set = w->set | w->cleared;
        for (size_t f = 0; f < FIELDS; f++)
            values[f].type = w->cleared >> f & 1 ? VALUE_NULL : VALUE_BOOL;
        bool deletes = w->effect == DELETES;
        operation_maker_write(&maker, deletes ? ACTION_DELETE : ACTION_UPSERT, 1);
        operation_maker_row(&maker, text_bytes("key"), deletes ? NULL : values, deletes ? NULL : &set, FIELDS);
        change[i].next = i + 1 < count ? &change[i + 1] : NULL;
        change[i].key = row_key(w->table, w->wsid, w->id, keys[i]);
        change[i].digest.rows = w->effect == INSERTS ? 1 : deletes ? (uint64_t)-1 : 0;
    }
    assert_ok(operation_maker_writes(&maker, &o.writes, &o.count));
    recent_writes_note(recent, &o, &changes);
    operation_maker_release(&maker);
}

enum look { ROW, CLAUSE, EVERYTHING, RANGE };

static const struct expr *clauses[1 << FIELDS]; /* by the fields they read */

static void look(struct reads *reads, enum look what, uint64_t id, uint64_t fields)
{
    uint8_t key[KEY_NUMBERED];
    switch (what) {
    case ROW: assert_ok(reads_add_row(reads, row_key(300, 7, id, key))); break;
    case CLAUSE: assert_ok(reads_add_rows(reads, 300, 7, clauses[fields], FIELDS)); break;
    case EVERYTHING: assert_ok(reads_add_rows(reads, 300, 7, NULL, FIELDS)); break;
    case RANGE: assert_ok(reads_add_range(reads, 300, 7)); break;
    }
}

TEST(a_read_stands_unless_what_it_read_was_changed)
{
    static const struct {
        const char *name;
        enum look look;
        uint64_t id;
        uint64_t fields;
        struct wrote wrote[2];
        size_t count;
        bool stands;
    } cases[] = {
        {"a row, untouched", ROW, 1, 0, {{UPDATES, 300, 7, 2, 15, 0}}, 1, true},
        {"a row, updated", ROW, 1, 0, {{UPDATES, 300, 7, 1, 2, 0}}, 1, false},
        {"a row, cleared", ROW, 1, 0, {{UPDATES, 300, 7, 1, 0, 2}}, 1, false},
        {"a row that was not there, inserted", ROW, 1, 0, {{INSERTS, 300, 7, 1, 2, 0}}, 1, false},
        {"a row, deleted", ROW, 1, 0, {{DELETES, 300, 7, 1, 0, 0}}, 1, false},
        {"a row, deleted and inserted",
         ROW,
         1,
         0,
         {{DELETES, 300, 7, 1, 0, 0}, {INSERTS, 300, 7, 1, 0, 0}},
         2,
         false},
        {"a row of another workspace", ROW, 1, 0, {{DELETES, 300, 8, 1, 0, 0}}, 1, true},
        {"a row of another table", ROW, 1, 0, {{DELETES, 301, 7, 1, 0, 0}}, 1, true},
        {"a clause, what it reads set on any row", CLAUSE, 0, 4, {{UPDATES, 300, 7, 9, 4, 0}}, 1, false},
        {"a clause, what it reads cleared on any row", CLAUSE, 0, 4, {{UPDATES, 300, 7, 9, 0, 4}}, 1, false},
        {"a clause, another field set", CLAUSE, 0, 4, {{UPDATES, 300, 7, 9, 3, 8}}, 1, true},
        {"a clause that reads two, one set", CLAUSE, 0, 9, {{UPDATES, 300, 7, 9, 8, 0}}, 1, false},
        {"a clause, a row inserted that sets nothing", CLAUSE, 0, 4, {{INSERTS, 300, 7, 9, 0, 0}}, 1, false},
        {"a clause, a row deleted", CLAUSE, 0, 4, {{DELETES, 300, 7, 9, 0, 0}}, 1, false},
        {"a clause, the same in another workspace", CLAUSE, 0, 4, {{INSERTS, 300, 8, 9, 4, 0}}, 1, true},
        {"a clause, the same in another table", CLAUSE, 0, 4, {{INSERTS, 301, 7, 9, 4, 0}}, 1, true},
        {"a clause, the same field of another table", CLAUSE, 0, 4, {{UPDATES, 301, 7, 9, 4, 0}}, 1, true},
        {"all rows, fields set", EVERYTHING, 0, 0, {{UPDATES, 300, 7, 9, 15, 0}}, 1, true},
        {"all rows, one inserted", EVERYTHING, 0, 0, {{INSERTS, 300, 7, 9, 0, 0}}, 1, false},
        {"a range, a field set", RANGE, 0, 0, {{UPDATES, 300, 7, 9, 1, 0}}, 1, false},
        {"a range, one deleted", RANGE, 0, 0, {{DELETES, 300, 7, 9, 0, 0}}, 1, false},
        {"a range of another workspace", RANGE, 0, 0, {{UPDATES, 300, 6, 9, 1, 0}}, 1, true},
        {"nothing was written", RANGE, 0, 0, {{0}}, 0, true},
    };
    struct recent_writes *recent;
    struct reads reads;
    reads_init(&reads, NULL);
    assert_ok(recent_writes_new(NULL, 64, &recent));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        recent_writes_reset(recent, 6);
        note(recent, 6, cases[i].wrote, cases[i].count);
        note(recent, 7, NULL, 0);
        for (uint64_t at = 5; at <= 7; at++) {
            reads_reset(&reads, at);
            look(&reads, cases[i].look, cases[i].id, cases[i].fields);
            bool expected = cases[i].stands || at >= 6;
            if (reads_stand(&reads, recent) != expected)
                fail_msg("%s, at %d", cases[i].name, (int)at);
        }
    }
    recent_writes_free(recent);
    reads_release(&reads);
}

TEST(a_read_older_than_the_ring_does_not_stand_unless_it_read_nothing)
{
    struct recent_writes *recent;
    struct reads reads;
    struct wrote other = {INSERTS, 900, 7, 1, 0, 0};
    reads_init(&reads, NULL);
    assert_ok(recent_writes_new(NULL, 8, &recent)); /* two entries for each number below */
    recent_writes_reset(recent, 11);
    for (uint64_t number = 11; number <= 20; number++)
        note(recent, number, &other, 1);
    for (uint64_t at = 10; at <= 20; at++) {
        reads_reset(&reads, at);
        assert_true(reads_stand(&reads, recent));
        look(&reads, ROW, 1, 0);
        assert_int_equal(reads_stand(&reads, recent), at >= 16);
    }

    /* One that does not fit is forgotten as a whole, and all before it; what follows is not. */
    struct wrote many[ROWS];
    for (uint64_t i = 0; i < ROWS; i++)
        many[i] = (struct wrote){INSERTS, 300, 7, i, 0, 0};
    note(recent, 21, many, ROWS);
    note(recent, 22, &other, 1);
    reads_reset(&reads, 20);
    look(&reads, ROW, 77, 0);
    assert_false(reads_stand(&reads, recent));
    reads_reset(&reads, 21);
    look(&reads, ROW, 0, 0);
    assert_true(reads_stand(&reads, recent));
    recent_writes_free(recent);
    reads_release(&reads);
}

TEST(a_run_that_read_too_much_stands_only_if_nothing_at_all_was_written)
{
    struct recent_writes *recent;
    struct reads reads;
    struct wrote other = {UPDATES, 900, 9, 1, 1, 0};
    reads_init(&reads, NULL);
    assert_ok(recent_writes_new(NULL, 64, &recent));
    recent_writes_reset(recent, 1);
    for (int sort = 0; sort < 2; sort++) {
        reads_reset(&reads, 0);
        for (uint64_t i = 0; i < READS_MAX; i++)
            look(&reads, sort ? EVERYTHING : ROW, i, 0);
        assert_false(reads.all);
        look(&reads, ROW, READS_MAX, 0);
        look(&reads, sort ? EVERYTHING : ROW, READS_MAX, 0);
        assert_true(reads.all);
        recent_writes_reset(recent, 1);
        note(recent, 1, NULL, 0);
        assert_true(reads_stand(&reads, recent));
        note(recent, 2, &other, 1);
        assert_false(reads_stand(&reads, recent));
        reads.at = 2;
        assert_true(reads_stand(&reads, recent));
    }
    recent_writes_free(recent);
    reads_release(&reads);
}

#define HISTORY 60

struct model {
    uint64_t random;
    struct wrote wrote[HISTORY + 1][ROWS];
    size_t count[HISTORY + 1];
};

static void write_random(struct model *m, uint64_t number)
{
    m->count[number] = test_below(&m->random, 3) ? test_below(&m->random, 4) : 0;
    for (size_t i = 0; i < m->count[number]; i++) {
        struct wrote *w = &m->wrote[number][i];
        *w = (struct wrote){.effect = (enum effect)test_below(&m->random, 3),
                            .table = (uint32_t)(300 + test_below(&m->random, 2)),
                            .wsid = 7 + test_below(&m->random, 3),
                            .id = test_below(&m->random, 6)};
        w->set = test_below(&m->random, 1 << FIELDS);
        w->cleared = test_below(&m->random, 1 << FIELDS) & ~w->set;
    }
}

static bool row_stands(const struct wrote *w, enum look what, uint64_t id, uint64_t fields)
{
    if (w->table != 300 || w->wsid != 7)
        return true;
    if (what == ROW)
        return w->id != id;
    if (w->effect != UPDATES)
        return false;
    return what == RANGE ? false : what == EVERYTHING || ((w->set | w->cleared) & fields) == 0;
}

static bool model_stands(const struct model *m, uint64_t at, uint64_t last, enum look what, uint64_t id,
                         uint64_t fields)
{
    for (uint64_t n = at + 1; n <= last; n++)
        for (size_t i = 0; i < m->count[n]; i++)
            if (!row_stands(&m->wrote[n][i], what, id, fields))
                return false;
    return true;
}

/* Whether the ring still knows of every write behind a number: whoever looked at what nobody writes stands. */
static bool reaches(const struct recent_writes *recent, struct reads *reads, uint64_t at)
{
    reads_reset(reads, at);
    look(reads, ROW, 77, 0);
    return reads_stand(reads, recent);
}

TEST(agrees_with_a_model_that_forgets_nothing_as_far_back_as_it_reaches)
{
    static struct model m;
    struct reads reads;
    uint64_t stood = 0, fell = 0;
    m.random = test_seed(20261102);
    reads_init(&reads, NULL);
    for (int i = 0; i < 200; i++) {
        struct recent_writes *recent;
        assert_ok(recent_writes_new(NULL, 1u << (1 + test_below(&m.random, 8)), &recent));
        recent_writes_reset(recent, 1);
        for (uint64_t n = 1; n <= HISTORY; n++) {
            write_random(&m, n);
            note(recent, n, m.wrote[n], m.count[n]);
            enum look what = (enum look)test_below(&m.random, 4);
            uint64_t id = test_below(&m.random, 6), fields = 1 + test_below(&m.random, (1 << FIELDS) - 1);
            uint64_t at = n - test_below(&m.random, n < 8 ? n : 8);
            bool known = reaches(recent, &reads, at);
            reads_reset(&reads, at);
            look(&reads, what, id, fields);
            bool expected = model_stands(&m, at, n, what, id, fields), stands = reads_stand(&reads, recent);
            assert_true(known ? stands == expected : !stands || expected);
            stood += stands;
            fell += !stands;
        }
        recent_writes_free(recent);
    }
    assert_true(stood > 1000 && fell > 1000);
    reads_release(&reads);
}

TEST(every_allocation_may_fail)
{
    for (uint64_t k = 1;; k++) {
        struct test_alloc memory;
        struct reads reads;
        struct recent_writes *recent = NULL;
        test_alloc_init(&memory);
        test_alloc_fail(&memory, k, TEST_ALLOC_ONCE);
        reads_init(&reads, &memory.allocator);
        uint8_t key[KEY_NUMBERED];
        int status = recent_writes_new(&memory.allocator, 16, &recent);
        for (uint64_t i = 0; status == PAWL_OK && i < 20; i++) {
            status = reads_add_row(&reads, row_key(300, 7, i, key));
            if (status == PAWL_OK)
                status = reads_add_rows(&reads, 300, 7, clauses[3], FIELDS);
            if (status == PAWL_OK)
                status = reads_add_range(&reads, 300, 7);
        }
        bool failed = test_alloc_failed(&memory);
        assert_status(status, failed ? PAWL_ENOMEM : PAWL_OK);
        uint64_t calls = memory.calls;
        struct wrote many[ROWS] = {0};
        for (uint64_t n = 1; recent && n < 40; n++) {
            if (n == 1)
                recent_writes_reset(recent, 1);
            for (uint64_t i = 0; i < ROWS; i++)
                many[i] = (struct wrote){INSERTS, 300, n, i, 0, 0};
            note(recent, n, many, 1 + n % ROWS);
        }
        assert_int_equal(memory.calls, calls); /* none after new */
        recent_writes_free(recent);
        reads_release(&reads);
        test_alloc_release(&memory);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_read_stands_unless_what_it_read_was_changed),
        RUN(a_read_older_than_the_ring_does_not_stand_unless_it_read_nothing),
        RUN(a_run_that_read_too_much_stands_only_if_nothing_at_all_was_written),
        RUN(agrees_with_a_model_that_forgets_nothing_as_far_back_as_it_reaches),
        RUN(every_allocation_may_fail),
    };
    static struct entities entities;
    entities_init(&entities, 1);
    const struct schema_type *type = entities_add(&entities, "iiii", 1);
    for (size_t fields = 1; fields < 1 << FIELDS; fields++) {
        char text[64] = "$event.offset = 0";
        for (size_t i = 0; i < FIELDS; i++)
            if (fields >> i & 1)
                snprintf(text + strlen(text), sizeof text - strlen(text), " or i%zu = 1", i);
        clauses[fields] = entities_expr(&entities, type, VALUE_BOOL, text);
    }
    int status = TEST_MAIN(tests);
    entities_release(&entities);
    return status;
}
