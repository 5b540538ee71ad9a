/* commands_sim.h: a partition to which random commands are sent, the model beside it, and what is known of
 * every command. */
#ifndef TEST_SIM_COMMANDS_SIM_H
#define TEST_SIM_COMMANDS_SIM_H

#include "base/bytes.h"
#include "test/lib/partition.h"
#include "test/lib/test.h"
#include "test/sim/commands_model.h"

enum { OUTSTANDING_MAX = 150, COMMANDS_MAX = 4000 };

struct command {
    struct call call;
    struct request request;
    struct arena memory;
    pawl_error error;
    char correlation[16];
    char key[MODEL_TEXT];
    uint64_t body;
    bool outstanding;
    bool refused;   /* it was said that it has no event */
    uint64_t event; /* its offset in the log; 0: it is not there */
    unsigned wrong; /* bits of the refusals that would have been right since it was sent */
    struct sim *sim;
};

struct sim {
    struct partition p;
    struct model model;
    uint64_t random;
    int version; /* of the schema */
    bool faulty; /* this life has had a fault */
    bool closing;
    pawl_task run; /* for who was sent from inside a done */
    struct command *commands[COMMANDS_MAX];
    size_t count;
    size_t outstanding;
    size_t accepted, repeated, refused, failed; /* answers */
};

static inline uint64_t below(struct sim *s, uint64_t bound)
{
    return test_below(&s->random, bound);
}

/* The next command, new or one that was made before; there must be room for it. */
struct command *commands_ask(struct sim *s);

#endif
