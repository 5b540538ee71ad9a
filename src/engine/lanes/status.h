/* engine/lanes/status.h: a look at one generation of a lane, in all partitions. */
#ifndef ENGINE_LANES_STATUS_H
#define ENGINE_LANES_STATUS_H

#include "engine/lanes/impl.h"

struct partition_lane_status {
    pawl_lane_status status; /* without its texts */
    pawl_error error;
    bool lacks_workers; /* something waits for a worker from outside */
};

/* statuses: one for each partition. lane: as in the present schema. PAWL_ECLOSED. */
int lane_status_gather(struct generation *generation, const struct schema_lane *lane,
                       struct partition_lane_status *statuses);

/* alerts.c: the lane's alerts, each in the partition that has most of it. */
void lane_status_alert(struct partition_lane_status *statuses, size_t count,
                       const pawl_lease_thresholds *thresholds);

#endif
