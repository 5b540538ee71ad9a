/* engine/node/alerts.c: compares the two states of a partition, and keeps the alerts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/log/log.h"
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

void engine_describe_table(pawl_engine *e, uint32_t table, char *text, size_t size)
{
    const struct view_list *list = atomic_load_explicit(&e->view_list, memory_order_acquire);
    const struct view_entry *entry = table_is_view(table) && list ? view_list_by_table(list, table) : NULL;
    if (entry)
        snprintf(text, size, "view %.*s (table %" PRIu32 ")", (int)entry->view->name.size,
                 (const char *)entry->view->name.data, table);
    else
        snprintf(text, size, "table %" PRIu32, table);
}

/* What was found once is found again and again: the alert is kept once, and counted each time. */
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

/* The tables of a state: those of its position, and views that are complete. NULL: no memory, and this audit is
 * missed. */
static struct table_digest *gather_tables(const pawl_engine *e, const struct position *position,
                                          struct view_tables *views, size_t *ret_count, size_t *ret_room)
{
    size_t own = position->digests.count;
    size_t more = views ? view_tables_digests(views, position->partition, NULL, 0) : 0;
    struct table_digest *tables = mem_new(e->options.allocator, own + more + 1, sizeof *tables);
    if (!tables)
        return NULL;
    if (own > 0)
        memcpy(tables, position->digests.tables, own * sizeof *tables);
    if (more > 0)
        (void)view_tables_digests(views, position->partition, tables + own, more);
    *ret_count = own + more;
    *ret_room = own + more + 1;
    return tables;
}

void engine_audit(pawl_engine *e, enum audit_side side, const struct position *position,
                  struct view_tables *views, uint64_t offset)
{
    size_t count = 0, room = 0;
    struct table_digest *tables = gather_tables(e, position, views, &count, &room);
    if (!tables)
        return;
    pthread_mutex_lock(&e->audit_lock);
    uint32_t table = audit_note(&e->partitions[position->partition].audit, side, offset, tables, count);
    if (table) {
        pawl_alert alert = {
            .kind = PAWL_ALERT_DIFFERENT, .partition = position->partition, .table = table, .offset = offset};
        char name[SCHEMA_QNAME_BYTES_MAX + 40];
        engine_describe_table(e, table, name, sizeof name);
        snprintf(alert.text, sizeof alert.text,
                 "partition %u, %.200s: the live and the checkpoint state differ at offset %" PRIu64,
                 position->partition, name, offset);
        raise_alert(e, &alert);
    }
    pthread_mutex_unlock(&e->audit_lock);
    mem_free(e->options.allocator, tables, room * sizeof *tables);
}

/* --- a log on Kafka --- */

static void alert_of(pawl_alert_kind kind, const pawl_error *error, pawl_alert *alert)
{
    *alert = (pawl_alert){.kind = kind};
    snprintf(alert->text, sizeof alert->text, "%.*s", (int)sizeof alert->text - 1, error->text);
}

static int mirror_check(const pawl_engine *e, pawl_error *error)
{
    pawl_mirror_figures mirror = {0};
    if (e->log != e->kafka)
        cluster_mirror_look(e->log, &mirror);
    return mirror.off ? error_set(error, PAWL_EIO, "the mirror is off: %.200s", mirror.why) : PAWL_OK;
}

/* They are not kept: each is there as long as it is so. A node that was fenced writes nothing, so what it waits for does
 * not matter. */
size_t engine_log_alerts(const pawl_engine *e, pawl_alert alerts[LOG_ALERTS_MAX])
{
    size_t count = 0;
    pawl_error error = {0};
    if (!node_is_on_kafka(&e->file))
        return 0;
    if (owner_check(e, &error) != PAWL_OK)
        alert_of(PAWL_ALERT_FENCED, &error, &alerts[count++]);
    else if (cluster_outage(e->kafka, &error) != PAWL_OK)
        alert_of(PAWL_ALERT_BROKER, &error, &alerts[count++]);
    if (cluster_weakness(e->kafka, &error) != PAWL_OK)
        alert_of(PAWL_ALERT_SETTINGS, &error, &alerts[count++]);
    if (mirror_check(e, &error) != PAWL_OK)
        alert_of(PAWL_ALERT_MIRROR, &error, &alerts[count++]);
    return count;
}

void pawl_alerts(pawl_engine *e, pawl_alert *alerts, size_t room, size_t *ret_count)
{
    pawl_alert now[LOG_ALERTS_MAX];
    size_t more = engine_log_alerts(e, now), count = 0;
    for (size_t i = 0; i < more; i++, count++)
        if (count < room)
            alerts[count] = now[i];
    pthread_mutex_lock(&e->audit_lock);
    for (size_t i = 0; i < e->alert_count; i++, count++)
        if (count < room)
            alerts[count] = e->alerts[i];
    pthread_mutex_unlock(&e->audit_lock);
    *ret_count = count;
}
