/* test/lib/dir.h: a directory of a test's own, under TMPDIR or /tmp. */
#ifndef TEST_LIB_DIR_H
#define TEST_LIB_DIR_H

#include <ftw.h>
#include <unistd.h>

#include "test/lib/test.h"

static inline void test_dir_make(char *dir, size_t size)
{
    const char *under = getenv("TMPDIR");
    snprintf(dir, size, "%s/pawl-test-XXXXXX", under ? under : "/tmp");
    assert_non_null(mkdtemp(dir));
}

static inline int test_dir_remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static inline void test_dir_remove(const char *dir)
{
    assert_int_equal(nftw(dir, test_dir_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
