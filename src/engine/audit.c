/* engine/audit.c: the two states of a partition are compared, and what differs is told to whoever asks. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/node.h"

#define AUDIT_EVERY UINT64_C(65536)

uint64_t engine_audit_every(const pawl_engine *e)
{
    return e->trial.audit_every ? e->trial.audit_every : AUDIT_EVERY;
}

/* Once for a partition and a table: what differs once differs from then on. */
static void raise_alert(pawl_engine *e, uint16_t partition, uint32_t table, uint64_t offset)
{
    for (size_t i = 0; i < e->alert_count; i++)
        if (e->alerts[i].partition == partition && e->alerts[i].table == table)
            return;
    if (e->alert_count == ALERTS_MAX)
        return;
    pawl_alert *alert = &e->alerts[e->alert_count++];
    *alert = (pawl_alert){.partition = partition, .table = table, .offset = offset};
    snprintf(alert->text, sizeof alert->text,
             "partition %u, table %" PRIu32 ": the live and the checkpoint state differ at offset %" PRIu64,
             partition, table, offset);
}

void engine_audit(pawl_engine *e, enum audit_side side, const struct position *position, uint64_t offset)
{
    pthread_mutex_lock(&e->audit_lock);
    uint32_t table = audit_note(&e->partitions[position->partition].audit, side, offset, position);
    if (table)
        raise_alert(e, position->partition, table, offset);
    pthread_mutex_unlock(&e->audit_lock);
}

void pawl_alerts(pawl_engine *e, pawl_alert *alerts, size_t room, size_t *ret_count)
{
    pthread_mutex_lock(&e->audit_lock);
    for (size_t i = 0; i < e->alert_count && i < room; i++)
        alerts[i] = e->alerts[i];
    *ret_count = e->alert_count;
    pthread_mutex_unlock(&e->audit_lock);
}
