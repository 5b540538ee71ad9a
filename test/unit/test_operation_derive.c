/* Operations that do not fit their schema or the state. Those that fit are covered by the tests of exploding,
 * which derive whatever they explode. */
#include "test/lib/explode.h"
#include "test/lib/test.h"

TEST(a_row_that_grew_too_large_meanwhile_is_told_from_a_wrong_log)
{
    struct bed b;
    open_bed(&b, "iiss");
    struct value large = {.type = VALUE_STRING, .bytes = {.size = (size_t)9 << 20}};
    char *text = malloc(large.bytes.size);
    assert_non_null(text);
    memset(text, 'x', large.bytes.size);
    large.bytes.data = text;
    struct value now[] = {number(1), number(NONE), large, {.type = VALUE_NULL}};
    struct value key = number(1);
    uint64_t bits = 8;
    uint8_t own[9];
    struct value sets[] = {{0}, {0}, {0}, large};
    struct operation o = {.kind = OPERATION_WRITES, .wsid = 7};
    put(&b, 1, now, 4);
    operation_maker_write(&b.maker, ACTION_UPSERT, b.type->id);
    operation_maker_row(&b.maker, (pawl_bytes){own, row_key_write(&key, 1, own, 9)}, sets, &bits, 4);
    assert_ok(operation_maker_writes(&b.maker, &o.writes, &o.count));
    assert_status(operation_derive(&o, &b.entities.schema, ENTITY_GENERATION, &b.state.state, &b.state.memory,
                                   &b.changes, &b.error),
                  PAWL_ETOOBIG);
    free(text);
    close_bed(&b);
}

TEST(an_operation_that_does_not_fit_is_refused_and_nothing_is_pushed)
{
    static const struct {
        enum action_kind kind;
        uint16_t entity;
        const char *key; /* NULL: that of row 1 */
        uint64_t set;
        const char *words;
    } cases[] = {
        {ACTION_UPDATE, 999, NULL, 2, "entity 999"},
        {ACTION_UPDATE, 301, NULL, 2, "entity 301"}, /* a document */
        {ACTION_UPDATE, 300, "\1\0\0\0\0\0\0\0\7", 2, "is not there"},
        {ACTION_DELETE, 300, "\1\0\0\0\0\0\0\0\7", 0, "is not there"},
        {ACTION_UPSERT, 300, "\1\0\0\0\0\0\0\0\7!", 2, "a key that cannot be decoded"},
        {ACTION_UPSERT, 300, "\0", 2, "null in its key"},
        {ACTION_UPSERT, 300, NULL, 1, "set in its key"},
        {ACTION_UPSERT, 300, NULL, 16, "later schema"},
        {ACTION_UPSERT, 300, "\1\200\0\0\0\0\0\0\7", 4, "required"},
    };
    struct bed b;
    open_bed(&b, "iIis");
    entities_add(&b.entities, "iiis", 1)->kind = TYPE_CDOC;
    put_numbers(&b, 1, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct value values[5] = {number(1), number(1), number(1), {.type = VALUE_NULL}, number(1)};
        struct operation o = {.kind = OPERATION_WRITES, .wsid = 7};
        uint8_t whole[64];
        pawl_bytes key = key_of(&b, 1, whole);
        key = (pawl_bytes){whole + KEY_WORKSPACE, key.size - KEY_WORKSPACE};
        operation_maker_reset(&b.maker);
        uint64_t first = 2;
        operation_maker_write(&b.maker, ACTION_UPDATE, 300); /* one that is well */
        operation_maker_row(&b.maker, key, values, &first, 4);
        if (cases[i].key)
            key = (pawl_bytes){cases[i].key, cases[i].words[0] == 'n' ? 1 : cases[i].key[9] ? 10 : 9};
        bool deletes = cases[i].kind == ACTION_DELETE;
        operation_maker_write(&b.maker, cases[i].kind, cases[i].entity);
        operation_maker_row(&b.maker, key, deletes ? NULL : values, deletes ? NULL : &cases[i].set,
                            cases[i].set == 16 ? 5 : 4);
        assert_ok(operation_maker_writes(&b.maker, &o.writes, &o.count));
        assert_status(operation_derive(&o, &b.entities.schema, ENTITY_GENERATION, &b.state.state,
                                       &b.state.memory, &b.changes, &b.error),
                      PAWL_ECORRUPT);
        assert_contains(b.error.text, cases[i].words);
        assert_int_equal(b.state.overlay.count, 0);
    }
    close_bed(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_row_that_grew_too_large_meanwhile_is_told_from_a_wrong_log),
        RUN(an_operation_that_does_not_fit_is_refused_and_nothing_is_pushed),
    };
    return TEST_MAIN(tests);
}
