/* test/lib/child.h: runs a part of a test in a process of its own, which may have limits, or may die. */
#ifndef TEST_LIB_CHILD_H
#define TEST_LIB_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/test.h"

/* What a child returns that this machine does not let do its part. */
#define SKIPPED 77

/* Inside a child there is no cmocka to jump back to: say where, and end. */
#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            return 1;                                                                                          \
        }                                                                                                      \
    } while (0)

/* Runs fn in a process of its own; 0 if it did what it should. */
static inline int in_child(int (*fn)(void))
{
    int how = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(fn());
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how))
        print_error("the child ended with signal %d\n", WTERMSIG(how));
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

#endif
