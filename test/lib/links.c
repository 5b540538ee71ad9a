#include "test/lib/links.h"

#include <string.h>

#include "test/lib/test.h"

static pawl_duration delay_of(struct links *links)
{
    return links->delay_max ? test_below(&links->random, links->delay_max + 1) : 0;
}

void links_fate(void *ctx, uint32_t from, uint32_t to, struct local_fate *fate)
{
    struct links *links = ctx;
    bool cut = from <= LINKS_NODES_MAX && to <= LINKS_NODES_MAX && links->cut[from][to];
    fate->lost = test_below(&links->random, 100) < links->lose_percent || cut;
    fate->twice = test_below(&links->random, 100) < links->twice_percent;
    fate->delay = delay_of(links);
    fate->delay_again = delay_of(links);
    links->lost += fate->lost;
    links->doubled += fate->twice && !fate->lost;
}

void links_cut(struct links *links, uint32_t a, uint32_t b, bool cut)
{
    links->cut[a][b] = links->cut[b][a] = cut;
}

void links_mend(struct links *links)
{
    *links = (struct links){.random = links->random, .lost = links->lost, .doubled = links->doubled};
}
