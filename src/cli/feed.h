/* cli/feed.h: a command that is fed line by line and answers in order: one thread, one poll().
 *
 *     input ──feed_read──► what others work on ──feed_ring──► answers ──► output ──feed_wait──► stdout
 *
 * The owner takes lines off the input, has them worked on by other threads, which ring the bell, and puts what
 * came of them into the output. It says when it wants to read, and is done when the input has ended, nothing is
 * under way and the output is empty.
 *
 * Invariants
 *   F1  stdout is never waited for alone: what it does not take stays in the output, and the rest goes on.
 *   F2  The first SIGINT or SIGTERM ends the input; the second gives up the output too. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <sys/types.h>

#include <pawl/types.h>

#define FEED_READ_BYTES ((size_t)64 << 10)
#define FEED_OUTPUT_MAX ((size_t)1 << 20) /* an owner that respects its reader reads no more beyond this */

struct buffer {
    char *data;
    size_t size;
    size_t room;
};

/* Room for so many more. False: there is no memory. */
bool buffer_reserve(struct buffer *buffer, size_t more);

struct feed {
    int in;
    struct buffer input; /* what was read, and is not worked on yet */
    struct buffer output;
    size_t output_at; /* what of it is written */
    bool output_is_file;
    bool eof;           /* of the input, or there is a reason to stop reading */
    bool closed;        /* nobody reads stdout */
    int signal;         /* that ended it; 0: none */
    int bell;           /* eventfd */
    int signals;        /* signalfd */
    pawl_error failure; /* code PAWL_OK: none */
};

/* Before any thread is started: signals are blocked, so that they come here alone. in is borrowed. */
int feed_init(struct feed *feed, int in, pawl_error *error);
void feed_release(struct feed *feed);

/* Any thread, and even if the feed is the owner's alone to see by then: the bell is given by value. */
void feed_ring(int bell);

/* No more input, and this is why; the first reason counts. */
void feed_stop(struct feed *feed, const pawl_error *why);

static inline size_t feed_unsaid(const struct feed *feed)
{
    return feed->output.size - feed->output_at;
}

/* Wait for something to do; what concerns signals and stdout is done already. */
enum { FEED_RANG = 1, FEED_READABLE = 2 };
unsigned feed_wait(struct feed *feed, bool reading);

/* Read on, into the input; how much came is returned: 0 also if nothing did. Sets eof. PAWL_ENOMEM and errors
 * of reading are returned. */
ssize_t feed_read(struct feed *feed, pawl_error *error);

#endif
