/* C11's threads in terms of POSIX's, for TSan.
 *
 * librdkafka calls thrd_create, mtx_lock and so on. TSan does not know these: it sees neither such a thread's
 * start nor the order that such a lock makes. In glibc they are pthreads with the same types, so here each
 * calls its pthread function, which TSan knows. Linked into a test, these symbols are found before glibc's.
 *
 * TSan cannot see either what librdkafka orders by atomic counters, so races between librdkafka and Pawl are
 * not reported. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

#define VISIBLE __attribute__((visibility("default")))

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "a mutex fits");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "a condition fits");

VISIBLE const char *__tsan_default_suppressions(void);

VISIBLE const char *__tsan_default_suppressions(void)
{
    return "race:librdkafka.so\n";
}

struct beginning {
    thrd_start_t fn;
    void *arg;
};

static void *begin(void *arg)
{
    struct beginning b = *(struct beginning *)arg;
    free(arg);
    return (void *)(intptr_t)b.fn(b.arg);
}

static int result(int error)
{
    return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

VISIBLE int thrd_create(thrd_t *thread, thrd_start_t fn, void *arg)
{
    struct beginning *b = malloc(sizeof *b);
    if (!b)
        return thrd_nomem;
    *b = (struct beginning){fn, arg};
    int error = pthread_create(thread, NULL, begin, b);
    if (error)
        free(b);
    return result(error);
}

VISIBLE int thrd_join(thrd_t thread, int *ret_value)
{
    void *value;
    int error = pthread_join(thread, &value);
    if (error == 0 && ret_value)
        *ret_value = (int)(intptr_t)value;
    return result(error);
}

VISIBLE int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    return result(pthread_mutex_init((pthread_mutex_t *)mutex, &attributes));
}

VISIBLE void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

VISIBLE int mtx_lock(mtx_t *mutex)
{
    return result(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

VISIBLE int mtx_unlock(mtx_t *mutex)
{
    return result(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

VISIBLE int cnd_init(cnd_t *condition)
{
    return result(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

VISIBLE void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}

VISIBLE int cnd_signal(cnd_t *condition)
{
    return result(pthread_cond_signal((pthread_cond_t *)condition));
}

VISIBLE int cnd_broadcast(cnd_t *condition)
{
    return result(pthread_cond_broadcast((pthread_cond_t *)condition));
}

VISIBLE int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return result(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

VISIBLE int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                          const struct timespec *restrict until)
{
    return result(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

VISIBLE void call_once(once_flag *flag, void (*fn)(void))
{
    pthread_once((pthread_once_t *)flag, fn);
}
