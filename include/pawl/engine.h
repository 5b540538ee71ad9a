/* engine.h: an event store in a directory: opening and closing it, and what holds for all that is done with it.
 *
 * You describe your data in a schema (docs/SCHEMA.md), create workspaces (tenants), and send commands to them.
 * Each command becomes one event: numbered without gaps, durable before you get the answer, and applied to the
 * records that you read. Everything but the log of events is derived from it and can be derived again.
 *
 *     request ──► pawl_command ──► event in the log ──► records, entities ──► answer: offsets, IDs, numbers
 *
 *     schema.h    what may be stored               read.h     records, entities, workspaces, numbers
 *     command.h   requests, commands, answers      row.h      the fields of a row
 *     project.h   handlers                         event.h    events, as they are in the log
 *     worker.h    workers in other programs        figures.h  what it has done, and what is alarming
 *     lane.h      how projectors are doing         admin.h    verify, replay, backup, restore
 *     view.h      materialised views               token.h    access tokens, for servers
 *     pawl.h      all of these, and cluster.h for a log on Kafka
 *
 *     pawl_engine *engine;
 *     pawl_request *request;
 *     pawl_answer answer;
 *     pawl_error error;
 *     pawl_open("shop.pawl", NULL, &engine, &error);
 *     pawl_schema_apply(engine, schema_json, NULL, &error);
 *     pawl_request_new(engine, &request);
 *     pawl_workspace_create(engine, request, 7, "shop.tenant", &answer, &error);
 *     pawl_request_begin(request, 7, "shop.AddCustomer");
 *     pawl_request_record(request, 1, "shop.Customer");
 *     pawl_request_set_string(request, "name", "Ada");
 *     pawl_command(engine, request, &answer, &error);
 *     printf("%" PRIu64 "\n", pawl_request_id(request, 1));
 *
 * Threads. An engine's functions are for any thread that is not one of Pawl's own. Do not call them from inside
 * a callback: on Pawl's own threads that is PAWL_EMISUSE. Two exceptions: pawl_command_async may be called
 * anywhere, and a handler (project.h) may call everything but pawl_close. A request is used by one thread at a time, and belongs
 * to Pawl while a command with it is under way. Several engines may live in one process, on different
 * directories. After fork the child must not use an engine of the parent's, not even to close it.
 *
 * Ownership. Strings that are passed in are copied. What a callback is handed is borrowed until it returns. A
 * pawl_text is yours: pawl_text_free.
 *
 * Errors. Every function that can fail says so by its status, and in words in error, which may be NULL. A
 * refused command has written nothing and used no number. The words name the place in the request:
 * "$.records[0].fields.qty".
 *
 * Any function may end with PAWL_ENOMEM, PAWL_EMISUSE (as above), PAWL_ECLOSED (close has begun). */
#ifndef PAWL_ENGINE_H
#define PAWL_ENGINE_H

#include <pawl/lease.h>
#include <pawl/sequencer.h>
#include <pawl/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_engine pawl_engine;

/* Zero stands for the default, which each comment gives first. */
typedef struct pawl_options {
    uint32_t partitions; /* of a new directory: 16; a power of two, at most 65536 */
    uint32_t shards;     /* of a new directory: 2; at most 64, and at most partitions */
    bool must_exist;     /* PAWL_ENOTFOUND instead of making a new directory */
    bool must_be_new;    /* PAWL_EEXISTS instead of opening one that is there. An empty directory is new, and so
                              is one whose making was interrupted by a kill */
    bool read_only;      /* only read, and only what the writing process, if there is one, has written so far.
                              Implies must_exist; calls that write are PAWL_EREADONLY. After the writing
                              process was killed, pawl_unwitnessed counts the entries that are left out */

    /* Where the log is: NULL, in the directory itself; or a URL, kafka://HOST:PORT[,HOST:PORT...]/CLUSTER, on Apache
     * Kafka (docs/KAFKA.md). A directory keeps the log that it was made with; one that is on Kafka is opened without
     * its URL, too. partitions are those of the cluster. One node at a time owns a log: opening it as another one is
     * PAWL_EFENCED, which names the owner, unless take_over is set. The one that is taken over never takes back by
     * itself: its commands end with PAWL_EFENCED (pawl_owner_check). */
    const char *log;
    bool take_over;
    uint64_t
        mirror_bytes_max; /* 256 MiB: of a log on Kafka, what this node has seen last is kept in DIR/mirror, up to
                                  so many bytes, and read there. Below 1 MiB: nothing is */

    /* Called on this thread while opening derives state that the directory lacks, with the events of all partitions
     * that it has, and those of the log, 0 while that is not known. False: opening ends with PAWL_ECANCELED, and the
     * next one goes on where it was. May be NULL. */
    pawl_progress progress;
    void *progress_arg;

    uint32_t pool_threads;  /* 2 */
    uint32_t mailbox;       /* 8192 commands waiting for a shard; a power of two. Then PAWL_EBUSY. */
    size_t event_bytes_max; /* 1 MiB; at most 64 MiB */
    /* 10 s: how long a command waits for a partition that is recovering or has no room, or for a log that does not
     * answer. Then it ends with PAWL_EBUSY, or with PAWL_EUNKNOWN if the log may have it. */
    pawl_duration wait;
    uint64_t
        checkpoint_lag_max; /* 1,000,000: at most so many events of a shard are replayed after a loss of power.
                               If the checkpoint cannot keep up, commands wait for it, and after wait they end
                               with PAWL_EBUSY */

    /* Of sequences (pawl/sequencer.h), in each partition: how many numbers and workspaces are kept in memory,
     * and when the sequence storage is written. Some defaults are others than those of a sequencer that is used
     * alone: flush_events 8192, flush_interval 5 s, unflushed_max and recovery_batch 16384, workspaces_max
     * 4096. The bounds are the same; the words of PAWL_EINVAL name the field. Commands wait while unflushed_max
     * or staged_max is reached. Each value that may be unflushed takes 48 bytes, used or not. */
    pawl_sequencer_limits sequences;

    /* Of lanes: pawl/project.h. */
    pawl_duration max_run;     /* 10 minutes: after that a handler's lease is no longer extended */
    pawl_duration lease_first; /* 30 s: before it is known how long the work takes; at most 10 minutes */
    pawl_duration lease_min;   /* 1 s; the same */
    pawl_duration backoff_min; /* 100 ms after the first failure, then twice that, up to a minute */

    /* What is alarming about a lane, in all its partitions together. Zeros: as pawl/lease.h says. */
    pawl_lease_thresholds thresholds;

    const pawl_allocator *allocator;
} pawl_options;

/* Open a directory, make it if it is not there, bring the state up to the log, and be ready for commands. dir
 * is DIR or file://DIR.
 * Errors: PAWL_EINVAL (options, or not the name of a directory), PAWL_ELOCKED (another process has it: it may be
 * free soon), PAWL_EFENCED (another node has its log on Kafka, or took it over meanwhile), PAWL_ECANCELED (by progress),
 * PAWL_ECORRUPT (the log, or a state that is not of this log; error names the place), PAWL_ENOTFOUND and
 * PAWL_EEXISTS (as the options say), PAWL_EFORMAT, PAWL_EVERSION, PAWL_EACCES, PAWL_EFULL, PAWL_EIO. */
PAWL_API int pawl_open(const char *dir, const pawl_options *options, pawl_engine **ret_engine,
                       pawl_error *error);

/* Whether pawl_open could take these words: the name, the numbers and the URL. Looks neither at the directory nor at the
 * log, so that what is wrong with the words can be told from what is wrong with those. Any thread.
 * Errors: PAWL_EINVAL, as of pawl_open. */
PAWL_API int pawl_open_check(const char *dir, const pawl_options *options, pawl_error *error);

/* Answer commands under way, close everything, free the engine. Free all requests before. NULL is allowed.
 * Errors: PAWL_EMISUSE from a thread of Pawl's: nothing happened. Any other, such as PAWL_EIO: it is closed,
 * and the next opening will have a little more to do. */
PAWL_API int pawl_close(pawl_engine *engine);

/* Text that a function made. data ends with a zero that size does not count. */
typedef struct pawl_text {
    char *data;
    size_t size;
    size_t room;
    const pawl_allocator *allocator;
} pawl_text;

PAWL_API void pawl_text_free(pawl_text *text);

/* How many partitions the directory has, and in which of them a workspace lies. */
PAWL_API uint32_t pawl_partitions(const pawl_engine *engine);
PAWL_API uint16_t pawl_partition_of(const pawl_engine *engine, uint64_t wsid);

/* The directory, as a path, until close; whether it was opened for writing. Any thread. */
PAWL_API const char *pawl_engine_dir(const pawl_engine *engine);
PAWL_API bool pawl_engine_writes(const pawl_engine *engine);

/* Whether it still owns its log. PAWL_OK: it does, as far as it knows; a directory with a log of its own always does.
 * PAWL_EFENCED: another node has taken over the log on Kafka, and error names it. That is for good: nothing is written
 * until the directory is opened again, with take_over; what was acknowledged stays, and rows can still be read.
 * Any thread, also in a callback. */
PAWL_API int pawl_owner_check(pawl_engine *engine, pawl_error *error);

#ifdef __cplusplus
}
#endif
#endif
