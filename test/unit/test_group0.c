/* group0: the same commands give the same state; every schema stays; numbers are given once. */
#include "base/bytes.h"
#include "core/group0/group0.h"
#include "test/lib/schema.h"
#include "test/lib/test.h"

static struct group0 *with(const char *const *schemas, size_t count)
{
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    for (size_t i = 0; i < count; i++) {
        enum group0_outcome outcome;
        pawl_error error = {0};
        int status = schema_apply(group0, schemas[i], &outcome, &error);
        if (status)
            print_error("%s\n", error.text);
        assert_ok(status);
        assert_int_equal(outcome, GROUP0_CHANGED);
    }
    return group0;
}

TEST(the_shop_becomes_numbers)
{
    struct group0 *group0 = with((const char *const[]){schema_shop}, 1);
    const struct schema *s = group0_schema(group0);
    assert_int_equal(s->position, 1);

    static const char *const names[] = {"shop.tenant",      "shop.invoice",       "shop.order",
                                        "shop.Customer",    "shop.Order",         "shop.OrderLine",
                                        "shop.Invoice",     "shop.CustomerTotal", "shop.PlaceOrder",
                                        "shop.AddCustomer", "shop.totals",        "shop.invoices_by_number"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(schema_name_id(s, text_bytes(names[i])), SCHEMA_NAME_FIRST + i);
        assert_true(bytes_equal(schema_name_text(s, (uint16_t)(SCHEMA_NAME_FIRST + i)), text_bytes(names[i])));
    }
    assert_int_equal(schema_name_id(s, text_bytes("sys.CreateWorkspace")), NAME_WS_CREATE);
    assert_int_equal(schema_name_id(s, text_bytes("shop.nope")), 0);
    assert_null(schema_name_text(s, 7).data);

    const struct schema_workspace *tenant = schema_workspace_by_name(s, text_bytes("shop.tenant"));
    assert_int_equal(tenant->sequence_count, 2);
    assert_int_equal(tenant->sequences[1].first, 1000);
    assert_int_equal(tenant->sequences[1].end, 999999999);
    assert_int_equal(tenant->sequences[0].end, INT64_MAX);

    const struct schema_type *order = schema_type_by_name(s, text_bytes("shop.Order"));
    const struct schema_type *customer = schema_type_by_name(s, text_bytes("shop.Customer"));
    const struct schema_type *total = schema_type_by_name(s, text_bytes("shop.CustomerTotal"));
    assert_int_equal(order->table, 0);
    assert_int_equal(customer->table, SCHEMA_TABLE_FIRST);
    assert_int_equal(schema_type_by_name(s, text_bytes("shop.Invoice"))->table, SCHEMA_TABLE_FIRST + 1);
    assert_int_equal(total->table, SCHEMA_TABLE_FIRST + 2);
    assert_int_equal(order->fields[0].to, customer->id);
    assert_int_equal(order->fields[1].sequence, tenant->sequences[1].id);
    assert_true(customer->fields[0].required);
    assert_ptr_equal(order->containers[schema_container_place(order, text_bytes("lines"))].type,
                     schema_type_by_name(s, text_bytes("shop.OrderLine")));
    assert_int_equal(total->kind, TYPE_ENTITY);
    assert_int_equal(total->key_count, 1);

    const struct schema_command *place = schema_command_by_name(s, text_bytes("shop.PlaceOrder"));
    assert_ptr_equal(place->argument, order);
    assert_int_equal(place->record_count, 1);
    const struct schema_projector *totals = schema_projector_by_name(s, text_bytes("shop.totals"));
    assert_int_equal(totals->lane, 1);
    assert_int_equal(totals->on[0], place->id);
    assert_ptr_equal(totals->actions[0].entity, total);
    assert_int_equal(expr_type(totals->actions[0].sets[0].value), VALUE_INT64);
    assert_int_equal(s->lane_count, 1);
    assert_true(bytes_equal(s->lanes[0].name, text_bytes("shop.totals")));
    assert_int_equal(s->lanes[0].generation, 1);
    const struct view_list *views = group0_building(group0)->views;
    assert_int_equal(views->count, 1);
    assert_int_equal(views->entries[0].view->fields[1].place, 2);
    group0_free(group0);
}

static int visit_slot(void *ctx, uint32_t slot)
{
    uint32_t *slots = ctx;
    slots[++slots[0]] = slot;
    return 0;
}

TEST(packages_use_each_others_names)
{
    struct group0 *group0 = with((const char *const[]){schema_shop, schema_crm}, 2);
    const struct schema *s = group0_schema(group0);
    const struct schema_type *note = schema_type_by_name(s, text_bytes("crm.Note"));
    const struct schema_type *invoice = schema_type_by_name(s, text_bytes("shop.Invoice"));
    assert_int_equal(note->fields[0].to, schema_name_id(s, text_bytes("shop.Customer")));
    assert_int_equal(note->fields[1].sequence, schema_name_id(s, text_bytes("shop.invoice")));
    assert_int_equal(note->table, SCHEMA_TABLE_FIRST + 3);
    assert_int_equal(schema_type_by_name(s, text_bytes("crm.Config"))->singleton, 65536 | UINT64_C(1) << 50);

    /* IDs go on behind the first package's, and all lists are in their order. */
    assert_int_equal(note->id, SCHEMA_NAME_FIRST + 12);
    for (size_t i = 1; i < s->type_count; i++)
        assert_true(s->types[i - 1].id < s->types[i].id);
    for (size_t i = 1; i < s->name_count; i++)
        assert_true(s->names[i - 1].id < s->names[i].id);

    const struct schema_projector *bill = schema_projector_by_name(s, text_bytes("crm.bill"));
    assert_true(bill->sync);
    assert_int_equal(bill->lane, 0);
    uint32_t slots[8] = {0};
    expr_uses(bill->actions[0].where, visit_slot, slots);
    assert_int_equal(slots[0], 4);
    assert_int_equal(slots[1], slot_make(SLOT_ROW, 0));
    assert_int_equal(slots[2], slot_make(invoice->id, 1));
    assert_ptr_equal(s->projectors[0].name.data,
                     schema_projector_by_name(s, text_bytes("shop.totals"))->name.data);
    group0_free(group0);
}

/* Complaints about another package than the one at hand say so. */
TEST(a_conflict_with_another_package_is_found)
{
    struct group0 *group0 = with((const char *const[]){schema_shop}, 1);
    enum group0_outcome outcome;
    pawl_error error;
    assert_status(
        schema_check(
            group0,
            "{'schema': 1, 'package': 'a', 'projectors': {'x': {'on': ['shop.PlaceOrder'], 'sync': true,"
            "'do': [{'delete': 'shop.CustomerTotal'}]}}}",
            &outcome, &error),
        PAWL_EINVAL);
    assert_contains(error.text, "$.projectors.x.do: shop.CustomerTotal is filled by shop.totals too");
    assert_status(schema_check(group0,
                               "{'schema': 1, 'package': 'a', 'commands': {'X': {'argument': 'Order'}}}",
                               &outcome, &error),
                  PAWL_EINVAL);
    assert_string_equal(error.text, "$.commands.X.argument: there is no type 'Order'");
    group0_free(group0);
}

TEST(the_same_commands_give_the_same_state)
{
    const char *const schemas[] = {schema_shop, schema_crm};
    struct group0 *a = with(schemas, 2), *b = with(schemas, 2);
    assert_int_equal(group0_digest(a).low, group0_digest(b).low);
    assert_int_equal(group0_digest(a).high, group0_digest(b).high);
    const struct schema *s = group0_schema(a), *t = group0_schema(b);
    assert_int_equal(s->name_count, t->name_count);
    for (size_t i = 0; i < s->name_count; i++) {
        assert_int_equal(s->names[i].id, t->names[i].id);
        assert_true(bytes_equal(s->names[i].text, t->names[i].text));
    }
    struct group0 *first = with(schemas, 1);
    assert_true(group0_digest(first).low != group0_digest(a).low);
    group0_free(a);
    group0_free(b);
    group0_free(first);
}

TEST(a_schema_that_says_nothing_new_makes_no_version)
{
    struct group0 *group0 = with((const char *const[]){schema_shop}, 1);
    const struct schema *before = group0_schema(group0);
    enum group0_outcome outcome;
    pawl_error error;
    assert_ok(schema_check(group0, schema_shop, &outcome, &error));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    assert_ok(schema_apply(group0, schema_shop, &outcome, &error));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    assert_ptr_equal(group0_schema(group0), before);
    assert_int_equal(group0_position(group0), 2);
    group0_free(group0);
}

/* A package as it is shown can be applied again. */
TEST(what_is_shown_applies_again_and_changes_nothing)
{
    struct group0 *group0 = with((const char *const[]){schema_shop, schema_crm}, 2);
    for (size_t i = 0; i < 2; i++) {
        struct arena arena;
        pawl_bytes text, command, again;
        struct definition definition;
        enum group0_outcome outcome = GROUP0_CHANGED;
        pawl_error error = {0};
        arena_init(&arena, NULL, 4096);
        assert_ok(schema_show(schema_package(group0_schema(group0), i), &arena, &text));
        assert_ok(schema_read(text, &arena, &definition, &error));
        assert_ok(group0_schema_encode(&definition, &arena, &command));
        assert_ok(group0_check(group0, command, &outcome, &error));
        assert_int_equal(outcome, GROUP0_UNCHANGED);
        assert_ok(schema_show(&definition, &arena, &again));
        assert_true(bytes_equal(text, again));
        arena_release(&arena);
    }
    assert_null(schema_package(group0_schema(group0), 2));
    group0_free(group0);
}

TEST(every_schema_stays_at_its_position)
{
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    struct arena arena;
    pawl_bytes command;
    assert_ok(group0_new(NULL, &group0));
    assert_int_equal(group0_schema(group0)->position, 0);
    assert_ok(schema_command(NULL, schema_shop, &arena, &command, &error));
    assert_ok(group0_apply(group0, 10, command, &outcome, &error));
    assert_status(group0_apply(group0, 10, command, &outcome, &error), PAWL_EMISUSE);
    arena_release(&arena);
    assert_ok(schema_command(NULL, schema_crm, &arena, &command, &error));
    assert_ok(group0_apply(group0, 20, command, &outcome, &error));
    arena_release(&arena);
    static const uint64_t at[][2] = {{0, 0}, {9, 0}, {10, 10}, {11, 10}, {19, 10}, {20, 20}, {UINT64_MAX, 20}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_int_equal(group0_schema_at(group0, at[i][0])->position, at[i][1]);

    const struct schema *old = schema_hold(group0_schema_at(group0, 10));
    group0_free(group0);
    assert_non_null(schema_type_by_name(old, text_bytes("shop.Order")));
    assert_null(schema_type_by_name(old, text_bytes("crm.Note")));
    schema_drop(old);
}

TEST(refuses_commands_it_does_not_know_and_names_the_position)
{
    static const struct {
        uint8_t bytes[8];
        size_t size;
        int status;
        const char *text;
    } cases[] = {
        {{0}, 0, PAWL_ECORRUPT, "group0 position 7: byte 0: this is not the head of a command"},
        {{0, 1, 0, 0}, 4, PAWL_ECORRUPT, "group0 position 7: byte 0: "},
        {{2, 1, 0, 0}, 4, PAWL_EVERSION, "group0 position 7: byte 0: the command is of version 2"},
        {{1, 18, 0, 0},
         4,
         PAWL_EVERSION,
         "group0 position 7: byte 1: this program knows no command of kind 18"},
        {{1, 9, 0, 0},
         4,
         PAWL_ECORRUPT,
         "group0 position 7: byte 4: these are not bytes of a command about views"},
        {{1, 1, 0, 1}, 4, PAWL_ECORRUPT, "group0 position 7: byte 0: "},
        {{1, 1, 0, 0}, 4, PAWL_ECORRUPT, "group0 position 7: behind byte 4: byte 0: "},
        {{1, 1, 0, 0, 4, 0},
         6,
         PAWL_EVERSION,
         "group0 position 7: behind byte 4: byte 0: the package is of version 4"},
    };
    struct group0 *group0;
    assert_ok(group0_new(NULL, &group0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum group0_outcome outcome;
        pawl_error error;
        assert_status(group0_apply(group0, 7, (pawl_bytes){cases[i].bytes, cases[i].size}, &outcome, &error),
                      cases[i].status);
        assert_contains(error.text, cases[i].text);
    }
    assert_int_equal(group0_position(group0), 0);
    group0_free(group0);
}

/* The same package in the bytes of version 1, which ended a projector with its actions. */
TEST(a_package_of_version_1_is_what_it_was)
{
    static const uint8_t one[] = {
        1, 1, 0, 0,                          /* a command: a schema */
        1, 0,                                /* of version 1 */
        1, 0, 0, 0, 'p',                     /* package p */
        0, 0,                                /* no workspaces, no types */
        0, 0,                                /* */
        1, 0, 2, 0, 0,   0,   'D', 'o',      /* command Do */
        0, 0, 0, 0, 0,   0,                  /* without argument and records */
        1, 0, 1, 0, 0,   0,   'E',           /* entity E */
        1, 0, 1, 0, 0,   0,   'k',           /* with key k */
        1, 0, 1, 0, 0,   0,   'k',           /* and field k */
        5, 0, 0, 0, 'i', 'n', 't', '6', '4', /* of type int64 */
        0, 0, 0, 0, 0,   0,   0,   0,   0,   /* and nothing else */
        2, 0, 1, 0, 0,   0,   'q',           /* projector q */
        1, 0, 2, 0, 0,   0,   'D', 'o',      /* on Do */
        0, 0, 0, 0, 0,                       /* not synchronous, of no named lane */
        1, 0, 3, 1, 0,   0,   0,   'E',      /* delete E */
        0, 0, 0, 0, 0,   0,   0,   0,        /* without key, set and where */
        1, 0, 0, 0, 'r',                     /* projector r */
        1, 0, 2, 0, 0,   0,   'D', 'o',      /* the same */
        0, 0, 0, 0, 0,                       /* */
        1, 0, 3, 1, 0,   0,   0,   'E',      /* */
        0, 0, 0, 0, 0,   0,   0,   0,        /* */
        0, 0,                                /* no views */
    };
    struct group0 *group0;
    enum group0_outcome outcome;
    pawl_error error = {0};
    assert_ok(group0_new(NULL, &group0));
    int status = group0_apply(group0, 1, (pawl_bytes){one, sizeof one}, &outcome, &error);
    if (status)
        print_error("%s\n", error.text);
    assert_ok(status);
    assert_ok(
        schema_apply(group0,
                     "{'schema': 1, 'package': 'p', 'commands': {'Do': {}}, 'entities': {'E': {'key': "
                     "['k'], 'fields': {'k': {'type': 'int64'}}}}, 'projectors': {'q': {'on': ['Do'], 'do': "
                     "[{'delete': 'E'}]}, 'r': {'on': ['Do'], 'do': [{'delete': 'E'}]}}}",
                     &outcome, &error));
    assert_int_equal(outcome, GROUP0_UNCHANGED);
    const struct schema_projector *r = schema_projector_by_name(group0_schema(group0), text_bytes("p.r"));
    assert_int_equal(r->on_failure, ON_FAILURE_STALL);
    assert_int_equal(r->attempts_max, 5);
    assert_int_equal(r->workers, 4);
    assert_false(r->handler);
    group0_free(group0);
}

/* Whatever byte of a command is another, applying refuses it or gives a sound schema. */
TEST(a_changed_byte_is_refused_or_gives_a_sound_schema)
{
    struct arena arena;
    pawl_bytes command;
    assert_ok(schema_command(NULL, schema_shop, &arena, &command, NULL));
    uint8_t *copy = malloc(command.size);
    assert_non_null(copy);
    memcpy(copy, command.data, command.size);
    for (size_t i = 0; i < command.size; i++) {
        struct group0 *group0;
        enum group0_outcome outcome;
        pawl_error error = {0};
        assert_ok(group0_new(NULL, &group0));
        copy[i] ^= (uint8_t)(1u << i % 8);
        int status = group0_apply(group0, 1, (pawl_bytes){copy, command.size}, &outcome, &error);
        copy[i] ^= (uint8_t)(1u << i % 8);
        assert_true(status == PAWL_OK || error.code == status);
        assert_int_equal(group0_schema(group0)->position, status == PAWL_OK ? 1 : 0);
        group0_free(group0);
    }
    free(copy);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(the_shop_becomes_numbers),
        RUN(packages_use_each_others_names),
        RUN(a_conflict_with_another_package_is_found),
        RUN(the_same_commands_give_the_same_state),
        RUN(a_schema_that_says_nothing_new_makes_no_version),
        RUN(what_is_shown_applies_again_and_changes_nothing),
        RUN(every_schema_stays_at_its_position),
        RUN(refuses_commands_it_does_not_know_and_names_the_position),
        RUN(a_package_of_version_1_is_what_it_was),
        RUN(a_changed_byte_is_refused_or_gives_a_sound_schema),
    };
    return TEST_MAIN(tests);
}
