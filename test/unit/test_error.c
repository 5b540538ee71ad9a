#include "test/lib/test.h"

#include <errno.h>

#include "base/error.h"

TEST(every_status_has_a_name_and_a_text)
{
#define X(name, code, text)                                                                                    \
    assert_string_equal(pawl_status_name(PAWL_##name), "PAWL_" #name);                                         \
    assert_true(strlen(pawl_status_text(PAWL_##name)) > 3);
    PAWL_STATUS_TABLE(X)
#undef X
    assert_string_equal(pawl_status_name(12345), "PAWL_?");
}

TEST(context_goes_in_front)
{
    pawl_error e = {0};
    assert_int_equal(error_errno(&e, ENOSPC, "cannot write %s", "a"), PAWL_EFULL);
    assert_int_equal(error_wrap(&e, PAWL_EIO, "cannot open %d", 7), PAWL_EIO);
    assert_string_equal(e.text, "cannot open 7: cannot write a: No space left on device");
    assert_int_equal(e.code, PAWL_EIO);
}

TEST(context_around_nothing_takes_the_meaning_of_the_status)
{
    pawl_error e = {0};
    error_wrap(&e, PAWL_ECLOSED, "append");
    assert_string_equal(e.text, "append: closed");
}

TEST(a_text_that_does_not_fit_is_cut_visibly)
{
    pawl_error e = {0};
    char longer[2 * sizeof e.text];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    error_set(&e, PAWL_EINVAL, "%s", longer);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    assert_string_equal(e.text + sizeof e.text - 4, "...");
    error_wrap(&e, PAWL_EINVAL, "outer");
    assert_int_equal(strncmp(e.text, "outer: xxx", 10), 0);
    assert_string_equal(e.text + sizeof e.text - 4, "...");
}

TEST(a_caller_may_not_want_the_words)
{
    assert_int_equal(error_set(NULL, PAWL_EINVAL, "x"), PAWL_EINVAL);
    assert_int_equal(error_wrap(NULL, PAWL_EINVAL, "x"), PAWL_EINVAL);
    assert_int_equal(error_errno(NULL, EROFS, "x"), PAWL_EREADONLY);
}

TEST(a_program_fills_in_errors_as_pawl_does)
{
    pawl_error e = {0};
    assert_int_equal(pawl_error_errno(&e, EACCES, "cannot open %s", "a"), PAWL_EACCES);
    assert_int_equal(pawl_error_wrap(&e, PAWL_EIO, "item %d", 7), PAWL_EIO);
    assert_int_equal(e.code, PAWL_EIO);
    assert_string_equal(e.text, "item 7: cannot open a: Permission denied");
    assert_int_equal(pawl_error_set(&e, PAWL_EBUSY, "%s", "later"), PAWL_EBUSY);
    assert_int_equal(e.code, PAWL_EBUSY);
    assert_string_equal(e.text, "later");
    assert_int_equal(pawl_error_set(NULL, PAWL_EBUSY, "x"), PAWL_EBUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(every_status_has_a_name_and_a_text),
        RUN(context_goes_in_front),
        RUN(context_around_nothing_takes_the_meaning_of_the_status),
        RUN(a_text_that_does_not_fit_is_cut_visibly),
        RUN(a_caller_may_not_want_the_words),
        RUN(a_program_fills_in_errors_as_pawl_does),
    };
    return TEST_MAIN(tests);
}
