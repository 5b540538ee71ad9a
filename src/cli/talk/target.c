/* cli/talk/target.c: the target of a request: a path and its parameters. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk/remote.h"

static void put(struct target *t, const char *text, size_t size)
{
    t->failed = t->failed || !buffer_reserve(&t->text, size + 1);
    if (t->failed)
        return;
    memcpy(t->text.data + t->text.size, text, size);
    t->text.size += size;
    t->text.data[t->text.size] = '\0';
}

static void put_encoded(struct target *t, const char *text, size_t size)
{
    /* Of an empty text, curl would take the size from strlen. */
    char *encoded = size > 0 && size <= INT32_MAX ? curl_easy_escape(NULL, text, (int)size) : NULL;
    t->failed = t->failed || (size > 0 && !encoded);
    if (encoded)
        put(t, encoded, strlen(encoded));
    curl_free(encoded);
}

void target_begin(struct target *t, const char *path)
{
    *t = (struct target){0};
    put(t, path, strlen(path));
}

void target_word(struct target *t, const char *word)
{
    put(t, "/", 1);
    put_encoded(t, word, strlen(word));
}

void target_number(struct target *t, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    target_word(t, text);
}

void target_add_bytes(struct target *t, const char *name, pawl_bytes value)
{
    if (!value.data)
        return;
    put(t, t->query ? "&" : "?", 1);
    put(t, name, strlen(name));
    put(t, "=", 1);
    put_encoded(t, value.data, value.size);
    t->query = true;
}

void target_add(struct target *t, const char *name, const char *value)
{
    target_add_bytes(t, name, (pawl_bytes){value, value ? strlen(value) : 0});
}

void target_add_number(struct target *t, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    target_add(t, name, value ? text : NULL);
}

void target_add_flag(struct target *t, const char *name, bool value)
{
    target_add(t, name, value ? "true" : NULL);
}

void target_release(struct target *t)
{
    free(t->text.data);
    *t = (struct target){0};
}
