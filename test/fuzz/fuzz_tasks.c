/* fuzz_tasks.c: bytes that decode as tasks are the same bytes that encoding them gives. Each task is found by
 * its ID, and the steps of a tablet operation leave tasks that decode again. */
#include <stdint.h>
#include <stdlib.h>

#include "core/group0/tasks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool decode(struct tasks *tasks, pawl_bytes bytes)
{
    struct decoder d = decoder_over(bytes);
    tasks_init(tasks, NULL);
    if (tasks_decode(tasks, &d) != PAWL_OK) {
        check(tasks->count == 0 && tasks->left == 0 && tasks->next == 1);
        return false;
    }
    check(tasks_encoded_size(tasks) == bytes.size - d.left);
    return true;
}

static pawl_bytes encode(const struct tasks *tasks)
{
    size_t size = tasks_encoded_size(tasks);
    uint8_t *bytes = malloc(size);
    if (!bytes)
        abort();
    struct encoder e = encoder_over(bytes, size);
    tasks_encode(tasks, &e);
    check(!e.bad && e.left == 0);
    return (pawl_bytes){bytes, size};
}

static void check_decodes_again(const struct tasks *tasks)
{
    pawl_bytes bytes = encode(tasks);
    struct tasks again;
    check(decode(&again, bytes));
    pawl_bytes twice = encode(&again);
    check(bytes_equal(twice, bytes));
    tasks_release(&again);
    free((void *)(uintptr_t)bytes.data);
    free((void *)(uintptr_t)twice.data);
}

static void check_each(const struct tasks *tasks)
{
    struct tasks_cursor cursor = {0};
    struct task task, found;
    uint64_t count = 0, last = 0;
    for (; tasks_next(tasks, &cursor, &task); count++) {
        check(task.id > last && task.id < tasks->next);
        check(tasks_find(tasks, task.id, &found) == PAWL_OK);
        check(found.tablet == task.tablet && found.view == task.view && found.aborted == task.aborted);
        last = task.id;
    }
    check(count == tasks->left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tasks tasks;
    if (!decode(&tasks, (pawl_bytes){data, size}))
        return 0;
    pawl_bytes again = encode(&tasks);
    check(again.size <= size && bytes_equal(again, (pawl_bytes){data, again.size}));
    free((void *)(uintptr_t)again.data);
    check_each(&tasks);
    uint32_t tablets = tasks.count > 0 ? tasks.groups[0].tablets : 1;
    /* Near their end there are no IDs left for new groups. */
    bool ids_left = tasks.next < UINT64_C(1) << 61;
    if (ids_left && tablets < UINT32_C(1) << 20) {
        check(tasks_abort_all(&tasks) == PAWL_OK);
        check_decodes_again(&tasks);
        check(tasks_rollback(&tasks) == PAWL_OK);
        check_decodes_again(&tasks);
        check(tasks_resize(&tasks, tablets * 2) == PAWL_OK);
        check_decodes_again(&tasks);
        check(tasks_resize(&tasks, tablets) == PAWL_OK);
        check_each(&tasks);
    }
    tasks_release(&tasks);
    return 0;
}
