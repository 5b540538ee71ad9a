/* test_engine_measures.c: what an engine measures of itself, and what it shows of it as JSON. */
#include "test/lib/lanes.h"

#include <jansson.h>

static pawl_histogram histogram_of(struct lanes_bed *bed, pawl_histogram_kind kind)
{
    pawl_histogram histogram;
    assert_ok(pawl_histogram_get(bed->engine, kind, 0, &histogram, &bed->error));
    return histogram;
}

static json_t *parsed(int status, pawl_text *text)
{
    assert_ok(status);
    json_t *tree = json_loads(text->data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(tree);
    pawl_text_free(text);
    return tree;
}

static json_t *figures_of(struct lanes_bed *bed)
{
    pawl_text text;
    return parsed(pawl_figures_json(bed->engine, &text, &bed->error), &text);
}

TEST(every_answer_is_counted_once_by_its_outcome)
{
    struct lanes_bed bed = {0};
    pawl_outcomes before, after;
    bed_begin(&bed, LANES_SCHEMA(""));
    pawl_outcomes_get(bed.engine, &before);
    uint64_t times = histogram_of(&bed, PAWL_HISTOGRAM_COMMAND).count;
    for (uint64_t wsid = 1; wsid <= TENANTS; wsid++)
        bed_send(&bed, wsid, "t.Bill", "ada", 1);
    assert_int_equal(bed_command(bed.engine, bed.request, 99, "t.Bill", "ada", 1, NULL, &bed.error),
                     PAWL_ENOTFOUND);
    for (unsigned i = 0; i < 3; i++) { /* one event, and its answer twice more */
        pawl_request_begin(bed.request, 1, "t.Bill");
        pawl_request_record(bed.request, 1, "t.Item");
        assert_ok(pawl_request_key(bed.request, "once"));
        assert_ok(pawl_command(bed.engine, bed.request, NULL, &bed.error));
    }
    pawl_outcomes_get(bed.engine, &after);
    assert_int_equal(after.ok - before.ok, TENANTS + 1);
    assert_int_equal(after.repeated - before.repeated, 2);
    assert_int_equal(after.failed[-PAWL_ENOTFOUND] - before.failed[-PAWL_ENOTFOUND], 1);
    assert_int_equal(histogram_of(&bed, PAWL_HISTOGRAM_COMMAND).count - times, TENANTS + 4);
    bed_end(&bed);
}

TEST(histograms_tell_times_of_commands_and_syncs_and_sizes_of_batches)
{
    struct lanes_bed bed = {0};
    FOR_FILES_ONLY("the brokers sync, and make the batches");
    bed_begin(&bed, LANES_SCHEMA(""));
    pawl_histogram batches = histogram_of(&bed, PAWL_HISTOGRAM_BATCH);
    pawl_histogram syncs = histogram_of(&bed, PAWL_HISTOGRAM_SYNC);
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    bed_wait(&bed, NULL);
    pawl_histogram more = histogram_of(&bed, PAWL_HISTOGRAM_BATCH);
    assert_true(more.count > batches.count);
    assert_true(more.sum - batches.sum >= more.count - batches.count);
    assert_true(histogram_of(&bed, PAWL_HISTOGRAM_SYNC).count > syncs.count);
    assert_true(histogram_of(&bed, PAWL_HISTOGRAM_SYNC).sum > syncs.sum);

    pawl_histogram times = histogram_of(&bed, PAWL_HISTOGRAM_COMMAND);
    uint64_t half = pawl_histogram_quantile(&times, PAWL_HISTOGRAM_COMMAND, 0.5);
    uint64_t most = pawl_histogram_quantile(&times, PAWL_HISTOGRAM_COMMAND, 1);
    assert_true(half > 0 && half <= most && times.sum / times.count <= most);
    assert_int_equal(pawl_histogram_quantile(&(pawl_histogram){0}, PAWL_HISTOGRAM_COMMAND, 0.5), 0);
    assert_int_equal(histogram_of(&bed, PAWL_HISTOGRAM_ACK).count, 0); /* there are no brokers */
    assert_int_equal(pawl_histogram_get(bed.engine, 5, 0, &times, &bed.error), PAWL_EINVAL);
    assert_int_equal(
        pawl_histogram_get(bed.engine, PAWL_HISTOGRAM_SYNC, PAWL_HISTOGRAM_SECONDS_MAX + 1, &times, &bed.error),
        PAWL_EINVAL);
    assert_int_equal(pawl_histogram_bound(PAWL_HISTOGRAM_SYNC, PAWL_HISTOGRAM_BUCKETS), 0);
    bed_end(&bed);
}

TEST(partitions_and_shards_tell_where_they_are)
{
    struct lanes_bed bed = {0};
    pawl_partition_figures partition;
    pawl_shard_figures shard;
    bed_begin(&bed, LANES_SCHEMA(""));
    uint64_t offset = bed_send(&bed, 3, "t.Bill", "ada", 1);
    uint16_t where = pawl_partition_of(bed.engine, 3);
    assert_ok(pawl_partition_figures_get(bed.engine, where, &partition, &bed.error));
    assert_int_equal(partition.offset, offset);
    assert_true(partition.shard < pawl_shards(bed.engine));
    assert_int_equal(pawl_shards(bed.engine), 2);
    assert_ok(pawl_shard_figures_get(bed.engine, 0, &shard, &bed.error));
    assert_true(shard.live_bytes > 0);
    assert_int_equal(shard.mailbox + shard.commands, 0);
    assert_int_equal(pawl_shard_figures_get(bed.engine, 2, &shard, &bed.error), PAWL_EINVAL);
    assert_int_equal(pawl_partition_figures_get(bed.engine, 4, &partition, &bed.error), PAWL_EINVAL);
    bed_end(&bed);
}

static int fails(pawl_handler_ctx *ctx, const pawl_event *event, pawl_results *results, void *arg)
{
    return PAWL_EINVAL;
}

TEST(a_stalled_lane_is_an_alert_with_its_advice_until_it_is_decided)
{
    struct lanes_bed bed = {0};
    pawl_text text;
    bed_begin(&bed, LANES_SCHEMA(", \"max_attempts\": 1"));
    assert_ok(pawl_alerts_json(bed.engine, &text, &bed.error));
    assert_int_equal(text.size, 0);
    pawl_text_free(&text);
    assert_ok(pawl_projector_register(bed.engine, "t.notes", fails, NULL, &bed.error));
    bed_send(&bed, 1, "t.Ask", "ada", 1);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    BED_UNTIL(bed_status(&bed, "t.notes", partition, 0).leases.stalled == 1);

    json_t *alert = parsed(pawl_alerts_json(bed.engine, &text, &bed.error), &text);
    assert_string_equal(json_string_value(json_object_get(alert, "alert")), "stalled");
    assert_string_equal(json_string_value(json_object_get(alert, "lane")), "t.notes");
    assert_int_equal(json_integer_value(json_object_get(alert, "most_in_partition")), partition);
    assert_string_equal(json_string_value(json_object_get(alert, "advice")),
                        pawl_lease_alert_advice(PAWL_LEASE_ALERT_STALLED));
    json_t *figures = figures_of(&bed);
    assert_true(json_equal(json_array_get(json_object_get(figures, "alerts"), 0), alert));
    json_decref(figures);
    json_decref(alert);

    assert_ok(pawl_lane_void(bed.engine, partition, "t.notes", 0, 1, "nobody asks", &bed.error));
    bed_wait(&bed, NULL);
    assert_ok(pawl_alerts_json(bed.engine, &text, &bed.error));
    assert_int_equal(text.size, 0);
    pawl_text_free(&text);
    bed_end(&bed);
}

TEST(an_engine_that_only_reads_has_figures_too)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    uint64_t offset = bed_send(&bed, 1, "t.Bill", "ada", 1);
    uint16_t partition = pawl_partition_of(bed.engine, 1);
    bed_close(&bed);
    bed.options.read_only = true;
    bed_open(&bed);
    json_t *figures = figures_of(&bed);
    json_t *shown = json_array_get(json_object_get(figures, "partitions"), partition);
    assert_int_equal(json_integer_value(json_object_get(shown, "offset")), offset);
    assert_true(json_is_false(json_object_get(json_object_get(figures, "node"), "writes")));
    json_decref(figures);
    bed_end(&bed);
}

TEST(a_log_in_files_has_no_brokers_and_no_claims)
{
    struct lanes_bed bed = {0};
    pawl_log_figures log = {.kafka = true};
    size_t claims = 7;
    bed_begin(&bed, LANES_SCHEMA(""));
    assert_ok(pawl_log_figures_get(bed.engine, &log, &bed.error));
    assert_false(log.kafka);
    assert_string_equal(log.brokers, "");
    assert_ok(pawl_claim_figures_get(bed.engine, NULL, 0, &claims, &bed.error));
    assert_int_equal(claims, 0);
    json_t *figures = figures_of(&bed), *shown = json_object_get(figures, "log");
    assert_string_equal(json_string_value(json_object_get(shown, "kind")), "files");
    assert_null(json_object_get(shown, "kafka"));
    json_decref(figures);
    bed_end(&bed);
}

TEST(a_lane_tells_how_far_it_runs_ahead)
{
    struct lanes_bed bed = {0};
    bed_begin(&bed, LANES_SCHEMA(""));
    bed_send(&bed, 1, "t.Bill", "ada", 1);
    bed_wait(&bed, NULL);
    for (int reading = 0; reading < 2; reading++) {
        json_t *figures = figures_of(&bed), *lanes = json_object_get(figures, "lanes");
        assert_true(json_array_size(lanes) > 0);
        for (size_t i = 0; i < json_array_size(lanes); i++) {
            const json_t *ahead = json_object_get(json_array_get(lanes, i), "run_ahead");
            assert_true(reading ? json_is_null(ahead) : json_integer_value(ahead) > 0);
            assert_true(json_is_number(json_object_get(json_array_get(lanes, i), "repeated_time")));
        }
        json_decref(figures);
        bed_close(&bed);
        bed.options.read_only = true;
        bed_open(&bed);
    }
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(every_answer_is_counted_once_by_its_outcome),
        RUN(histograms_tell_times_of_commands_and_syncs_and_sizes_of_batches),
        RUN(partitions_and_shards_tell_where_they_are),
        RUN(a_stalled_lane_is_an_alert_with_its_advice_until_it_is_decided),
        RUN(an_engine_that_only_reads_has_figures_too),
        RUN(a_log_in_files_has_no_brokers_and_no_claims),
        RUN(a_lane_tells_how_far_it_runs_ahead),
    };
    return TEST_MAIN(tests);
}
