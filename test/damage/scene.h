/* test/damage/scene.h: a small journal on real files, to be damaged, looked at and put back.
 *
 * A scene is a temporary directory with a journal in it, written in one thread. A picture is the content of
 * that journal's directory at one moment, all bytes of it, in memory. Taking one of a journal that is open and
 * putting it back after closing is what kill -9 leaves. */
#ifndef TEST_DAMAGE_SCENE_H
#define TEST_DAMAGE_SCENE_H

#include "adapter/journal/journal.h"
#include "adapter/journal/segment.h"
#include "adapter/mem/env.h"
#include "test/lib/test.h"

#define PICTURE_FILES_MAX 64
#define SCENE_SEGMENT     4096

struct picture_file {
    char name[64];
    uint8_t *bytes;
    size_t size;
};

struct picture {
    struct picture_file files[PICTURE_FILES_MAX]; /* by name */
    size_t count;
};

struct scene {
    char dir[64];
    char journal[80]; /* dir/journal */
    struct mem_world *world;
    struct mem_env *env;
    pawl_log *log;
    uint64_t epochs[2];
    uint64_t nexts[2];
    pawl_error error;
};

/* A record that must be there, in its segment's file. */
struct live_record {
    char file[64];
    uint64_t at;
    uint64_t size;
    uint64_t lsn;
    bool witnessed; /* or sealed */
};

#define LIVE_RECORDS_MAX 512

extern const pawl_stream scene_streams[2];

void scene_init(struct scene *scene);
void scene_release(struct scene *scene);

int scene_open(struct scene *scene);   /* for writing; the error is in scene->error */
void scene_close(struct scene *scene); /* if it is open */

/* One append of count entries of that many bytes; entry n of stream s is filled with scene_body. */
void scene_append(struct scene *scene, size_t stream, size_t count, size_t bytes);
uint8_t scene_body(size_t stream, uint64_t offset);

/* A journal of three segments with two streams: one closed, gone on with and rolled, one killed, and the
 * newest, which was closed and gone on with too, and ends as asked for. */
void scene_write(struct scene *scene, bool killed);

void picture_take(struct picture *picture, const char *path);
void picture_put(const struct picture *picture, const char *path);
void picture_release(struct picture *picture);

/* Fails the test if the directory is not as in the picture. The lock file, which says who looked, is left out.
 */
void picture_assert(const struct picture *picture, const char *path);

const struct picture_file *picture_newest(const struct picture *picture);
const struct picture_file *picture_find(const struct picture *picture, const char *name);
const struct picture_file *picture_segment(const struct picture *picture, uint32_t wanted);

/* Every record that a reader may still need, from the files themselves. */
size_t scene_records(struct scene *scene, const struct picture *picture, struct live_record *ret_records);

/* Change one byte of a file. */
void flip(const char *dir, const char *name, uint64_t at, uint8_t bits);
void write_file(const char *dir, const char *name, const void *bytes, size_t size);

#endif
