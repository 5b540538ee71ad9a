/* cli/talk/feed.h: for a command that gets lines and answers in order: one thread, one poll().
 *
 *     input ──feed_read──► other threads work ──feed_ring──► answers ──► output ──feed_wait──► stdout
 *
 * The owner takes lines off the input and gives them to other threads, which ring the bell when they are done.
 * It puts the answers into the output. It says when it wants to read, and is done when the input has ended,
 * nothing is under way and the output is empty.
 *
 * Invariants
 *   F1  The owner never waits for stdout alone: what stdout does not take stays in the output, and all else
 *       goes on.
 *   F2  The first SIGINT or SIGTERM ends the input; the second gives up the output too. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <sys/types.h>

#include <pawl/types.h>

#define FEED_READ_BYTES ((size_t)64 << 10)
#define FEED_OUTPUT_MAX ((size_t)1 << 20) /* an owner should read no more input beyond this */

struct buffer {
    char *data;
    size_t size;
    size_t room;
};

/* Make room for so many more bytes. False: there is no memory. */
bool buffer_reserve(struct buffer *buffer, size_t more);

struct feed {
    int in;
    struct buffer input; /* what was read and not taken yet */
    struct buffer output;
    size_t output_at; /* how many bytes of it are written */
    bool output_is_file;
    bool eof;           /* the input has ended, or there is a reason to stop reading */
    bool closed;        /* nobody reads stdout */
    int signal;         /* the signal that ended it; 0: none */
    int bell;           /* eventfd */
    int signals;        /* signalfd */
    pawl_error failure; /* code PAWL_OK: none */
};

/* Call it before any thread is started: it blocks signals, so that they come here only. Borrows in. */
int feed_init(struct feed *feed, int in, pawl_error *error);
void feed_release(struct feed *feed);

/* Ring the bell, from any thread. The bell is given by value, because the feed itself belongs to its owner's
 * thread. */
void feed_ring(int bell);

/* Take no more input, for this reason; the first reason counts. */
void feed_stop(struct feed *feed, const pawl_error *why);

static inline size_t feed_unsaid(const struct feed *feed)
{
    return feed->output.size - feed->output_at;
}

/* Wait for something to do. Signals and stdout are dealt with inside. */
enum { FEED_RANG = 1, FEED_READABLE = 2 };
unsigned feed_wait(struct feed *feed, bool reading);

/* Read into the input. Returns how many bytes came, perhaps 0. Sets eof. PAWL_ENOMEM; errors of reading. */
ssize_t feed_read(struct feed *feed, pawl_error *error);

#endif
