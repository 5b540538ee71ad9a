/* test/lib/links.h: what a seed does to the messages of a local network.
 *
 * Give links_fate and a struct links to local_network_open. */
#ifndef TEST_LIB_LINKS_H
#define TEST_LIB_LINKS_H

#include "adapter/local/bus.h"

enum { LINKS_NODES_MAX = 8 };

struct links {
    uint64_t random;
    uint32_t lose_percent; /* of all messages */
    uint32_t twice_percent;
    pawl_duration delay_max;                            /* each is delayed up to this */
    bool cut[LINKS_NODES_MAX + 1][LINKS_NODES_MAX + 1]; /* from, to: nothing gets through */
    uint64_t lost, doubled;                             /* how many were */
};

void links_fate(void *ctx, uint32_t from, uint32_t to, struct local_fate *fate);

/* Cut a link in both directions, or mend it. */
void links_cut(struct links *links, uint32_t a, uint32_t b, bool cut);

/* No faults from now on. */
void links_mend(struct links *links);

#endif
