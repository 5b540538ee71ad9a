/* adapter/journal/deliver.c: a finished request goes back to the shard that made it.
 *
 * A group of many requests makes one post to each shard that has requests in it: the outbox's task is posted
 * once, and takes all requests that are there when it runs. */
#include "adapter/journal/impl.h"

void op_init(struct journal *j, struct op *op, enum op_kind kind, void *request, void (*run)(struct op *op))
{
    *op =
        (struct op){.journal = j, .run = run, .request = request, .kind = kind, .shard = pawl_env_self(j->env)};
}

/* Whether it holds something; if not, it no longer will. */
static bool outbox_holds(struct outbox *box)
{
    pthread_mutex_lock(&box->journal->lock);
    box->holding = box->held.ops.first != NULL;
    bool holds = box->holding;
    pthread_mutex_unlock(&box->journal->lock);
    return holds;
}

/* Appends that dones make are held back until all dones have run. Otherwise the first append would wake the
 * writer, which would sync for it alone while all others miss that sync. That would repeat for ever: a group of
 * one, then a group of all the rest. */
void outbox_run(pawl_task *task)
{
    struct outbox *box = (struct outbox *)task;
    struct journal *j = box->journal;
    pthread_mutex_lock(&j->lock);
    struct op *op = op_list_take(&box->ops);
    bool holding = !box->holding && op && op->next;
    if (holding)
        box->holding = true;
    pthread_mutex_unlock(&j->lock);
    while (op) {
        struct op *next = op->next;
        /* The last done may close the journal: nothing of it is touched behind it. But not if something is
         * held: then a done is still to come. */
        if (!next && holding)
            holding = outbox_holds(box);
        op->run(op);
        op = next;
    }
    if (holding)
        writer_release(j, box);
}

void journal_deliver(struct journal *j, struct op *ops)
{
    struct op_list here;
    op_list_init(&here);
    struct op *op = ops;
    while (op) {
        struct op *next = op->next;
        if (op->shard == PAWL_NO_SHARD) {
            op_list_push(&here, op);
            op = next;
            continue;
        }
        /* Ops of one shard stand next to each other in a group. */
        struct outbox *box = &j->outboxes[op->shard];
        pthread_mutex_lock(&j->lock);
        bool first = box->ops.first == NULL;
        for (uint32_t shard = op->shard; op && op->shard == shard; op = next) {
            next = op->next;
            op_list_push(&box->ops, op);
        }
        pthread_mutex_unlock(&j->lock);
        /* An env that is closing takes no posts. Its shards are idle then, so the dones may run on this
         * thread. */
        if (first && pawl_env_post(j->env, (uint32_t)(box - j->outboxes), &box->task) != PAWL_OK)
            outbox_run(&box->task);
    }
    op = here.first;
    while (op) {
        struct op *next = op->next;
        op->run(op);
        op = next;
    }
}
