/* engine/node/alerts.c: the two states of a partition are compared, and what differs is told to whoever asks. */
#include <inttypes.h>
#include <stdio.h>

#include "engine/node/node.h"

#define AUDIT_EVERY UINT64_C(65536)

uint64_t engine_audit_every(const pawl_engine *e)
{
    return e->knobs.audit_every ? e->knobs.audit_every : AUDIT_EVERY;
}

static bool is_known(const pawl_engine *e, const pawl_alert *alert)
{
    for (size_t i = 0; i < e->alert_count; i++)
        if (e->alerts[i].kind == alert->kind && e->alerts[i].partition == alert->partition
            && e->alerts[i].table == alert->table)
            return true;
    return false;
}

/* What is wrong once is wrong from then on: it is told once, and counted each time. */
static void raise_alert(pawl_engine *e, const pawl_alert *alert)
{
    e->alerted++;
    if (e->alert_count < ALERTS_MAX && !is_known(e, alert))
        e->alerts[e->alert_count++] = *alert;
}

void engine_alert(pawl_engine *e, const pawl_alert *alert)
{
    pthread_mutex_lock(&e->audit_lock);
    raise_alert(e, alert);
    pthread_mutex_unlock(&e->audit_lock);
}

void engine_audit(pawl_engine *e, enum audit_side side, const struct position *position, uint64_t offset)
{
    pthread_mutex_lock(&e->audit_lock);
    uint32_t table = audit_note(&e->partitions[position->partition].audit, side, offset, position);
    if (table) {
        pawl_alert alert = {
            .kind = PAWL_ALERT_DIFFERENT, .partition = position->partition, .table = table, .offset = offset};
        snprintf(alert.text, sizeof alert.text,
                 "partition %u, table %" PRIu32 ": the live and the checkpoint state differ at offset %" PRIu64,
                 position->partition, table, offset);
        raise_alert(e, &alert);
    }
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
