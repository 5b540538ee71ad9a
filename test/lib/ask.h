/* test/lib/ask.h: requests by name, and their answers.
 *
 *     struct ask a;
 *     ask_init(&a, &p, 7, "shop.AddCustomer");
 *     ask_record(&a, 1, "shop.Customer");
 *     ask_text(&a, "name", "Ann");
 *     assert_ok(ask_and_wait(&a));          // a.event, a.call.offset, a.error
 *     ask_release(&a); */
#ifndef TEST_LIB_ASK_H
#define TEST_LIB_ASK_H

#include "test/lib/partition.h"

struct ask {
    struct partition *partition;
    struct call call;
    struct request request;
    struct arena memory;
    pawl_error error;
    int answers; /* how often done was called */
    uint64_t at; /* the place of the last answer among all of this partition's */
    bool closes; /* the partition, from inside its done */
    struct event event;
    uint8_t *body; /* of it */
};

/* command NULL: create the workspace, of this kind. */
void ask_init(struct ask *ask, struct partition *p, uint64_t wsid, const char *command);
void ask_create(struct ask *ask, struct partition *p, uint64_t wsid, const char *kind);
void ask_release(struct ask *ask);

void ask_record(struct ask *ask, uint64_t id, const char *type);
void ask_argument(struct ask *ask, uint64_t id, const char *type);
void ask_child(struct ask *ask, uint64_t id, const char *type, uint32_t parent);
void ask_parent(struct ask *ask, uint64_t parent, uint16_t container);

/* Of the last object. */
void ask_text(struct ask *ask, const char *field, const char *text);
void ask_number(struct ask *ask, const char *field, int64_t number);
void ask_ref(struct ask *ask, const char *field, uint64_t id);
void ask_null(struct ask *ask, const char *field);

/* Submit and run; the answer comes as the world goes on. */
void ask_send(struct ask *ask);
int ask_wait(struct ask *ask);
int ask_and_wait(struct ask *ask);

/* Of the event that answered: the i-th object. */
struct event_object ask_object(const struct ask *ask, size_t i);

#endif
