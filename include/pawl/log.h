/* log.h: the log, from which all state is derived, for programs that want it alone.
 *
 * A log holds many streams. In each, entries have the offsets 1, 2, 3, ... with no gap; an entry that was
 * acknowledged is durable, stays where it is, and reads back as it was written. Everything else in Pawl is
 * derived from it.
 *
 *     pawl_log_open
 *     claim ──► epoch, next offset
 *     append(epoch, next), append(epoch, next + 1), ...     any number in flight
 *        └─► done: durable | refused | unknown ──► claim again, read up to its next: the true outcome
 *     pawl_log_close
 *
 * The log decides who may write, and not time: claim makes the caller the one writer of a stream, and from then
 * on every entry that carries an earlier epoch is refused.
 *
 * Requests. Each call takes a request struct that the caller owns and leaves alone until its done() has been
 * called; the implementation allocates nothing per request that it could fail to get later. done() is called
 * exactly once, never from inside the call that started it, and
 *   - on the shard that made the call, if a shard of the log's env made it (pawl_env_run);
 *   - otherwise on a thread of the log's own, where it must not block.
 * From inside done() any call on the log but pawl_log_close may be made. When the call itself returns an error,
 * nothing was started and done() is not called. Fill in the fields of a request that stand above its status,
 * and zero the rest.
 *
 * Errors that any request may end with: PAWL_ECLOSED, PAWL_ENOMEM, PAWL_EIO, PAWL_ECORRUPT. A request's error,
 * if not NULL, receives the words.
 *
 * Caveats
 *   - Outcomes of one stream come in order; between streams there is none.
 *   - Reads see what is durable, and nothing else. What was acknowledged is always visible to a read that
 *     starts afterwards in the same log.
 *   - A log that was opened read-only, beside or after another's, sees what can be shown to be durable. After a
 *     writer that was killed that may be less than it acknowledged; the rest is there once a writer has opened
 *     the log again. pawl_log_unwitnessed says how much that is, pawl_log_recover makes it durable.
 *   - The log must outlive its requests: pawl_log_close with one outstanding is PAWL_EMISUSE.
 *   - Events (plog), operations (oplog) and group0 have forms of their own, which the engine writes. Bytes
 *     of your own go to raw/N. */
#ifndef PAWL_LOG_H
#define PAWL_LOG_H

#include <pawl/env.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One entry's body has at most this many bytes. */
#define PAWL_ENTRY_BYTES_MAX ((size_t)64 << 20)

/* A stream's identity. Kinds that need no lane or generation leave them 0. */
enum pawl_stream_kind {
    PAWL_STREAM_RAW = 1,    /* raw/0: anybody's bytes                                */
    PAWL_STREAM_PLOG = 2,   /* plog/5: the events of a partition                     */
    PAWL_STREAM_OPLOG = 3,  /* oplog/5/7.2: the operations of lane 7, generation 2   */
    PAWL_STREAM_GROUP0 = 4, /* group0: the small state that all nodes share          */
};

typedef struct pawl_stream {
    uint8_t kind;
    uint16_t partition;
    uint16_t lane;
    uint32_t generation;
} pawl_stream;

/* "oplog/65535/65535.4294967295" and its end. */
#define PAWL_STREAM_TEXT_MAX 32

/* Where an entry lies, as the log understands it. Opaque, but for this: of two places in one stream the one
 * with the greater position is the later entry. {0, 0} is no place. A reader may keep it, durably, and give it
 * back to start near there; a place that no longer fits costs a search, never a wrong answer. */
typedef struct pawl_place {
    uint64_t position;
    uint64_t hint;
} pawl_place;

/* An entry as it is written and as it is read. */
typedef struct pawl_entry {
    pawl_stream stream;
    uint64_t epoch;  /* the claim it was written under; 0 on reading from a log that does not keep it */
    uint64_t offset; /* the stream's next, or it is refused */
    uint8_t kind;    /* the writer's own; the log does not look at it */
    pawl_bytes body;
} pawl_entry;

typedef struct pawl_log pawl_log;

/* claim: become the one writer of a stream.
 * Ends with PAWL_OK and epoch and next, or PAWL_EFENCED if a rival was faster (look again who should own it
 * before trying again; rival says on what assignment), or PAWL_EUNKNOWN, PAWL_EIO or PAWL_EFULL, after which it may simply be tried again.
 * After an unknown outcome it also settles what was in flight: what a read up to next does not show was not
 * written, and never will be.
 * With an assignment, a stream is not taken back: if another writer has claimed it since this log first did, on
 * the same assignment or a newer one, the claim ends with PAWL_EFENCED, and nothing is written.
 * A log may leave no trace of a claim that nothing was written under, and give its epoch again once nobody can
 * write under it any more. */
typedef struct pawl_claim pawl_claim;
struct pawl_claim {
    pawl_stream stream;
    uint64_t group0; /* position of the assignment that this claim rests on; 0 = none */
    void (*done)(pawl_claim *claim);
    void *arg;
    pawl_error *error;

    int status;
    uint64_t epoch; /* at least 1 */
    uint64_t next;  /* the offset that the next entry must have */
    uint64_t rival; /* PAWL_EFENCED: the assignment that the owner's claim rests on */

    void *impl[8];
};

/* append: entries of any streams, in order. Each entry gets its own status:
 *   PAWL_OK        durable, at its place
 *   PAWL_EFENCED   its epoch or offset was not the present one. It, and every later entry of the same stream
 *                  in this append, was not written. Other streams' entries are not affected.
 *   PAWL_EFULL     no room. Nothing of this append was written.
 *   PAWL_ETOOBIG   nothing of this append was written.
 *   PAWL_EIO       nothing of this append was written; the log has failed: claim again.
 *   PAWL_EUNKNOWN  it may or may not be there: claim again and look.
 * and status is that of the first entry that is not PAWL_OK.
 *
 * The entries and their bodies are borrowed until done().
 *
 * alone says: this caller has nothing else to do meanwhile, and nothing else in flight. A log may then do the
 * work on the calling thread, or keep a thread that is no shard waiting for it, and return PAWL_APPEND_DONE:
 * the outcome is in the request, and done() is not called.
 *
 * The call itself returns PAWL_EBUSY when too much is queued, PAWL_EINVAL for a malformed request. */
#define PAWL_APPEND_DONE 1

typedef struct pawl_append_entry {
    pawl_entry entry;
    int status;
    pawl_place place;
} pawl_append_entry;

typedef struct pawl_append pawl_append;
struct pawl_append {
    pawl_append_entry *entries;
    size_t count; /* at least 1 */
    bool alone;
    void (*done)(pawl_append *append);
    void *arg;
    pawl_error *error;

    int status;

    void *impl[8];
};

/* read: visit a stream's entries from an offset on, at most limit of them, in order, up to what is durable
 * now. visit() runs where done() runs; the entry is borrowed for the call; return false to stop.
 * On done, next is the offset after the last entry visited (from, if none was). Reading past the end, or a
 * stream that was never written, visits nothing and is PAWL_OK; on Kafka, a stream whose topic 'pawl cluster
 * init' has not made is PAWL_ENOTFOUND, and a partition that it has not is PAWL_EINVAL. at: {0, 0}, or the place of entry from.
 *
 * alone says: this caller may block. Then everything is done on the calling thread, and the call returns
 * PAWL_READ_DONE: the outcome is in the request, and done(), which may be NULL then, is not called. Not from a
 * shard that has anything else to do. */
#define PAWL_READ_DONE 1

typedef struct pawl_read pawl_read;
struct pawl_read {
    pawl_stream stream;
    uint64_t from; /* at least 1 */
    uint64_t limit;
    pawl_place at;
    bool alone;
    bool (*visit)(pawl_read *read, const pawl_entry *entry, pawl_place place);
    void (*done)(pawl_read *read);
    void *arg;
    pawl_error *error;

    int status;
    uint64_t next;

    void *impl[8];
};

/* follow: visit a stream's entries from an offset on, and go on visiting as they become durable. It ends, by
 * done(), after pawl_log_unfollow (PAWL_ECLOSED), after visit() returned false (PAWL_OK), or with an error. A
 * journal that was opened read-only is followed from a shard (pawl_env_run); elsewhere that is PAWL_EMISUSE. */
typedef struct pawl_follow pawl_follow;
struct pawl_follow {
    pawl_stream stream;
    uint64_t from;
    pawl_place at;
    bool (*visit)(pawl_follow *follow, const pawl_entry *entry, pawl_place place);
    void (*done)(pawl_follow *follow);
    void *arg;
    pawl_error *error;

    int status;
    uint64_t next;

    void *impl[16];
};

/* tail: the offset of a stream's last durable entry; 0 if there is none. */
typedef struct pawl_tail pawl_tail;
struct pawl_tail {
    pawl_stream stream;
    void (*done)(pawl_tail *tail);
    void *arg;
    pawl_error *error;

    int status;
    uint64_t last;

    void *impl[16];
};

typedef struct pawl_log_options {
    pawl_env *env;  /* borrowed until the log is closed */
    bool read_only; /* makes no difference on Kafka */
} pawl_log_options;

/* Open a log by the words that name it:
 *
 *     DIR, file://DIR    a journal in that directory, or that of the engine's directory that it is; made if it
 *                        is not there, unless it is only read
 *     kafka://...        on Apache Kafka (docs/KAFKA.md)
 *
 * Copies nothing but the words. Blocks: any thread that is not a shard. Errors: PAWL_EINVAL (not the name of a
 * log, or this build has no Kafka), PAWL_ELOCKED (another process writes to the journal), PAWL_ENOTFOUND (there
 * is none to read), PAWL_EFORMAT, PAWL_EVERSION, PAWL_ECORRUPT, PAWL_EACCES, PAWL_EFULL, PAWL_EIO,
 * PAWL_ENOMEM. */
PAWL_API int pawl_log_open(const char *where, const pawl_log_options *options, pawl_log **ret_log,
                           pawl_error *error);

/* Blocks until everything is freed; NULL is allowed. Any thread that is not a shard. PAWL_EMISUSE if a request
 * is outstanding: the log stays open then. With another error it is closed, and acknowledged entries are
 * durable. */
PAWL_API int pawl_log_close(pawl_log *log);

/* Start a request: as each one says above. Any thread. */
PAWL_API int pawl_log_claim(pawl_log *log, pawl_claim *claim);
PAWL_API int pawl_log_append(pawl_log *log, pawl_append *append);
PAWL_API int pawl_log_read(pawl_log *log, pawl_read *read);
PAWL_API int pawl_log_follow(pawl_log *log, pawl_follow *follow);
PAWL_API int pawl_log_tail(pawl_log *log, pawl_tail *tail);

/* End a follow: its done() comes with PAWL_ECLOSED. On the thread that called pawl_log_follow. PAWL_EMISUSE: it
 * is over already, or ends by itself. */
PAWL_API int pawl_log_unfollow(pawl_log *log, pawl_follow *follow);

/* Visit the streams of a log that was opened read-only of which entries are left out: they are whole, but
 * nothing shows that they are durable. count entries from offset first on; stream is their stream as text,
 * borrowed for the call. Of a log on Kafka nothing is left out. On the calling thread; any thread.
 * Errors: PAWL_ENOMEM, PAWL_EIO, PAWL_ECORRUPT. */
typedef void (*pawl_unwitnessed_visit)(void *arg, const char *stream, uint64_t first, uint64_t count);
PAWL_API int pawl_log_unwitnessed(pawl_log *log, pawl_unwitnessed_visit visit, void *arg, pawl_error *error);

/* Make durable what a writer that was killed has left: open the log for writing and close it, if it has entries
 * that are left out. Takes the journal's lock, and before it that of the engine's directory, if one was named.
 * Blocks. Errors: PAWL_ELOCKED (somebody writes, and will make them durable), PAWL_EREADONLY (it is the log of
 * another directory), PAWL_EINVAL (on Kafka), and those of opening. */
PAWL_API int pawl_log_recover(const char *where, pawl_error *error);

/* "plog/5" and back. Lanes are numbers here; their names are the schema's. text has PAWL_STREAM_TEXT_MAX bytes.
 * parse: PAWL_EINVAL, with the reason, unless the whole text is one stream. Any thread. */
PAWL_API void pawl_stream_format(pawl_stream stream, char *text);
PAWL_API int pawl_stream_parse(const char *text, pawl_stream *ret_stream, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
