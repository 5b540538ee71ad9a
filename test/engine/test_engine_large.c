/* test_engine_large.c: how much a handler may write for one event. */
#include "test/lib/lanes.h"

struct wanted {
    int64_t rows;
    size_t text; /* bytes, in each of them */
};

static int want(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    const struct wanted *wanted = arg;
    char *text = calloc(1, wanted->text + 1);
    int status = PAWL_OK;
    (void)ctx;
    (void)event;
    memset(text, 'x', wanted->text);
    for (int64_t row = 0; row < wanted->rows && status == PAWL_OK; row++) {
        pawl_results_upsert(results, "t.Note");
        pawl_results_set_int64(results, "event", row);
        status = pawl_results_set_int64(results, "sum", row);
        if (wanted->text > 0 && status == PAWL_OK)
            status = pawl_results_set_text(results, "text", (pawl_bytes){text, wanted->text});
    }
    free(text);
    return status;
}

static bool keep_words(void *arg, const pawl_lease *lease, uint64_t event, const char *projector)
{
    snprintf(arg, PAWL_LEASE_WORDS_MAX + 1, "%s", lease->words);
    return false;
}

/* An entry of the log has 64 MiB. A Note takes 38 bytes of it, and a text its own and eight more. */
TEST(what_a_handler_wants_is_bounded_by_what_it_comes_to_in_the_log)
{
    static const struct {
        struct wanted wanted;
        const char *words; /* NULL: it fits */
    } cases[] = {
        {{.rows = 300000}, NULL},
        {{.rows = 63, .text = (1 << 20) + 16000}, NULL},
        {{.rows = 64, .text = 1 << 20}, "larger than an entry"},
        {{.rows = 1, .text = 17 << 20}, "more than"}, /* than a row may have */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lanes_bed bed = {0};
        struct wanted wanted = cases[i].wanted;
        char words[PAWL_LEASE_WORDS_MAX + 1] = "", key[32];
        pawl_text text;
        bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
        assert_ok(pawl_projector_register(bed.engine, "t.notes", want, &wanted, &bed.error));
        uint16_t partition = pawl_partition_of(bed.engine, 1);
        bed_send(&bed, 1, "t.Ask", "ada", 1);
        int status = pawl_lanes_wait(bed.engine, "t.notes", BED_PATIENCE, &bed.error);
        assert_ok(pawl_lane_leases(bed.engine, partition, "t.notes", 0, 0, 1, keep_words, words, &bed.error));
        print_message("# %" PRId64 " rows with %zu bytes: %s %s\n", wanted.rows, wanted.text,
                      pawl_status_name(status), words);
        assert_status(status, cases[i].words ? PAWL_EBUSY : PAWL_OK);
        assert_contains(words, cases[i].words ? cases[i].words : "");
        snprintf(key, sizeof key, "[%" PRId64 "]", wanted.rows - 1);
        status = pawl_entity_get(bed.engine, 1, "t.Note", text_bytes(key), NULL, &text, &bed.error);
        assert_status(status, cases[i].words ? PAWL_ENOTFOUND : PAWL_OK);
        if (status == PAWL_OK)
            pawl_text_free(&text);
        bed_end(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(what_a_handler_wants_is_bounded_by_what_it_comes_to_in_the_log),
    };
    return TEST_MAIN(tests);
}
