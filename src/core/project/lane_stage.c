/* core/project/lane_stage.c: a number's turn.
 *
 *     void                            an operation that says why
 *     quick                           exploded here, on all that is staged before it
 *     a run that stands               as it was made
 *     its rows do not stand           exploded again: here, or elsewhere if it looked at many rows
 *     what its handler read does not  worked on again, from the beginning
 *     its handler failed              that stands too: now it counts
 *     it cannot be done               the policy decides, with the reason */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "core/project/lane_impl.h"

#define RETRY (10 * PAWL_MILLISECOND)

static void tell(struct run *run, int status)
{
    if (run)
        run->finished(run, status);
}

static struct operation operation_of(struct lane *lane, const pawl_turn *turn, const struct lane_work *work)
{
    return (struct operation){.kind = OPERATION_WRITES,
                              .projector = work->projector->id,
                              .attempt = turn->attempt,
                              .number = turn->number,
                              .id = {turn->operation.high, turn->operation.low},
                              .event = work->event->offset,
                              .wsid = work->wsid,
                              .schema = work->schema->position,
                              .time = pawl_env_wall_now(lane->options.env)};
}

/* Behind here nothing can fail. */
static void stage(struct lane *lane, struct writer_batch *batch, const struct operation *op, pawl_bytes body,
                  const struct changes *changes, struct run *run)
{
    recent_note(lane->recent, op, changes);
    lane_staged(batch)[batch->count] = (struct lane_staged){.changes = *changes, .run = run};
    writer_add(batch, op->number, body);
    lane->staged = op->number;
}

/* Nobody's fault, and perhaps over in a while; or the end of this lane. */
static bool stumble(struct lane *lane, const pawl_turn *turn, struct run *run, int status)
{
    (void)pawl_leases_repeat(lane->leases, turn->number); /* the run is no longer its result */
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        error_wrap(&lane->writer.error, status, "partition %u, operation %" PRIu64, lane->options.partition,
                   turn->number);
        writer_refuse(&lane->writer, status);
    } else
        writer_pause(&lane->writer, RETRY);
    tell(run, PAWL_ECONFLICT);
    return false;
}

/* It would come to the same whoever tried it. The reason is for the table, for whoever handed it in, and for
 * whoever handed it in again; a run has it in error. */
static bool refuse(struct lane *lane, const pawl_turn *turn, struct run *run, int status, const char *words)
{
    (void)pawl_leases_refuse(lane->leases, turn->number, words);
    lane_work(lane, turn->number)->at_turn = false;
    lane_tell_refused(lane, turn, status, words);
    if (run && words != run->error.text)
        error_set(&run->error, status, "%s", words);
    tell(run, status);
    return true;
}

/* Its handler failed, and would fail again: all that it read stands. */
static bool fail(struct lane *lane, const pawl_turn *turn, struct run *run)
{
    (void)pawl_leases_refuse(lane->leases, turn->number, run->error.text);
    if (run->permanent)
        (void)pawl_leases_void(lane->leases, turn->number, run->error.text); /* if the policy did not */
    tell(run, PAWL_EINVAL);
    return true;
}

static bool stage_void(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn)
{
    struct operation op = operation_of(lane, turn, lane_work(lane, turn->number));
    struct changes none = {0};
    pawl_bytes body;
    op.kind = OPERATION_VOID;
    op.reason = (pawl_bytes){turn->words, strlen(turn->words)};
    int status = operation_encode(&op, &batch->memory, &body);
    if (status != PAWL_OK)
        return stumble(lane, turn, NULL, status);
    stage(lane, batch, &op, body, &none, NULL);
    return true;
}

/* Intents, on the state that all before leave. run may be NULL. */
static bool stage_here(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn, struct run *run)
{
    const struct lane_work *work = lane_work(lane, turn->number);
    struct operation op = operation_of(lane, turn, work);
    struct state state = lane_view(lane);
    struct arena_point start = arena_point(&batch->memory);
    const struct intent *intents = run ? run->intents : NULL;
    size_t count = run ? run->intent_count : 0;
    struct changes changes;
    struct event event;
    pawl_error error = {0};
    pawl_bytes body;
    int status = event_decode((pawl_bytes){work->event->bytes, work->event->size}, &event, &lane->writer.error);
    if (status == PAWL_OK && !intents && !work->projector->handler)
        status = intents_of(work->projector, &batch->memory, &intents, &count);
    if (status != PAWL_OK)
        return stumble(lane, turn, run, status);
    struct derivation derivation = {.offset = work->event->offset, .event = &event, .schema = work->schema};
    struct explosion explosion = {.derivation = &derivation,
                                  .generation = lane->options.generation,
                                  .intents = intents,
                                  .intent_count = count,
                                  .writes = &lane->writes};
    operation_maker_reset(&lane->writes);
    status = explode(&explosion, &state, &batch->memory, &changes, &error);
    bool pushed = status == PAWL_OK;
    if (status == PAWL_OK)
        status = operation_maker_writes(&lane->writes, &op.writes, &op.count);
    if (status == PAWL_OK)
        status = operation_encode(&op, &batch->memory, &body);
    if (status == PAWL_OK) {
        stage(lane, batch, &op, body, &changes, run);
        return true;
    }
    if (pushed)
        overlay_remove(&lane->overlay, &changes);
    arena_rewind(&batch->memory, start);
    if (status == PAWL_EINVAL || status == PAWL_ETOOBIG)
        return refuse(lane, turn, run, status, error.text[0] ? error.text : pawl_status_text(status));
    lane->writer.error = error;
    return stumble(lane, turn, run, status);
}

/* A run's writes, as they were made. */
static bool stage_made(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn, struct run *run)
{
    const struct lane_work *work = lane_work(lane, turn->number);
    struct operation op = operation_of(lane, turn, work);
    struct state state = lane_view(lane);
    struct arena_point start = arena_point(&batch->memory);
    struct changes changes;
    pawl_bytes body;
    int status = operation_maker_writes(&run->writes, &op.writes, &op.count);
    if (status == PAWL_OK)
        status = operation_encode(&op, &batch->memory, &body);
    if (status == PAWL_ETOOBIG)
        return refuse(lane, turn, run, status, "the operation would be larger than an entry of the log may be");
    if (status == PAWL_OK)
        status = operation_derive(&op, work->schema, lane->options.generation, &state, &batch->memory, &changes,
                                  &lane->writer.error);
    if (status != PAWL_OK) {
        arena_rewind(&batch->memory, start);
        if (status == PAWL_ETOOBIG) /* a row has grown since: what it says now is what counts */
            return stage_here(lane, batch, turn, run);
        return stumble(lane, turn, run, status);
    }
    stage(lane, batch, &op, body, &changes, run);
    return true;
}

static bool repeat(struct lane *lane, const pawl_turn *turn, struct run *run)
{
    lane->figures.repeated++;
    lane_work(lane, turn->number)->at_turn = true;
    (void)pawl_leases_repeat(lane->leases, turn->number);
    tell(run, PAWL_ECONFLICT);
    lane->again = true; /* it can be acquired */
    return false;
}

/* Its number stays taken until it is back, so nothing can come between. */
static bool redo_elsewhere(struct lane *lane, const pawl_turn *turn, struct run *run)
{
    if (lane_copy_front(lane, run, lane_work(lane, turn->number)->wsid) != PAWL_OK)
        return stumble(lane, turn, run, PAWL_ENOMEM);
    lane->redoing = run;
    lane->redo_back = false;
    lane->redone = *turn;
    lane->redos++;
    lane->options.explode(lane->options.ctx, lane, run);
    return false;
}

bool lane_stage(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn)
{
    struct run *run = turn->result;
    if (turn->is_void)
        return stage_void(lane, batch, turn);
    if (!run) {
        lane->figures.quick++;
        return stage_here(lane, batch, turn, NULL);
    }
    if (!run->at_turn && !recent_stands(lane->recent, &run->seen))
        return repeat(lane, turn, run);
    if (run->failed)
        return fail(lane, turn, run);
    if (run->status == PAWL_OK && (run->at_turn || recent_stands(lane->recent, &run->used)))
        return stage_made(lane, batch, turn, run);
    if (run->at_turn)
        return refuse(lane, turn, run, run->status, run->error.text);
    lane->figures.repeated++;
    if (lane->options.explode && run->rows >= lane->options.rows_here)
        return redo_elsewhere(lane, turn, run);
    return stage_here(lane, batch, turn, run);
}

void lane_exploded(struct lane *lane, struct run *run, int status)
{
    lane->redos--;
    if (lane->redoing != run) {
        tell(run, lane->writer.state == WRITER_CLOSED ? PAWL_ECLOSED : PAWL_EFENCED);
        writer_step(&lane->writer);
        return;
    }
    lane->redo_back = true;
    if (status != PAWL_OK && lane->writer.state == WRITER_RUNNING) {
        lane->redoing = NULL;
        (void)stumble(lane, &lane->redone, run, status);
    }
    lane_pump(lane);
}
