/* test_engine_requests.c: a request keeps its first error until the command is sent, so that any number of
 * calls needs one check. */
#include <pawl/pawl.h>

#include "base/latch.h"
#include "test/lib/beds.h"
#include "test/lib/dir.h"

static const char schema[] =
    "{\"schema\": 1, \"package\": \"t\", \"workspaces\": {\"tenant\": {}},"
    " \"types\": {\"Customer\": {\"kind\": \"CDoc\", \"fields\": {\"name\": {\"type\": \"string\"}}},"
    "   \"Invoice\": {\"kind\": \"WDoc\", \"fields\": {\"cents\": {\"type\": \"int64\"},"
    "     \"rate\": {\"type\": \"float64\"}, \"kind\": {\"type\": \"qname\"}}},"
    "   \"Order\": {\"kind\": \"ODoc\", \"fields\": {\"text\": {\"type\": \"string\"}}, \"children\": "
    "{\"lines\": \"Line\"}},"
    "   \"Line\": {\"kind\": \"ORecord\", \"fields\": {\"qty\": {\"type\": \"int64\"}}}},"
    " \"commands\": {\"Bill\": {\"records\": [\"Invoice\", \"Customer\"]},"
    "   \"Place\": {\"argument\": \"Order\", \"records\": [\"Invoice\"]}}}";

struct shop {
    char dir[256];
    pawl_engine *engine;
    pawl_request *request;
    pawl_error error;
};

static void begin(struct shop *s)
{
    char data[300];
    *s = (struct shop){0};
    test_dir_make(s->dir, sizeof s->dir);
    snprintf(data, sizeof data, "%s/data", s->dir);
    assert_ok(beds_open(data, &(pawl_options){.partitions = 1, .shards = 1}, &s->engine, &s->error));
    assert_ok(pawl_request_new(s->engine, &s->request));
    assert_ok(pawl_schema_apply(s->engine, schema, NULL, &s->error));
    assert_ok(pawl_workspace_create(s->engine, s->request, 7, "t.tenant", NULL, &s->error));
}

static void end(struct shop *s)
{
    pawl_request_free(s->request);
    assert_ok(pawl_close(s->engine));
    test_dir_remove(s->dir);
}

/* A command that is in order becomes the event behind `before`: so nothing was sent in between. */
static void check_last_offset(struct shop *s, uint64_t before)
{
    pawl_answer answer;
    pawl_request_begin(s->request, 7, "t.Bill");
    pawl_request_record(s->request, 1, "t.Invoice");
    assert_ok(pawl_command(s->engine, s->request, &answer, &s->error));
    assert_int_equal(answer.workspace_offset, before + 1);
}

TEST(twenty_calls_need_one_check)
{
    struct shop s;
    begin(&s);
    pawl_request_begin(s.request, 7, "t.Bill");
    for (uint64_t i = 1; i <= 10; i++) {
        pawl_request_record(s.request, i, "t.Invoice");
        pawl_request_set_int64(s.request, i == 4 ? "pence" : "cents", 5);
    }
    assert_status(pawl_command(s.engine, s.request, NULL, &s.error), PAWL_ENOTFOUND);
    assert_string_equal(s.error.text, "$.records[3].fields.pence: t.Invoice has no such field");
    assert_int_equal(s.error.code, PAWL_ENOTFOUND);
    check_last_offset(&s, 1);
    end(&s);
}

TEST(the_first_error_is_the_one_that_is_kept)
{
    struct shop s;
    begin(&s);
    assert_ok(pawl_request_begin(s.request, 7, "t.Bill"));
    assert_int_equal(pawl_request_error(s.request)->code, PAWL_OK);
    assert_ok(pawl_request_record(s.request, 1, "t.Invoice"));
    assert_status(pawl_request_set_string(s.request, "cents", "5"), PAWL_EINVAL);
    assert_string_equal(pawl_request_error(s.request)->text,
                        "$.records[0].fields.cents: it is of type int64, not string");
    assert_status(pawl_request_record(s.request, 2, "t.None"), PAWL_EINVAL);
    assert_status(pawl_request_argument(s.request, 2), PAWL_EINVAL);
    assert_status(pawl_request_child(s.request, 2, "lines", 3), PAWL_EINVAL);
    assert_status(pawl_request_parent(s.request, 2, "lines"), PAWL_EINVAL);
    assert_status(pawl_request_active(s.request, false), PAWL_EINVAL);
    assert_status(pawl_request_set_name(s.request, "kind", "t.None"), PAWL_EINVAL);
    assert_status(pawl_request_set_int64(s.request, "cents", 5), PAWL_EINVAL);
    assert_status(pawl_request_key(s.request, "k"), PAWL_EINVAL);
    assert_status(pawl_request_actor(s.request, "a"), PAWL_EINVAL);
    assert_status(pawl_request_correlation(s.request, "c"), PAWL_EINVAL);
    assert_status(pawl_request_causation(s.request, "c"), PAWL_EINVAL);
    for (int i = 0; i < 2; i++) {
        s.error = (pawl_error){0};
        assert_status(pawl_command(s.engine, s.request, NULL, &s.error), PAWL_EINVAL);
        assert_contains(s.error.text, "$.records[0].fields.cents");
    }
    check_last_offset(&s, 1);
    end(&s);
}

static void no_command(pawl_request *r)
{
    pawl_request_begin(r, 7, "t.None");
}

static void no_argument(pawl_request *r)
{
    pawl_request_argument(r, 1);
}

static void late_argument(pawl_request *r)
{
    pawl_request_begin(r, 7, "t.Place");
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_argument(r, 2);
}

static void second_argument(pawl_request *r)
{
    pawl_request_begin(r, 7, "t.Place");
    pawl_request_argument(r, 1);
    pawl_request_argument(r, 2);
}

static void no_container(pawl_request *r)
{
    pawl_request_begin(r, 7, "t.Place");
    pawl_request_argument(r, 1);
    pawl_request_child(r, 1, "none", 2);
}

static void no_object(pawl_request *r)
{
    pawl_request_begin(r, 7, "t.Place");
    pawl_request_argument(r, 1);
    pawl_request_child(r, 5, "lines", 2);
}

static void no_field_of_a_child(pawl_request *r)
{
    pawl_request_begin(r, 7, "t.Place");
    pawl_request_argument(r, 1);
    pawl_request_child(r, 1, "lines", 2);
    pawl_request_child(r, 1, "lines", 3);
    pawl_request_set_int64(r, "none", 2);
}

static void no_type(pawl_request *r)
{
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_record(r, 2, "t.None");
}

static void no_record(pawl_request *r)
{
    pawl_request_active(r, false);
}

static void no_object_to_set(pawl_request *r)
{
    pawl_request_set_int64(r, "cents", 2);
}

static void not_finite(pawl_request *r)
{
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_set_float64(r, "rate", 0.0 / 0.0);
}

static void no_name(pawl_request *r)
{
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_set_name(r, "kind", "t.None");
}

static void set_twice(pawl_request *r)
{
    pawl_request_record(r, 1, "t.Invoice");
    pawl_request_set_int64(r, "cents", 1);
    pawl_request_set_int64(r, "cents", 2);
}

static void second_key(pawl_request *r)
{
    pawl_request_key(r, "a");
    pawl_request_key(r, "b");
}

static void bad_json(pawl_request *r)
{
    static const char json[] = "{\"command\": \"t.Bill\", \"records\": [{\"id\": 1, \"type\": \"t.Invoice\", "
                               "\"fields\": {\"pence\": 5}}]}";
    pawl_request_json(r, 7, (pawl_bytes){json, sizeof json - 1});
}

static void no_json(pawl_request *r)
{
    pawl_request_json(r, 7, (pawl_bytes){"{", 1});
}

static const struct {
    void (*make)(pawl_request *request);
    int status;
    const char *words;
} mistakes[] = {
    {no_command, PAWL_ENOTFOUND, "$.command: there is no command t.None"},
    {no_argument, PAWL_EINVAL, "$.argument: the command takes no argument"},
    {late_argument, PAWL_EINVAL, "$.argument: the argument comes before all records"},
    {second_argument, PAWL_EINVAL, "$.argument: there is an argument already"},
    {no_container, PAWL_ENOTFOUND, "$.argument: t.Order has no container none"},
    {no_object, PAWL_ENOTFOUND, "$.argument: it has no object 5"},
    {no_field_of_a_child, PAWL_ENOTFOUND, "$.argument.lines[1].none: t.Line has no such field"},
    {no_type, PAWL_ENOTFOUND, "$.records[1]: there is no type t.None"},
    {no_record, PAWL_EINVAL, "$.records: there is no record yet"},
    {no_object_to_set, PAWL_EINVAL, "there is no object yet to set cents of"},
    {not_finite, PAWL_EINVAL, "$.records[0].fields.rate: the number is not finite"},
    {no_name, PAWL_ENOTFOUND, "$.records[0].fields.kind: there is no name t.None"},
    {set_twice, PAWL_EEXISTS, "$.records[0].fields.cents: it is set already"},
    {second_key, PAWL_EINVAL, "$.idempotency_key: "},
    {bad_json, PAWL_EINVAL, "$.records[0].fields.pence: "},
    {no_json, PAWL_EINVAL, "line 1, column 1: "},
};

TEST(every_mistake_is_named_with_its_place_and_nothing_is_sent)
{
    struct shop s;
    begin(&s);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        s.error = (pawl_error){0};
        pawl_request_begin(s.request, 7, "t.Bill");
        mistakes[i].make(s.request);
        assert_status(pawl_request_error(s.request)->code, mistakes[i].status);
        assert_status(pawl_command(s.engine, s.request, NULL, &s.error), mistakes[i].status);
        assert_memory_equal(s.error.text, mistakes[i].words, strlen(mistakes[i].words));
        assert_string_equal(s.error.text, pawl_request_error(s.request)->text);
    }
    check_last_offset(&s, 1);
    end(&s);
}

TEST(a_new_beginning_clears_the_error)
{
    static const char json[] =
        "{\"command\": \"t.Bill\", \"records\": [{\"id\": 1, \"type\": \"t.Invoice\", \"fields\": {}}]}";
    struct shop s;
    begin(&s);
    no_command(s.request);
    check_last_offset(&s, 1);
    assert_int_equal(pawl_request_error(s.request)->code, PAWL_OK);
    no_command(s.request);
    assert_ok(pawl_request_json(s.request, 7, (pawl_bytes){json, sizeof json - 1}));
    assert_ok(pawl_command(s.engine, s.request, NULL, &s.error));
    no_command(s.request);
    assert_ok(pawl_workspace_create(s.engine, s.request, 8, "t.tenant", NULL, &s.error));
    assert_string_equal(pawl_request_error(s.request)->text, "");
    end(&s);
}

TEST(a_workspace_of_no_kind_is_an_error_that_is_kept)
{
    struct shop s;
    begin(&s);
    assert_status(pawl_workspace_create(s.engine, s.request, 8, "t.none", NULL, &s.error), PAWL_ENOTFOUND);
    assert_contains(s.error.text, "t.none");
    assert_status(pawl_request_error(s.request)->code, PAWL_ENOTFOUND);
    assert_status(pawl_command(s.engine, s.request, NULL, &s.error), PAWL_ENOTFOUND);
    assert_ok(pawl_workspace_create(s.engine, s.request, 8, "t.tenant", NULL, &s.error));
    end(&s);
}

struct told {
    struct latch latch;
    unsigned calls;
    int status;
};

static void tell(void *arg, pawl_request *request, int status, const pawl_answer *answer,
                 const pawl_error *error)
{
    struct told *told = arg;
    told->calls++;
    told->status = status;
    latch_set(&told->latch);
}

TEST(an_asynchronous_call_is_refused_with_the_error_that_was_kept)
{
    struct shop s;
    struct told told = {0};
    begin(&s);
    latch_init(&told.latch);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        s.error = (pawl_error){0};
        pawl_request_begin(s.request, 7, "t.Bill");
        mistakes[i].make(s.request);
        assert_status(pawl_command_async(s.engine, s.request, tell, &told, &s.error), mistakes[i].status);
        assert_memory_equal(s.error.text, mistakes[i].words, strlen(mistakes[i].words));
    }
    assert_int_equal(told.calls, 0);
    pawl_request_begin(s.request, 7, "t.Bill");
    pawl_request_record(s.request, 1, "t.Invoice");
    assert_ok(pawl_command_async(s.engine, s.request, tell, &told, NULL));
    latch_wait(&told.latch);
    assert_ok(told.status);
    check_last_offset(&s, 2);
    assert_int_equal(told.calls, 1);
    end(&s);
}

TEST(an_asynchronous_call_that_is_refused_says_why)
{
    struct shop s;
    char data[300];
    struct told told = {0};
    begin(&s);
    assert_status(pawl_command_async(s.engine, s.request, NULL, NULL, &s.error), PAWL_EINVAL);
    assert_contains(s.error.text, "no function to call");
    pawl_request_free(s.request);
    assert_ok(pawl_close(s.engine));
    snprintf(data, sizeof data, "%s/data", s.dir);
    assert_ok(beds_open(data, &(pawl_options){.read_only = true}, &s.engine, &s.error));
    assert_ok(pawl_request_new(s.engine, &s.request));
    assert_status(pawl_command_async(s.engine, s.request, tell, &told, &s.error), PAWL_EREADONLY);
    assert_contains(s.error.text, "read-only");
    assert_int_equal(told.calls, 0);
    end(&s);
}

static bool check_name(void *arg, const pawl_row *row)
{
    pawl_bytes name;
    assert_ok(pawl_row_string(row, "name", &name, NULL));
    assert_true(name.size == 5 && memcmp(name.data, arg, 5) == 0);
    return true;
}

TEST(a_text_may_have_any_bytes_of_utf8_and_ends_where_its_size_says)
{
    struct shop s;
    char name[] = "a\0b\303\244 and more";
    begin(&s);
    pawl_request_begin(s.request, 7, "t.Bill");
    pawl_request_record(s.request, 1, "t.Customer");
    pawl_request_set_text(s.request, "name", (pawl_bytes){name, 5});
    assert_ok(pawl_command(s.engine, s.request, NULL, &s.error));
    assert_ok(pawl_record_read(s.engine, 7, "t.Customer", pawl_request_id(s.request, 1), NULL, check_name, name,
                               &s.error));
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(twenty_calls_need_one_check),
        RUN(the_first_error_is_the_one_that_is_kept),
        RUN(every_mistake_is_named_with_its_place_and_nothing_is_sent),
        RUN(a_new_beginning_clears_the_error),
        RUN(a_workspace_of_no_kind_is_an_error_that_is_kept),
        RUN(an_asynchronous_call_is_refused_with_the_error_that_was_kept),
        RUN(an_asynchronous_call_that_is_refused_says_why),
        RUN(a_text_may_have_any_bytes_of_utf8_and_ends_where_its_size_says),
    };
    return TEST_MAIN(tests);
}
