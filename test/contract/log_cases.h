/* test/contract/log_cases.h: the tests of the log suite, by name; each is a function of a fresh fixture. */
#ifndef TEST_CONTRACT_LOG_CASES_H
#define TEST_CONTRACT_LOG_CASES_H

#include "test/contract/log_fixture.h"

#define LOG_CASES(X)                                                                                           \
    X(a_claim_gives_growing_epochs_and_the_next_offset)                                                        \
    X(claims_of_many_streams_at_once_all_count)                                                                \
    X(an_earlier_epoch_is_fenced_from_the_next_claim_on)                                                       \
    X(a_claim_settles_what_is_in_flight)                                                                       \
    X(entries_read_back_as_they_were_written)                                                                  \
    X(many_appends_in_flight_are_written_and_come_back_in_order)                                               \
    X(outcomes_of_a_stream_come_in_order_refused_ones_too)                                                     \
    X(a_wrong_offset_or_epoch_is_refused_with_the_streams_later_entries_and_nothing_else)                      \
    X(entries_before_a_refused_one_are_written)                                                                \
    X(an_append_without_a_claim_is_refused)                                                                    \
    X(a_caller_that_is_alone_gets_the_same_outcome)                                                            \
    X(an_entry_may_be_empty_and_may_be_as_large_as_the_limit)                                                  \
    X(an_entry_over_the_limit_is_refused_and_nothing_of_its_append_is_written)                                 \
    X(the_same_append_may_be_made_again_from_inside_its_done)                                                  \
    X(any_call_may_be_made_from_inside_done_and_sees_what_was_acknowledged)                                    \
    X(a_read_keeps_to_from_and_limit_and_stops_when_told)                                                      \
    X(a_read_alone_is_over_when_the_call_returns)                                                              \
    X(a_place_may_be_given_back_and_one_that_does_not_fit_does_no_harm)                                        \
    X(a_sweep_visits_every_stream_from_where_it_is_told_to_its_end)                                            \
    X(a_sweep_keeps_to_its_limit_and_another_goes_on_from_there)                                               \
    X(a_sweep_stops_when_told)                                                                                 \
    X(a_sweep_takes_places_back_and_one_that_does_not_fit_does_no_harm)                                        \
    X(a_sweep_sees_what_is_appended_between_its_steps_or_leaves_it_to_the_next)                                \
    X(a_malformed_sweep_is_refused)                                                                            \
    X(an_appends_place_is_the_one_that_a_read_shows)                                                           \
    X(a_stream_that_was_never_written_is_empty)                                                                \
    X(streams_that_differ_in_any_field_are_different)                                                          \
    X(a_follow_visits_what_is_there_and_then_what_comes)                                                       \
    X(a_follow_may_start_in_the_future)                                                                        \
    X(a_follow_may_be_ended_from_inside_its_visit)                                                             \
    X(an_idle_follow_can_be_ended)                                                                             \
    X(close_with_a_request_outstanding_is_misuse)                                                              \
    X(what_was_acknowledged_is_there_after_reopening)                                                          \
    X(what_was_acknowledged_is_there_after_a_crash_and_the_rest_is_a_dense_tail)                               \
    X(malformed_requests_are_refused_by_the_call)                                                              \
    X(a_rivals_claim_fences_this_log_and_both_see_the_same)                                                    \
    X(random_pipelined_appends_agree_with_a_model)

#define X(name) void name(struct log_fixture *f);
LOG_CASES(X)
#undef X

#endif
