/* fuzz_target.c: a target that is taken apart has segments and parameters that lie inside the text, are no path
 * tricks, and are found again; what is refused names its place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_text(const char *text, const char *begin, size_t size)
{
    require(text >= begin && text + strlen(text) <= begin + size);
}

static void check(const struct target *target, const char *text, size_t size)
{
    require(target->segment_count <= TARGET_SEGMENTS_MAX && target->param_count <= TARGET_PARAMS_MAX);
    for (size_t i = 0; i < target->segment_count; i++) {
        const char *segment = target->segments[i];
        check_text(segment, text, size);
        require(segment[strspn(segment, ".")] != '\0' && !strpbrk(segment, "/\\"));
        for (const char *at = segment; *at; at++)
            require((unsigned char)*at >= 0x20 && *at != 0x7f);
    }
    for (size_t i = 0; i < target->param_count; i++) {
        const struct target_param *param = &target->params[i];
        check_text(param->name, text, size);
        require(param->name[0] != '\0' && target_param(target, param->name) == param->value);
        uint64_t number = 0;
        pawl_duration duration = 0;
        if (target_number(param->value, 3, 99, "$query", &number, NULL) == PAWL_OK)
            require(number >= 3 && number <= 99);
        if (target_duration(param->value, PAWL_SECOND, "$query", &duration, NULL) == PAWL_OK)
            require(duration <= PAWL_SECOND);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target target;
    pawl_error error = {0};
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (target_parse(text, &target, &error) == PAWL_OK)
        check(&target, text, size);
    else
        require(error.code == PAWL_EINVAL && error.text[0] == '$');
    free(text);
    return 0;
}
