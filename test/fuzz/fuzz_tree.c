/* fuzz_tree.c: tree.h takes the texts that jansson takes, and makes the same of them. The first byte says whether U+0000
 * is allowed. */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/json/tree.h"

#define DEPTH 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void compare(const struct tree *ours, const json_t *theirs);

static void compare_items(const struct tree *ours, json_t *theirs)
{
    size_t i = 0;
    const char *key;
    json_t *value;
    require(tree_count(ours) == (json_is_array(theirs) ? json_array_size(theirs) : json_object_size(theirs)));
    for (; json_is_array(theirs) && i < ours->count; i++)
        compare(tree_at(ours, i), json_array_get(theirs, i));
    json_object_foreach(theirs, key, value)
    {
        const struct tree *member = tree_get(ours, key);
        require(member && member == tree_at(ours, i++) && strcmp(tree_name(member), key) == 0);
        compare(member, value);
    }
}

static void compare(const struct tree *ours, const json_t *theirs)
{
    switch (json_typeof(theirs)) {
    case JSON_OBJECT: require(ours->kind == TREE_OBJECT); break;
    case JSON_ARRAY: require(ours->kind == TREE_ARRAY); break;
    case JSON_STRING:
        require(ours->kind == TREE_STRING && ours->text.size == json_string_length(theirs)
                && memcmp(ours->text.data, json_string_value(theirs), ours->text.size + 1) == 0);
        return;
    case JSON_INTEGER:
        require(ours->kind == TREE_INTEGER && ours->integer == json_integer_value(theirs));
        return;
    case JSON_REAL: {
        double real = json_real_value(theirs);
        require(ours->kind == TREE_REAL && ours->real == real && signbit(ours->real) == signbit(real));
        return;
    }
    case JSON_TRUE:
    case JSON_FALSE: require(ours->kind == TREE_BOOL && ours->boolean == json_is_true(theirs)); return;
    case JSON_NULL: require(ours->kind == TREE_NULL); return;
    }
    compare_items(ours, (json_t *)(uintptr_t)theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool zeros = data[0] & 1;
    const struct tree_limits limits = {.bytes_max = 1 << 20, .depth_max = DEPTH, .zeros = zeros};
    const pawl_bytes text = {data + 1, size - 1};
    struct arena memory;
    struct tree *ours;
    pawl_error error = {0};
    arena_init(&memory, NULL, 4096);
    int status = tree_read(text, &limits, &memory, &ours, &error);
    json_t *theirs = json_loadb((const char *)data + 1, size - 1,
                                JSON_REJECT_DUPLICATES | (zeros ? JSON_ALLOW_NUL : 0), NULL);
    bool deep = status == PAWL_EINVAL && strstr(error.text, "brackets are more than");
    require(status == PAWL_OK || error.text[0]);
    /* jansson overlooks a byte 0 behind a number. */
    if (memchr(data + 1, '\0', size - 1))
        require(status != PAWL_OK);
    else
        require(deep || (status == PAWL_OK) == (theirs != NULL));
    if (status == PAWL_OK)
        compare(ours, theirs);
    json_decref(theirs);
    arena_release(&memory);
    return 0;
}
