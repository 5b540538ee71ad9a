/* core/lease/figures.c: figures of a table, and alerts. */
#include "core/lease/lease.h"

#define SAMPLES_MIN     20
#define EFFICIENCY_WELL 0.95
#define WAIT_WELL       PAWL_SECOND

uint32_t pawl_lease_alerts(const pawl_lease_figures *figures, const pawl_lease_thresholds *thresholds)
{
    const pawl_lease_thresholds limit = thresholds_with_defaults(thresholds);
    const pawl_lease_minute *sums = &figures->minute;
    uint32_t alerts = 0;
    if (sums->ended >= SAMPLES_MIN && (double)sums->expired > limit.expired_rate * (double)sums->ended)
        alerts |= PAWL_LEASE_ALERT_EXPIRED;
    if (sums->turns >= SAMPLES_MIN && sums->waited / sums->turns > limit.average_wait)
        alerts |= PAWL_LEASE_ALERT_WAIT;
    if (figures->active > limit.active)
        alerts |= PAWL_LEASE_ALERT_ACTIVE;
    if (sums->voids > limit.voids)
        alerts |= PAWL_LEASE_ALERT_VOIDS;
    if (figures->stalled)
        alerts |= PAWL_LEASE_ALERT_STALLED;
    return alerts;
}

/* Rates and averages follow from the sums of the minute, whether those are of one table or of many. */
static void work_out(pawl_lease_figures *f)
{
    const pawl_lease_minute *sums = &f->minute;
    uint64_t finished = sums->committed + sums->expired;
    f->utilisation = sums->granted ? (double)sums->used / (double)sums->granted : 0;
    f->average_wait = sums->turns ? sums->waited / sums->turns : 0;
    f->efficiency = finished ? (double)sums->committed / (double)finished : 1;
    f->performing_well = f->efficiency > EFFICIENCY_WELL && f->average_wait < WAIT_WELL;
}

void pawl_leases_figures_get(const pawl_leases *leases, pawl_lease_figures *ret_figures)
{
    pawl_instant now = pawl_env_now(leases->options.env);
    const struct lease_counts *counts = &leases->counts;
    pawl_lease_figures figures = {
        .bound = leases->bound,
        .taken = leases->taken,
        .watermark = leases->committed,
        .active = counts->active,
        .waiting = counts->waiting,
        .stalled = counts->stalled,
        .acquired = counts->acquired,
        .committed = counts->committed,
        .expired = counts->expired,
        .released = counts->released,
        .failed = counts->failed,
        .voids = counts->voids,
        .fenced = counts->fenced,
        .repeated = counts->repeated,
        .repeated_time = counts->repeated_time,
        .minute = minute_sum(&leases->minute, now),
        .p99_wait = minute_p99(&leases->minute, now),
    };
    work_out(&figures);
    figures.alerts = pawl_lease_alerts(&figures, &leases->options.thresholds);
    *ret_figures = figures;
}

void pawl_lease_figures_add(pawl_lease_figures *to, const pawl_lease_figures *more)
{
    to->bound += more->bound;
    to->taken += more->taken;
    to->watermark += more->watermark;
    to->active += more->active;
    to->waiting += more->waiting;
    to->stalled += more->stalled;
    to->acquired += more->acquired;
    to->committed += more->committed;
    to->expired += more->expired;
    to->released += more->released;
    to->failed += more->failed;
    to->voids += more->voids;
    to->fenced += more->fenced;
    to->repeated += more->repeated;
    to->repeated_time += more->repeated_time;
    minute_add(&to->minute, &more->minute);
    to->p99_wait = more->p99_wait > to->p99_wait ? more->p99_wait : to->p99_wait;
    to->alerts |= more->alerts;
    work_out(to);
}

pawl_duration pawl_leases_estimate(const pawl_leases *leases, uint32_t projection, size_t bytes)
{
    if (projection >= leases->options.projections)
        return 0;
    return estimate_get(&leases->projections[projection].estimate, estimate_class(bytes), &leases->limits);
}

const char *pawl_lease_alert_text(pawl_lease_alert alert)
{
    switch (alert) {
    case PAWL_LEASE_ALERT_EXPIRED: return "Many leases expire before their work is handed in.";
    case PAWL_LEASE_ALERT_WAIT: return "Finished work waits long for its turn.";
    case PAWL_LEASE_ALERT_ACTIVE: return "Very many leases are active at once.";
    case PAWL_LEASE_ALERT_VOIDS: return "Many operations have become void.";
    case PAWL_LEASE_ALERT_STALLED: return "An operation has failed too often, and all behind it wait.";
    }
    return "";
}

const char *pawl_lease_alert_advice(pawl_lease_alert alert)
{
    switch (alert) {
    case PAWL_LEASE_ALERT_EXPIRED:
        return "Ask for longer leases or extend them, and look for workers that hang or die.";
    case PAWL_LEASE_ALERT_WAIT:
        return "Look for the lowest number that is not ready; add workers, or make the slow work quicker.";
    case PAWL_LEASE_ALERT_ACTIVE:
        return "Let workers take fewer numbers at a time: each active lease takes memory until its turn.";
    case PAWL_LEASE_ALERT_VOIDS:
        return "Read the reasons in the operation log, mend the handler, and rebuild what was skipped.";
    case PAWL_LEASE_ALERT_STALLED:
        return "Read why it failed, mend that, and retry the number; or decide that it is void.";
    }
    return "";
}
