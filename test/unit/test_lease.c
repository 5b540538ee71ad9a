/* What may be done with leased numbers, and what comes of it: scripts that read as the specification.
 * test/lib/lease.h says how they are written. */
#include "test/lib/test.h"

#include "test/lib/lease.h"

TEST(results_leave_in_the_order_of_their_numbers)
{
    play(NULL, "bind 3           -> 1 2 3\n"
               "peek             -> 1\n"
               "acquire ab       -> a=1 b=2\n"
               "peek             -> 3\n"
               "ready b          -> ok\n"
               "take             -> none\n"
               "ready a          -> ok\n"
               "take             -> 1=a 2=b\n"
               "take             -> none\n"
               "commit 2         -> ok\n"
               "list             -> 3:bound\n"
               "list 1           -> 1:committed 2:committed 3:bound\n"
               "figures bound taken watermark active waiting acquired committed -> 3 2 2 0 0 2 2\n");
}

TEST(a_hole_holds_up_what_is_behind_it_and_nothing_before_it)
{
    play(NULL, "bind 6           -> 1 2 3 4 5 6\n"
               "acquire abcdef   -> a=1 b=2 c=3 d=4 e=5 f=6\n"
               "ready f          -> ok\n"
               "ready d          -> ok\n"
               "ready a          -> ok\n"
               "ready b          -> ok\n"
               "take 1           -> 1=a\n"
               "take             -> 2=b\n"
               "figures waiting  -> 2\n"
               "commit 1         -> ok\n"
               "ready c          -> ok\n"
               "take             -> 3=c 4=d\n"
               "commit 4         -> ok\n"
               "ready e          -> ok\n"
               "take             -> 5=e 6=f\n"
               "commit 6         -> ok\n");
}

TEST(each_projection_has_a_queue_of_its_own_and_all_share_the_order)
{
    pawl_leases_options two = {.projections = 2};
    play(&two, "bind             -> 1\n"
               "bind p1          -> 2\n"
               "bind             -> 3\n"
               "peek p1          -> 2\n"
               "acquire b p1     -> b=2\n"
               "acquire x p1     -> not found\n"
               "ready b          -> ok\n"
               "take             -> none\n"
               "acquire ac       -> a=1 c=3\n"
               "ready c          -> ok\n"
               "ready a          -> ok\n"
               "take             -> 1=a 2=b 3=c\n"
               "bind p2          -> invalid\n"
               "acquire x p2     -> invalid\n"
               "peek p2          -> none\n"
               "policy void 1 p2 -> invalid\n");
}

TEST(an_expired_number_goes_to_another_with_twice_the_time_and_the_first_is_fenced)
{
    play(NULL, "bind             -> 1\n"
               "acquire a        -> a=1\n"
               "look 1           -> leased try 1 for 30s\n"
               "wait 29999ms     -> quiet\n"
               "wait 3ms         -> changed 1\n"
               "look 1           -> bound try 1 for 60s \"it took longer than its lease\"\n"
               "acquire b        -> b=1\n"
               "look 1           -> leased try 2 for 60s \"it took longer than its lease\"\n"
               "ready a          -> fenced\n"
               "extend a         -> fenced\n"
               "release a        -> fenced\n"
               "fail a           -> fenced\n"
               "break a          -> fenced\n"
               "ready b          -> ok\n"
               "take             -> 1=b\n"
               "ready a          -> fenced\n"
               "commit 1         -> ok\n"
               "ready a          -> fenced\n"
               "figures expired fenced -> 1 7\n");
}

TEST(the_time_is_doubled_up_to_ten_minutes_and_slowness_never_makes_a_void)
{
    play(NULL, "bind             -> 1\n"
               "policy void 1    -> ok\n"
               "acquire a        -> a=1\n"
               "wait 31s         -> changed 1\n"
               "acquire a        -> a=1\n"
               "wait 61s         -> changed 1\n"
               "acquire a        -> a=1\n"
               "wait 121s        -> changed 1\n"
               "acquire a        -> a=1\n"
               "wait 241s        -> changed 1\n"
               "acquire a        -> a=1\n"
               "wait 481s        -> changed 1\n"
               "acquire a        -> a=1\n"
               "look 1           -> leased try 6 for 600s \"it took longer than its lease\"\n"
               "wait 601s        -> changed 1\n"
               "acquire a for 5s -> a=1\n"
               "look 1           -> leased try 7 for 600s \"it took longer than its lease\"\n"
               "ready a          -> ok\n"
               "take             -> 1=a\n");
}

TEST(a_late_result_counts_while_nobody_else_has_the_number)
{
    play(NULL, "bind 2           -> 1 2\n"
               "acquire ab       -> a=1 b=2\n"
               "wait 3600s       -> changed 1\n"
               "list             -> 1:bound 2:bound\n"
               "ready b          -> ok\n"
               "acquire c        -> c=1\n"
               "acquire d        -> not found\n"
               "ready a          -> fenced\n"
               "ready c          -> ok\n"
               "take             -> 1=c 2=b\n");
}

TEST(extending_sets_a_new_deadline_and_takes_an_expired_number_back)
{
    play(NULL, "bind             -> 1\n"
               "acquire a for 5s -> a=1\n"
               "wait 4s          -> quiet\n"
               "extend a for 10s -> ok\n"
               "look 1           -> leased try 1 for 14s\n"
               "wait 9s          -> quiet\n"
               "wait 2s          -> changed 1\n"
               "look 1           -> bound try 1 for 28s \"it took longer than its lease\"\n"
               "extend a for 5s  -> ok\n"
               "look 1           -> leased try 1 for 20s \"it took longer than its lease\"\n"
               "acquire b        -> not found\n"
               "extend a         -> ok\n"
               "look 1           -> leased try 1 for 45s \"it took longer than its lease\"\n"
               "extend a for 9999s -> ok\n"
               "look 1           -> leased try 1 for 615s \"it took longer than its lease\"\n"
               "ready a          -> ok\n"
               "extend a         -> fenced\n"
               "wait 1000s       -> quiet\n"
               "take             -> 1=a\n");
}

TEST(a_released_attempt_does_not_count)
{
    play(NULL, "bind 2           -> 1 2\n"
               "acquire ab       -> a=1 b=2\n"
               "release a no time -> ok\n"
               "release a no time -> fenced\n"
               "look 1           -> bound for 30s \"no time\"\n"
               "ready a          -> fenced\n"
               "acquire c        -> c=1\n"
               "look 1           -> leased try 1 for 30s \"no time\"\n"
               "wait 31s         -> changed 1\n"
               "release c        -> ok\n"
               "look 1           -> bound for 60s\n"
               "ready c          -> fenced\n"
               "acquire d        -> d=1\n"
               "look 1           -> leased try 1 for 60s\n"
               "figures released expired -> 2 2\n");
}

TEST(what_fails_is_tried_again_later_and_each_time_twice_as_late)
{
    play(NULL, "bind             -> 1\n"
               "acquire a        -> a=1\n"
               "fail a no disk   -> ok\n"
               "fail a no disk   -> fenced\n"
               "ready a          -> fenced\n"
               "look 1           -> backing off try 1 for 30s \"no disk\"\n"
               "acquire b        -> not found\n"
               "wait 49ms        -> quiet\n"
               "wait 53ms        -> changed 1\n"
               "acquire b        -> b=1\n"
               "fail b           -> ok\n"
               "look 1           -> backing off try 2 for 30s\n"
               "wait 99ms        -> quiet\n"
               "wait 103ms       -> changed 1\n"
               "acquire c        -> c=1\n"
               "fail c           -> ok\n"
               "wait 199ms       -> quiet\n"
               "wait 203ms       -> changed 1\n"
               "figures failed   -> 3\n");
}

TEST(what_is_postponed_comes_again_after_a_back_off_and_the_attempt_does_not_count)
{
    play(NULL, "bind             -> 1\n"
               "policy void 1    -> ok\n"
               "acquire a        -> a=1\n"
               "postpone a no room -> ok\n"
               "postpone a no room -> fenced\n"
               "ready a          -> fenced\n"
               "look 1           -> backing off for 30s \"no room\"\n"
               "acquire b        -> not found\n"
               "wait 49ms        -> quiet\n"
               "wait 53ms        -> changed 1\n"
               "acquire b        -> b=1\n"
               "postpone b       -> ok\n"
               "wait 99ms        -> quiet\n"
               "wait 103ms       -> changed 1\n"
               "acquire c        -> c=1\n"
               "wait 31s         -> changed 1\n"
               "postpone c       -> ok\n" /* it has expired, and nobody else has begun */
               "acquire d        -> not found\n"
               "retry 1          -> ok\n"
               "acquire d        -> d=1\n"
               "look 1           -> leased try 1 for 60s\n"
               "postpone d       -> ok\n"
               "wait 49ms        -> quiet\n"
               "wait 53ms        -> changed 1\n"
               "figures released expired failed voids -> 4 1 0 0\n");
}

TEST(the_back_off_has_an_end)
{
    pawl_leases_options options = {.backoff_max = 150 * PAWL_MILLISECOND, .attempts_max = 99};
    struct desk desk;
    desk_open(&desk, &options);
    desk_play(&desk, "bind -> 1\n");
    for (int i = 0; i < 50; i++)
        desk_play(&desk, "acquire a  -> a=1\n"
                         "fail a     -> ok\n"
                         "wait 152ms -> changed 1\n");
    desk_close(&desk);
}

TEST(what_fails_too_often_waits_for_somebody_to_decide)
{
    play(NULL, "bind 2           -> 1 2\n"
               "policy stall 2   -> ok\n"
               "acquire ab       -> a=1 b=2\n"
               "fail a           -> ok\n"
               "wait 1s          -> changed 1\n"
               "acquire a        -> a=1\n"
               "fail a no disk   -> ok\n"
               "look 1           -> stalled try 2 for 30s \"no disk\"\n"
               "figures stalled alerts -> 1 16\n"
               "wait 1000s       -> changed 1\n" /* that was 2 */
               "acquire cd       -> c=2\n"
               "retry 2          -> not found\n"
               "retry 1          -> ok\n"
               "retry 1          -> not found\n"
               "retry 3          -> not found\n"
               "acquire d        -> d=1\n"
               "look 1           -> leased try 3 for 30s \"no disk\"\n"
               "fail d           -> ok\n" /* it has all attempts before it again */
               "look 1           -> backing off try 3 for 30s\n"
               "retry 1          -> ok\n"
               "acquire d        -> d=1\n"
               "ready d          -> ok\n"
               "figures stalled alerts -> 0 0\n"
               "take             -> 1=d\n");
}

TEST(by_policy_what_fails_too_often_becomes_a_void_that_says_why)
{
    play(NULL, "bind 2           -> 1 2\n"
               "policy void 2    -> ok\n"
               "acquire ab       -> a=1 b=2\n"
               "ready b          -> ok\n"
               "fail a           -> ok\n"
               "wait 1s          -> changed 1\n"
               "acquire a        -> a=1\n"
               "fail a no disk   -> ok\n"
               "look 1           -> ready try 2 for 1s void \"no disk\"\n"
               "ready a          -> fenced\n"
               "take             -> 1=void \"no disk\" 2=b\n"
               "repeat 2         -> ok\n"
               "repeat 1         -> ok\n"
               "take             -> 1=void \"no disk\"\n"
               "commit 1         -> ok\n"
               "look 1           -> committed try 2 for 1s void\n"
               "ready a          -> fenced\n"
               "figures voids failed -> 1 2\n");
}

TEST(a_permanent_failure_is_a_void_at_once)
{
    play(NULL, "bind             -> 1\n"
               "acquire a        -> a=1\n"
               "break a bad JSON -> ok\n"
               "break a bad JSON -> fenced\n"
               "take             -> 1=void \"bad JSON\"\n"
               "commit 1         -> ok\n");
}

TEST(an_expired_attempt_that_fails_after_all_has_failed)
{
    play(NULL, "bind 3           -> 1 2 3\n"
               "policy stall 1   -> ok\n"
               "acquire abc      -> a=1 b=2 c=3\n"
               "wait 31s         -> changed 1\n"
               "fail a late      -> ok\n"
               "break b worse    -> ok\n"
               "policy stall 5   -> ok\n"
               "fail c           -> ok\n"
               "list             -> 1:stalled 2:ready 3:backing off\n"
               "acquire d        -> not found\n");
}

TEST(an_operator_takes_a_lease_back)
{
    play(NULL, "bind             -> 1\n"
               "reclaim 1        -> not found\n"
               "acquire a        -> a=1\n"
               "reclaim 1        -> ok\n"
               "reclaim 1        -> not found\n"
               "reclaim 2        -> not found\n"
               "look 1           -> bound try 1 for 30s \"its lease was taken back\"\n"
               "ready a          -> fenced\n"
               "acquire b        -> b=1\n"
               "ready a          -> fenced\n"
               "ready b          -> ok\n"
               "reclaim 1        -> not found\n"
               "figures expired released failed -> 0 0 0\n");
}

TEST(an_operator_voids_a_number_in_any_state_before_it_is_ready)
{
    play(NULL, "bind 7           -> 1 2 3 4 5 6 7\n"
               "policy stall 1   -> ok\n"
               "acquire abcde    -> a=1 b=2 c=3 d=4 e=5\n"
               "fail b           -> ok\n" /* stalled */
               "policy stall 5   -> ok\n"
               "fail c           -> ok\n" /* backing off */
               "release d        -> ok\n" /* came back */
               "ready e          -> ok\n"
               "void 1 one       -> ok\n"
               "void 2 two       -> ok\n"
               "void 3 three     -> ok\n"
               "void 4 four      -> ok\n"
               "void 5 five      -> not found\n"
               "void 6 six       -> ok\n" /* fresh */
               "void 8           -> not found\n"
               "ready a          -> fenced\n"
               "acquire xy       -> x=7\n"
               "ready x          -> ok\n"
               "take 4           -> 1=void \"one\" 2=void \"two\" 3=void \"three\" 4=void \"four\"\n"
               "void 4           -> not found\n"
               "take             -> 5=e 6=void \"six\" 7=x\n"
               "wait 1000s       -> quiet\n"
               "commit 7         -> ok\n"
               "void 7           -> not found\n"
               "figures voids    -> 5\n");
}

TEST(handing_in_again_under_the_same_id_is_harmless)
{
    pawl_leases_options few = {.remembered = 2};
    play(&few, "bind 4           -> 1 2 3 4\n"
               "acquire abcd     -> a=1 b=2 c=3 d=4\n"
               "ready a          -> ok\n"
               "steal z a\n"
               "ready z          -> ok again\n"
               "take             -> 1=a\n" /* not z's */
               "ready a          -> ok again\n"
               "commit 1         -> ok\n"
               "ready a          -> ok again\n"
               "look 1           -> committed try 1 for 30s\n"
               "ready b          -> ok\n"
               "ready c          -> ok\n"
               "take             -> 2=b 3=c\n"
               "commit 3         -> ok\n"
               "ready a          -> fenced\n" /* forgotten by now */
               "ready b          -> ok again\n"
               "ready c          -> ok again\n"
               "release c        -> fenced\n"
               "look 1           -> committed try 1 for 30s\n"
               "list 1           -> 2:committed 3:committed 4:leased\n");
}

TEST(nothing_counts_without_the_present_id)
{
    play(NULL, "bind 3           -> 1 2 3\n"
               "forge z 3\n"
               "ready z          -> fenced\n"
               "acquire ab       -> a=1 b=2\n"
               "forge z 1\n"
               "ready z          -> fenced\n"
               "extend z         -> fenced\n"
               "release z        -> fenced\n"
               "fail z           -> fenced\n"
               "break z          -> fenced\n"
               "forge z 4\n"
               "ready z          -> not found\n"
               "extend z         -> not found\n"
               "release z        -> not found\n"
               "fail z           -> not found\n"
               "forge z 0\n"
               "ready z          -> not found\n"
               "list             -> 1:leased 2:leased 3:bound\n"
               "figures fenced   -> 6\n");
}

TEST(numbers_that_came_back_go_first_and_the_lowest_of_them)
{
    play(NULL, "bind 6           -> 1 2 3 4 5 6\n"
               "acquire abcde    -> a=1 b=2 c=3 d=4 e=5\n"
               "release d        -> ok\n"
               "release b        -> ok\n"
               "release e        -> ok\n"
               "release c        -> ok\n"
               "peek             -> 2\n"
               "ready a          -> ok\n"
               "acquire bcdefg   -> b=2 c=3 d=4 e=5 f=6\n");
}

TEST(what_cannot_be_committed_is_left_to_the_policy_at_once)
{
    play(NULL, "bind 2           -> 1 2\n"
               "acquire ab       -> a=1 b=2\n"
               "ready a          -> ok\n"
               "ready b          -> ok\n"
               "take             -> 1=a 2=b\n"
               "refuse 1 why     -> misuse\n"
               "refuse 2 by zero -> ok\n"
               "look 2           -> stalled try 1 for 30s \"by zero\"\n"
               "ready b          -> fenced\n"
               "commit 1         -> ok\n"
               "retry 2          -> ok\n"
               "policy void 5    -> ok\n"
               "acquire b        -> b=2\n"
               "ready b          -> ok\n"
               "take             -> 2=b\n"
               "refuse 2 by zero -> ok\n"
               "take             -> 2=void \"by zero\"\n"
               "refuse 2 again   -> misuse\n"
               "commit 2         -> ok\n"
               "figures voids failed -> 1 2\n");
}

TEST(the_number_taken_last_can_be_worked_on_again)
{
    play(NULL, "bind 4           -> 1 2 3 4\n"
               "acquire abc      -> a=1 b=2 c=3\n"
               "ready a          -> ok\n"
               "ready b          -> ok\n"
               "repeat 1         -> misuse\n"
               "repeat 0         -> misuse\n"
               "take             -> 1=a 2=b\n"
               "repeat 1         -> misuse\n"
               "repeat 3         -> misuse\n"
               "repeat 2         -> ok\n"
               "look 2           -> bound for 30s\n"
               "ready b          -> fenced\n"
               "ready c          -> ok\n"
               "take             -> none\n"
               "peek             -> 2\n"
               "acquire d        -> d=2\n"
               "look 2           -> leased try 1 for 1s\n"
               "ready d          -> ok\n"
               "take             -> 2=d 3=c\n"
               "commit 3         -> ok\n"
               "repeat 3         -> misuse\n"
               "figures repeated failed -> 1 0\n");
}

TEST(what_is_known_to_be_in_vain_is_worked_on_again_before_its_turn)
{
    play(NULL, "bind 4           -> 1 2 3 4\n"
               "acquire abc      -> a=1 b=2 c=3\n"
               "ready b          -> ok\n"
               "early 1          -> misuse\n" /* the next in turn is not interrupted */
               "early 4          -> not found\n"
               "early 5          -> not found\n"
               "early 2          -> ok\n"
               "early 3          -> ok\n"
               "early 3          -> not found\n"
               "ready b          -> fenced\n"
               "ready c          -> fenced\n"
               "peek             -> 2\n"
               "ready a          -> ok\n"
               "take             -> 1=a\n"
               "acquire de       -> d=2 e=3\n"
               "look 2           -> leased try 1 for 1s\n" /* neither an attempt nor a failure */
               "look 3           -> leased try 1 for 1s\n"
               "ready d          -> ok\n"
               "take             -> 2=d\n"
               "early 2          -> not found\n"
               "figures repeated failed active waiting -> 2 0 1 0\n");
}

TEST(a_void_is_not_worked_on_again)
{
    play(NULL, "bind 2           -> 1 2\n"
               "void 2           -> ok\n"
               "early 2          -> not found\n");
}

TEST(a_held_number_is_not_given_out_until_it_is_free_or_the_next_in_turn)
{
    play(NULL, "bind 5           -> 1 2 3 4 5\n"
               "hold 1           -> misuse\n"
               "hold 2           -> ok\n"
               "hold 2           -> ok\n"
               "hold 4           -> ok\n"
               "hold 6           -> not found\n"
               "acquire abx      -> a=1 b=3 x=5\n"
               "acquire y        -> not found\n"
               "hold 3           -> not found\n"
               "free 4           -> ok\n"
               "acquire d        -> d=4\n"
               "ready a          -> ok\n"
               "take             -> 1=a\n"
               "peek             -> 2\n"
               "acquire c        -> c=2\n"
               "ready c          -> ok\n"
               "ready b          -> ok\n"
               "take             -> 2=c 3=b\n");
}

TEST(only_what_was_taken_is_committed)
{
    play(NULL, "bind 3           -> 1 2 3\n"
               "commit 0         -> ok\n" /* nothing, which it is already */
               "commit 1         -> misuse\n"
               "acquire abc      -> a=1 b=2 c=3\n"
               "ready a          -> ok\n"
               "ready b          -> ok\n"
               "commit 1         -> misuse\n"
               "take             -> 1=a 2=b\n"
               "commit 3         -> misuse\n"
               "commit 2         -> ok\n"
               "commit 2         -> ok\n"
               "commit 1         -> misuse\n"
               "figures watermark committed -> 2 2\n");
}

TEST(a_full_window_is_busy_until_a_commit)
{
    pawl_leases_options small = {.window = 4, .next = 11};
    play(&small, "bind 5           -> 11 12 13 14 busy\n"
                 "acquire abcde    -> a=11 b=12 c=13 d=14\n"
                 "ready b          -> ok\n"
                 "ready a          -> ok\n"
                 "take             -> 11=a 12=b\n"
                 "bind             -> busy\n"
                 "commit 11        -> ok\n"
                 "bind 2           -> 15 busy\n"
                 "list             -> 12:taken 13:leased 14:leased 15:bound\n"
                 "look 11          -> committed try 1 for 30s\n"
                 "peek             -> 15\n");
}

TEST(a_window_of_one_is_a_queue_of_one)
{
    pawl_leases_options one = {.window = 1};
    play(&one, "bind 2           -> 1 busy\n"
               "acquire a        -> a=1\n"
               "ready a          -> ok\n"
               "take             -> 1=a\n"
               "commit 1         -> ok\n"
               "bind 2           -> 2 busy\n"
               "ready a          -> ok again\n"
               "acquire b        -> b=2\n");
}

TEST(a_reset_forgets_all_that_is_not_committed_and_fences_everybody)
{
    play(NULL, "bind 6           -> 1 2 3 4 5 6\n"
               "acquire abcde    -> a=1 b=2 c=3 d=4 e=5\n"
               "ready a          -> ok\n"
               "take             -> 1=a\n"
               "commit 1         -> ok\n"
               "ready b          -> ok\n"
               "ready c          -> ok\n"
               "take 1           -> 2=b\n"
               "fail e           -> ok\n"
               "reset 1          -> misuse\n"
               "list             -> 2:taken 3:ready 4:leased 5:backing off 6:bound\n"
               "reset 2          -> 2=b 3=c 4 5 6 ok\n"
               "figures bound taken watermark active waiting -> 1 1 1 0 0\n"
               "ready d          -> not found\n"
               "ready a          -> ok again\n"
               "bind 3           -> 2 3 4\n"
               "ready d          -> fenced\n"
               "ready b          -> fenced\n"
               "acquire xyz for 30s -> x=2 y=3 z=4\n"
               "ready b          -> fenced\n"
               "wait 29s         -> quiet\n"
               "ready x          -> ok\n"
               "take             -> 2=x\n"
               "reset 100        -> 2=x 3 4 ok\n"
               "ready y          -> fenced\n"
               "bind             -> 100\n"
               "list 1           -> 1:committed 100:bound\n"
               "wait 1000s       -> quiet\n");
}

TEST(a_clock_that_jumps_expires_what_it_jumped_over_and_nothing_else)
{
    play(NULL, "bind 3           -> 1 2 3\n"
               "acquire a for 5s -> a=1\n"
               "acquire b for 500s -> b=2\n"
               "fail b           -> ok\n"
               "acquire c for 500s -> c=3\n"
               "jump 100s        -> changed 1\n"
               "list             -> 1:bound 2:bound 3:leased\n"
               "jump 0s          -> quiet\n"
               "ready a          -> ok\n"
               "jump 500s        -> changed 1\n"
               "list             -> 1:ready 2:bound 3:bound\n"
               "jump 9999999999s -> quiet\n"
               "ready c          -> ok\n"
               "estimate         -> 325s\n" /* twice: 100 s, and an eighth of the rest to 10 minutes */
    );
}

TEST(asking_for_a_time_is_granted_up_to_the_greatest)
{
    play(NULL, "bind 2           -> 1 2\n"
               "acquire a for 5ms -> a=1\n"
               "look 1           -> leased try 1 for 5ms\n"
               "acquire b for 86400s -> b=2\n"
               "look 2           -> leased try 1 for 600s\n"
               "wait 7ms         -> changed 1\n"
               "acquire a for 5ms -> a=1\n"
               "look 1           -> leased try 2 for 10ms \"it took longer than its lease\"\n");
}

TEST(a_lease_never_ends_early_and_at_most_a_tick_late)
{
    struct desk desk;
    desk_open(&desk, NULL);
    desk_play(&desk, "bind                 -> 1\n");
    for (int i = 0; i < 20; i++)
        desk_play(&desk, "acquire a for 600s   -> a=1\n"
                         "extend a for 5ms     -> ok\n"
                         "wait 4999999ns       -> quiet\n"
                         "wait 1048578ns       -> changed 1\n"
                         "wait 77777ns         -> quiet\n");
    desk_close(&desk);
}

TEST(without_a_timer_acquire_and_tick_let_happen_what_is_due)
{
    pawl_leases_options untimed = {.untimed = true};
    play(&untimed, "tick             -> quiet, nothing runs\n"
                   "bind 2           -> 1 2\n"
                   "acquire ab       -> a=1 b=2\n"
                   "tick             -> quiet, later\n"
                   "wait 31s         -> quiet\n"
                   "list             -> 1:leased 2:leased\n"
                   "acquire c        -> c=1\n"
                   "list             -> 1:leased 2:bound\n"
                   "tick             -> changed 1, later\n"
                   "tick             -> quiet, later\n"
                   "wait 61s         -> quiet\n"
                   "tick             -> changed 1, nothing runs\n"
                   "list             -> 1:bound 2:bound\n");
}

TEST(without_a_timer_an_acquire_in_vain_forgets_no_deadline)
{
    pawl_leases_options untimed = {.untimed = true, .projections = 2};
    play(&untimed, "bind 2           -> 1 2\n"
                   "acquire a for 1s -> a=1\n"
                   "acquire b for 10s -> b=2\n"
                   "ready a          -> ok\n"
                   "wait 2s          -> quiet\n"
                   "acquire x p1     -> not found\n"
                   "wait 9s          -> quiet\n"
                   "acquire c        -> c=2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(results_leave_in_the_order_of_their_numbers),
        RUN(a_hole_holds_up_what_is_behind_it_and_nothing_before_it),
        RUN(each_projection_has_a_queue_of_its_own_and_all_share_the_order),
        RUN(an_expired_number_goes_to_another_with_twice_the_time_and_the_first_is_fenced),
        RUN(the_time_is_doubled_up_to_ten_minutes_and_slowness_never_makes_a_void),
        RUN(a_late_result_counts_while_nobody_else_has_the_number),
        RUN(extending_sets_a_new_deadline_and_takes_an_expired_number_back),
        RUN(a_released_attempt_does_not_count),
        RUN(what_fails_is_tried_again_later_and_each_time_twice_as_late),
        RUN(what_is_postponed_comes_again_after_a_back_off_and_the_attempt_does_not_count),
        RUN(the_back_off_has_an_end),
        RUN(what_fails_too_often_waits_for_somebody_to_decide),
        RUN(by_policy_what_fails_too_often_becomes_a_void_that_says_why),
        RUN(a_permanent_failure_is_a_void_at_once),
        RUN(an_expired_attempt_that_fails_after_all_has_failed),
        RUN(an_operator_takes_a_lease_back),
        RUN(an_operator_voids_a_number_in_any_state_before_it_is_ready),
        RUN(handing_in_again_under_the_same_id_is_harmless),
        RUN(nothing_counts_without_the_present_id),
        RUN(numbers_that_came_back_go_first_and_the_lowest_of_them),
        RUN(what_cannot_be_committed_is_left_to_the_policy_at_once),
        RUN(the_number_taken_last_can_be_worked_on_again),
        RUN(what_is_known_to_be_in_vain_is_worked_on_again_before_its_turn),
        RUN(a_void_is_not_worked_on_again),
        RUN(a_held_number_is_not_given_out_until_it_is_free_or_the_next_in_turn),
        RUN(only_what_was_taken_is_committed),
        RUN(a_full_window_is_busy_until_a_commit),
        RUN(a_window_of_one_is_a_queue_of_one),
        RUN(a_reset_forgets_all_that_is_not_committed_and_fences_everybody),
        RUN(a_clock_that_jumps_expires_what_it_jumped_over_and_nothing_else),
        RUN(asking_for_a_time_is_granted_up_to_the_greatest),
        RUN(a_lease_never_ends_early_and_at_most_a_tick_late),
        RUN(without_a_timer_acquire_and_tick_let_happen_what_is_due),
        RUN(without_a_timer_an_acquire_in_vain_forgets_no_deadline),
    };
    return TEST_MAIN(tests);
}
