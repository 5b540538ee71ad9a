/* replay.c: the main function of a fuzz target that is not linked with libFuzzer.
 *
 *     fuzz_NAME DIRECTORY     runs the target on every file of its corpus
 *
 * So every build, with any compiler, runs each input that was kept. If an input breaks the target, the program
 * prints its name and ends. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX ((size_t)1 << 20)

static int replay_file(const char *directory, const char *name)
{
    static uint8_t input[INPUT_BYTES_MAX];
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    size_t size = fread(input, 1, sizeof input, file);
    int failed = ferror(file) || !feof(file);
    fclose(file);
    if (failed)
        return -1;

    /* A copy of exactly its size, so that a sanitizer sees the first byte read beyond it. */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        return -1;
    for (size_t i = 0; i < size; i++)
        exact[i] = input[i];
    printf("# %s\n", name);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
    if (!directory) {
        fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
        return 2;
    }
    unsigned ran = 0;
    int status = 0;
    const struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay_file(argv[1], entry->d_name)) {
            fprintf(stderr, "%s/%s: cannot be read, or is too long\n", argv[1], entry->d_name);
            status = 1;
        }
        ran++;
    }
    closedir(directory);
    printf("# %u inputs\n", ran);
    return ran ? status : 1;
}
