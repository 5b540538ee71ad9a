/* engine/lanes/alerts.c: what is alarming about a lane, in all its partitions together.
 *
 * Thresholds are for a lane: 16 partitions with 900 active leases each are 14,400. So the figures of its
 * partitions are added up, and judged once. The alert is then put where most of it comes from, so that whoever
 * looks through the partitions meets it once, and knows where to look first. */
#include "engine/lanes/impl.h"
#include "engine/lanes/status.h"

static uint64_t measure(const pawl_lease_figures *f, pawl_lease_alert alert)
{
    switch (alert) {
    case PAWL_LEASE_ALERT_EXPIRED: return f->minute.expired;
    case PAWL_LEASE_ALERT_WAIT: return f->minute.waited;
    case PAWL_LEASE_ALERT_ACTIVE: return f->active;
    case PAWL_LEASE_ALERT_VOIDS: return f->minute.voids;
    case PAWL_LEASE_ALERT_STALLED: return f->stalled;
    }
    return 0;
}

static struct partition_lane_status *worst(struct partition_lane_status *statuses, size_t count,
                                           pawl_lease_alert alert)
{
    struct partition_lane_status *found = &statuses[0];
    for (size_t i = 1; i < count; i++)
        if (measure(&statuses[i].status.leases, alert) > measure(&found->status.leases, alert))
            found = &statuses[i];
    return found;
}

void lane_status_alert(struct partition_lane_status *statuses, size_t count,
                       const pawl_lease_thresholds *thresholds)
{
    pawl_lease_figures sum = {0};
    for (size_t i = 0; i < count; i++) {
        statuses[i].status.leases.alerts = 0;
        pawl_lease_figures_add(&sum, &statuses[i].status.leases);
    }
    uint32_t alerts = pawl_lease_alerts(&sum, thresholds);
    for (uint32_t alert = PAWL_LEASE_ALERT_EXPIRED; alert <= PAWL_LEASE_ALERT_STALLED; alert *= 2)
        if (alerts & alert)
            worst(statuses, count, (pawl_lease_alert)alert)->status.leases.alerts |= alert;
}
