/* core/project/lane_stage.c: what happens with a number at its turn.
 *
 *     the number is void                  an operation is staged that says why
 *     its projector is quick              exploded here, on the state that all earlier operations leave
 *     its run stands                      staged as the run made it
 *     what exploding read has changed     exploded again: here, or on another thread if it looked at many rows
 *     what its handler read has changed   the number is run again, handler and all
 *     its handler failed                  what the handler read stands, so the failure counts now
 *     it cannot be done                   the projector's policy decides; the reason is kept */
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

static struct operation operation_of(struct lane *lane, const pawl_turn *turn,
                                     const struct lane_binding *binding)
{
    return (struct operation){.kind = OPERATION_WRITES,
                              .projector = binding->projector->id,
                              .attempt = turn->attempt,
                              .number = turn->number,
                              .id = {turn->operation.high, turn->operation.low},
                              .event = binding->event->offset,
                              .wsid = binding->wsid,
                              .schema = binding->schema->position,
                              .time = pawl_env_wall_now(lane->options.env)};
}

/* From here on nothing can fail. */
static void stage(struct lane *lane, struct writer_batch *batch, const struct operation *op, pawl_bytes body,
                  const struct changes *changes, struct run *run)
{
    recent_writes_note(lane->recent, op, changes);
    lane_staged(batch)[batch->count] = (struct lane_staged){.changes = *changes, .run = run};
    writer_add(batch, op->number, body);
    lane->staged = op->number;
    schedule_stage(&lane->schedule, op->number);
}

/* An error that is not the projector's fault. It may be over in a while: then the number is tried again. Or it
 * is the end of this lane. */
static bool repeat_after_error(struct lane *lane, const pawl_turn *turn, struct run *run, int status)
{
    (void)pawl_leases_repeat(lane->leases, turn->number); /* the run is no longer its result */
    schedule_withdraw(&lane->schedule, turn->number);
    if (status == PAWL_ECORRUPT || status == PAWL_EVERSION) {
        error_wrap(&lane->writer.error, status, "partition %u, operation %" PRIu64, lane->options.partition,
                   turn->number);
        writer_refuse(&lane->writer, status);
    } else
        writer_pause(&lane->writer, RETRY);
    tell(run, PAWL_ECONFLICT);
    return false;
}

/* Refuse the operation: any other attempt would fail the same way. The reason goes to the lease table, to the
 * run (in its error), and to runs that were handed in a second time. */
static bool refuse(struct lane *lane, const pawl_turn *turn, struct run *run, int status, const char *words)
{
    (void)pawl_leases_refuse(lane->leases, turn->number, words);
    schedule_withdraw(&lane->schedule, turn->number);
    lane_binding(lane, turn->number)->again = false;
    lane_tell_refused(lane, turn, status, words);
    if (run && words != run->error.text)
        error_set(&run->error, status, "%s", words);
    tell(run, status);
    return true;
}

/* The handler failed, and would fail again, because everything that it read stands. */
static bool fail(struct lane *lane, const pawl_turn *turn, struct run *run)
{
    (void)pawl_leases_refuse(lane->leases, turn->number, run->error.text);
    if (run->permanent)
        (void)pawl_leases_void(lane->leases, turn->number, run->error.text); /* if the policy did not do it */
    tell(run, PAWL_EINVAL);
    return true;
}

static bool stage_void(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn)
{
    struct operation op = operation_of(lane, turn, lane_binding(lane, turn->number));
    struct changes none = {0};
    pawl_bytes body;
    op.kind = OPERATION_VOID;
    op.reason = (pawl_bytes){turn->words, strlen(turn->words)};
    int status = operation_encode(&op, &batch->memory, &body);
    if (status != PAWL_OK)
        return repeat_after_error(lane, turn, NULL, status);
    stage(lane, batch, &op, body, &none, NULL);
    return true;
}

/* Explode intents on the state that all earlier operations leave, and stage the result. run may be NULL. */
static bool stage_here(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn, struct run *run)
{
    const struct lane_binding *binding = lane_binding(lane, turn->number);
    struct operation op = operation_of(lane, turn, binding);
    struct state state = lane_staged_state(lane);
    struct arena_point start = arena_point(&batch->memory);
    const struct intent *intents = run ? run->intents : NULL;
    size_t count = run ? run->intent_count : 0;
    struct changes changes;
    struct event event;
    pawl_error error = {0};
    pawl_bytes body;
    int status =
        event_decode((pawl_bytes){binding->event->bytes, binding->event->size}, &event, &lane->writer.error);
    if (status == PAWL_OK && !intents && !binding->projector->handler)
        status = intents_of(binding->projector, &batch->memory, &intents, &count);
    if (status != PAWL_OK)
        return repeat_after_error(lane, turn, run, status);
    struct derivation derivation = {
        .offset = binding->event->offset, .event = &event, .schema = binding->schema};
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
    return repeat_after_error(lane, turn, run, status);
}

/* Stage a run's writes as the run made them. */
static bool stage_made(struct lane *lane, struct writer_batch *batch, const pawl_turn *turn, struct run *run)
{
    const struct lane_binding *binding = lane_binding(lane, turn->number);
    struct operation op = operation_of(lane, turn, binding);
    struct state state = lane_staged_state(lane);
    struct arena_point start = arena_point(&batch->memory);
    struct changes changes;
    pawl_bytes body;
    int status = operation_maker_writes(&run->writes, &op.writes, &op.count);
    if (status == PAWL_OK)
        status = operation_encode(&op, &batch->memory, &body);
    if (status == PAWL_ETOOBIG)
        return refuse(lane, turn, run, status, "the operation would be larger than an entry of the log may be");
    if (status == PAWL_OK)
        status = operation_derive(&op, binding->schema, lane->options.generation, &state, &batch->memory,
                                  &changes, &lane->writer.error);
    if (status != PAWL_OK) {
        arena_rewind(&batch->memory, start);
        if (status == PAWL_ETOOBIG) /* a row has grown since the run read it: explode again */
            return stage_here(lane, batch, turn, run);
        return repeat_after_error(lane, turn, run, status);
    }
    stage(lane, batch, &op, body, &changes, run);
    return true;
}

static bool repeat(struct lane *lane, const pawl_turn *turn, struct run *run)
{
    lane->figures.repeated++;
    lane_binding(lane, turn->number)->again = true;
    (void)pawl_leases_repeat(lane->leases, turn->number);
    schedule_repeated(&lane->schedule, turn->number, reads_last_writer(&run->seen, lane->recent));
    tell(run, PAWL_ECONFLICT);
    lane_repeat_what_rests_on(lane, turn->number);
    lane->again = true; /* it can be acquired again */
    return false;
}

/* The number stays taken until the run is back, so no other operation can come between. */
static bool explode_elsewhere(struct lane *lane, const pawl_turn *turn, struct run *run)
{
    if (lane_copy_staged_rows(lane, run, lane_binding(lane, turn->number)->wsid, SIZE_MAX) != PAWL_OK)
        return repeat_after_error(lane, turn, run, PAWL_ENOMEM);
    run_unpromise(run); /* whatever was promised is staged by now, as it is */
    schedule_withdraw(&lane->schedule, turn->number);
    lane->exploding = run;
    lane->exploded = false;
    lane->exploding_turn = *turn;
    lane->exploding_count++;
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
    if (!lane_stands(lane, &run->seen))
        return repeat(lane, turn, run);
    schedule_stood(&lane->schedule, turn->number, reads_last_writer(&run->seen, lane->recent));
    if (run->failed)
        return fail(lane, turn, run);
    bool stands = lane_stands(lane, &run->used);
    if (stands && run->status == PAWL_OK)
        return stage_made(lane, batch, turn, run);
    /* Nothing came between, and nothing was promised: a write that depends on no value notes no read of a promised row,
     * and may yet have failed because of its size. */
    if (stands && run->used.at >= turn->number - 1 && run->promise.count == 0)
        return refuse(lane, turn, run, run->status, run->error.text);
    lane->figures.repeated++;
    if (lane->options.explode && run->rows >= lane->options.rows_here)
        return explode_elsewhere(lane, turn, run);
    return stage_here(lane, batch, turn, run);
}

void lane_exploded(struct lane *lane, struct run *run, int status)
{
    lane->exploding_count--;
    if (lane->exploding != run) {
        tell(run, lane_status_of_lost(lane, run));
        writer_step(&lane->writer);
        return;
    }
    lane->exploded = true;
    if (status != PAWL_OK && lane->writer.state == WRITER_RUNNING) {
        lane->exploding = NULL;
        (void)repeat_after_error(lane, &lane->exploding_turn, run, status);
    }
    lane_pump(lane);
}
