/* adapter/journal/deliver.c: what is finished goes back to the shard that asked.
 *
 * A group of many requests makes one post to each shard that has a part in it: the outbox's task is posted
 * once, and takes whatever is there when it runs. */
#include "adapter/journal/impl.h"

void op_init(struct journal *j, struct op *op, enum op_kind kind, void *request, void (*run)(struct op *op))
{
    *op =
        (struct op){.journal = j, .run = run, .request = request, .kind = kind, .shard = pawl_env_self(j->env)};
}

void outbox_run(pawl_task *task)
{
    struct outbox *box = (struct outbox *)task;
    struct journal *j = box->journal;
    pthread_mutex_lock(&j->lock);
    struct op *op = op_list_take(&box->ops);
    pthread_mutex_unlock(&j->lock);
    /* The last done may close the journal: nothing of it is touched behind it. */
    while (op) {
        struct op *next = op->next;
        op->run(op);
        op = next;
    }
}

void journal_deliver(struct journal *j, struct op *ops)
{
    struct op_list here;
    op_list_init(&here);
    for (struct op *op = ops, *next; op; op = next) {
        next = op->next;
        if (op->shard == PAWL_NO_SHARD) {
            op_list_push(&here, op);
            continue;
        }
        struct outbox *box = &j->outboxes[op->shard];
        pthread_mutex_lock(&j->lock);
        bool first = box->ops.first == NULL;
        op_list_push(&box->ops, op);
        pthread_mutex_unlock(&j->lock);
        /* An env that is closing takes no posts, and its shards are idle: then here is as good as there. */
        if (first && pawl_env_post(j->env, (uint32_t)(box - j->outboxes), &box->task) != PAWL_OK)
            outbox_run(&box->task);
    }
    for (struct op *op = here.first, *next; op; op = next) {
        next = op->next;
        op->run(op);
    }
}
