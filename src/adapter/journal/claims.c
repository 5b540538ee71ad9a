/* adapter/journal/claims.c: a claim, from the moment it is given to its record in the file.
 *
 * A claim's record is written with the first entry under it, or before the stream is claimed again. So a claim
 * that nobody writes under leaves nothing in the files, however often a journal is opened and claimed.
 *
 *     claim ──► given: epoch + 1, in memory ──► first entry ──► claim record, entry: one write, one sync
 *                                          └──► next claim  ──► claim record; given again
 *
 * Why this fences as well as a record would (J7). Memory decides who can append: an entry passes if it has the
 * epoch that was given last. No other process can append, because it would need the directory's lock.
 * In this process .given only grows, also over a failure after which the files know of fewer claims than were
 * given. Once the journal is closed nobody can append under what was given; so an epoch that has no record may
 * be given again after the next opening. */
#include "adapter/journal/impl.h"
#include "base/error.h"

/* Room for the claims that an append of so many entries may have to write first. */
size_t claims_room(const struct journal *j, size_t entries)
{
    return (entries < j->unwritten ? entries : j->unwritten) * record_size(CLAIM_BODY);
}

/* Room has been made. After a failure a stream may have more than one claim without a record: nothing was
 * written under those before the last, and their records say that nobody may use these epochs again. */
void claims_write(struct journal *j, struct stream *s)
{
    while (s->epoch < s->given) {
        uint8_t body[CLAIM_BODY];
        claim_body_encode(s->epoch + 1, s->group0, body);
        struct record r = {
            .type = RECORD_CLAIM, .stream = s->id, .offset = s->next, .body = {body, sizeof body}};
        group_encode(j, &r);
        s->epoch++;
    }
    if (s->claimed)
        j->unwritten--;
}

int claims_take(struct journal *j, pawl_claim *claim, pawl_error *error)
{
    pthread_mutex_lock(&j->lock);
    struct stream *s = streams_add(&j->streams, claim->stream);
    pthread_mutex_unlock(&j->lock);
    int status = s ? PAWL_OK : error_set(error, PAWL_ENOMEM, "no memory for another stream");
    if (s && s->epoch < s->given)
        status = group_make_room(j, (size_t)(s->given - s->epoch) * record_size(CLAIM_BODY), error);
    claim->status = status;
    if (!s || status != PAWL_OK) {
        if (claim->error)
            *claim->error = *error;
        return status;
    }
    if (s->epoch < s->given)
        claims_write(j, s);
    s->given++;
    s->group0 = claim->group0;
    s->claimed = true;
    j->unwritten++;
    claim->epoch = s->given;
    claim->next = s->next;
    return PAWL_OK;
}
