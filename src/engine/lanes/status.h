/* engine/lanes/status.h: the status of one generation of a lane, in all partitions. */
#ifndef ENGINE_LANES_STATUS_H
#define ENGINE_LANES_STATUS_H

#include "engine/lanes/impl.h"

struct partition_lane_status {
    pawl_lane_status status; /* without its texts */
    pawl_error error;
    bool lacks_workers; /* something waits for a worker from outside */
};

/* statuses: one for each partition. lane: from the present schema, or NULL. PAWL_ECLOSED. */
int lane_status_gather(struct generation *generation, const struct schema_lane *lane,
                       struct partition_lane_status *statuses);

/* alerts.c: set the lane's alerts, each in the partition that contributes most to it. */
void lane_status_alert(struct partition_lane_status *statuses, size_t count,
                       const pawl_lease_thresholds *thresholds);

#endif
