/* core/view/work.h: what the coordinator and the workers of view building say to each other, as bytes.
 *
 *     WORK        term u64, count u32, task IDs u64 each, ascending
 *         reply   count u32, for each: ID u64, outcome u8, words u16 and as many bytes
 *     UNCOVERED   term u64
 *         reply   count u32, for each: base u32, view u32, tablet u32
 *                 count u32, for each: base u32, rows u64
 *
 * Both verbs are refused with PAWL_EFENCED if the term is older than one that the worker has seen. */
#ifndef CORE_VIEW_WORK_H
#define CORE_VIEW_WORK_H

#include "base/arena.h"
#include "base/bytes.h"
#include "core/group0/command.h"

enum work_verb { VERB_WORK = 1, VERB_UNCOVERED = 2 };

#define WORK_TASKS_MAX ((size_t)1024) /* of a call: views of one base, built in one scan */
#define WORK_WORDS_MAX ((size_t)400)
#define UNCOVERED_MAX  ((size_t)65536) /* in a reply: the rest is asked for later */
#define BASES_MAX      ((size_t)65536)

enum work_outcome {
    WORK_FINISHED = 1,    /* covered, durably; of a unique view, also: no two rows are equal, and it binds */
    WORK_NOT_DURABLE = 2, /* covered, and not yet by the durable side: ask again */
    WORK_FAILED = 3,      /* a unique view, and two rows are equal: words names them */
    WORK_GONE = 4,        /* group0, as the worker knows it, has no such task, or it is aborted */
};

struct work_result {
    uint64_t id;
    enum work_outcome outcome;
    pawl_bytes words; /* FAILED; of others none are sent */
};

/* How many rows of a base some view of it does not cover yet, at most. An estimate: it decides whose turn it is. */
struct base_rows {
    uint32_t base;
    uint64_t rows;
};

struct uncovered_reply {
    struct uncovered *list;
    size_t count;
    struct base_rows *bases; /* that have views, ascending */
    size_t base_count;
};

/* Encoded bytes lie in the arena. Lists are at most as long as the bounds above; longer words are cut.
 * PAWL_ENOMEM. */
int work_encode(uint64_t term, const uint64_t *ids, size_t count, struct arena *arena, pawl_bytes *ret_bytes);
int work_reply_encode(const struct work_result *results, size_t count, struct arena *arena,
                      pawl_bytes *ret_bytes);
int uncovered_encode(uint64_t term, struct arena *arena, pawl_bytes *ret_bytes);
int uncovered_reply_encode(const struct uncovered_reply *reply, struct arena *arena, pawl_bytes *ret_bytes);

/* Lists lie in the arena, words are borrowed. PAWL_ECORRUPT: these are not such bytes; PAWL_ENOMEM. */
int work_decode(pawl_bytes bytes, struct arena *arena, uint64_t *ret_term, uint64_t **ret_ids,
                size_t *ret_count);
int work_reply_decode(pawl_bytes bytes, struct arena *arena, struct work_result **ret_results,
                      size_t *ret_count);
int uncovered_decode(pawl_bytes bytes, uint64_t *ret_term);
int uncovered_reply_decode(pawl_bytes bytes, struct arena *arena, struct uncovered_reply *ret_reply);

#endif
