/* test/lib/copy.h: a copy of a directory, with holes in its files where the originals have them. */
#ifndef TEST_LIB_COPY_H
#define TEST_LIB_COPY_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "test/lib/dir.h"

static struct test_dir_copying {
    const char *from;
    const char *to;
} test_dir_copying;

static inline void test_dir_copy_file(const char *from, const char *to, off_t size)
{
    static char buffer[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in < 0 && errno == ENOENT) { /* it was a moment's */
        close(out);
        unlink(to);
        return;
    }
    assert_true(in >= 0 && out >= 0);
    assert_int_equal(ftruncate(out, size), 0);
    for (off_t at = 0; (at = lseek(in, at, SEEK_DATA)) >= 0;) {
        ssize_t got = pread(in, buffer, sizeof buffer, at);
        assert_true(got >= 0);
        if (got == 0)
            break;
        assert_int_equal(pwrite(out, buffer, (size_t)got, at), got);
        at += got;
    }
    close(in);
    close(out);
}

static inline int test_dir_copy_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    char to[800];
    snprintf(to, sizeof to, "%s%s", test_dir_copying.to, path + strlen(test_dir_copying.from));
    if (type == FTW_D)
        return mkdir(to, 0700);
    if (type == FTW_F)
        test_dir_copy_file(path, to, s->st_size);
    return 0;
}

/* to must not be there. */
static inline void test_dir_copy(const char *from, const char *to)
{
    test_dir_copying = (struct test_dir_copying){from, to};
    assert_int_equal(nftw(from, test_dir_copy_one, 8, FTW_PHYS), 0);
}

#endif
