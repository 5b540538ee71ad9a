#!/usr/bin/env python3
"""tools/check-layers lets a clean tree pass, and names the place of each thing that breaks a rule."""
import tap

CLEAN = {
    'include/pawl/types.h': '#include <stdint.h>\n#include <pawl/status.h>\n',
    'src/base/hash.c': '#include "base/hash.h"\n#include <xxhash.h>\n#include <string.h>\n',
    'src/base/hash.h': '#include <pawl/types.h>\n',
    'src/base/latch.h': '#include <stdatomic.h>\n',
    'src/base/latch.c': '#include "base/latch.h"\n#include <sys/syscall.h>\n#include <unistd.h>\n',
    'src/port/env.h': '#include "base/hash.h"\n',
    'src/core/lease/lane.h': '#include "port/env.h"\n',
    'src/core/lease/lane.c': '#include "lane.h"\n#include <stdatomic.h>\n#include "core/lease/lane.h"\n',
    'src/adapter/uv/env.h': '#include "port/env.h"\n',
    'src/adapter/uv/env.c': '#include "adapter/uv/env.h"\n#include <uv.h>\n#include <pthread.h>\n'
                            '#include "base/latch.h"\n',
    'src/adapter/lmdb/store.c': '#include <lmdb.h>\n',
    'src/engine/json.c': '#include <jansson.h>\n',
    'src/engine/engine.h': '#include "core/lease/lane.h"\n',
    'src/engine/engine.c': '#include "adapter/uv/env.h"\n#include <time.h>\n',
    'src/engine/lanes/lanes.h': '#include "engine/engine.h"\n',
    'src/engine/lanes/impl.h': '#include "engine/lanes/lanes.h"\n',
    'src/engine/read/rows.c': '#include "engine/lanes/lanes.h"\n#include "engine/engine.h"\n',
    'src/http/server/server.c': '#include <pawl/types.h>\n#include "http/server/pool.h"\n#include <microhttpd.h>\n'
                                '#include "http/hub/hub.h"\n#include <jansson.h>\n',
    'src/http/server/pool.h': '#include <pawl/types.h>\n',
    'src/http/hub/hub.h': '#include <pawl/types.h>\n',
    'src/http/hub/impl.h': '#include "http/hub/hub.h"\n',
    'src/cli/say.h': '#include <pawl/pawl.h>\n#include <jansson.h>\n',
    'src/cli/words/options.h': '#include "cli/say.h"\n',
    'src/cli/talk/session.h': '#include "cli/words/options.h"\n',
    'src/cli/data/ws.c': '#include "cli/talk/session.h"\n#include "cli/data/ws.h"\n#include "cli/say.h"\n',
    'src/cli/data/ws.h': '#include "cli/words/options.h"\n',
    'src/cli/main.c': '#include <pawl/types.h>\n#include "cli/say.h"\n#include <curl/curl.h>\n#include <unistd.h>\n',
}

# What is added to the clean tree, and what must be said of it.
BROKEN = [
    ('src/base/a.c', '#include "port/env.h"', 'base may not include port/env.h'),
    ('src/port/a.c', '#include "core/lease/lane.h"', 'port may not include core/lease/lane.h'),
    ('src/core/a.c', '#include "adapter/uv/env.h"', 'core may not include adapter/uv/env.h'),
    ('src/core/a.c', '#include "../adapter/uv/env.h"', 'core may not include adapter/uv/env.h'),
    ('src/core/a.c', '#include <adapter/uv/env.h>', 'core may not include adapter/uv/env.h'),
    ('src/core/a.c', '#  include "engine/engine.h"', 'core may not include engine/engine.h'),
    ('src/core/a.c', '#include "base/latch.h"', 'core may not include base/latch.h'),
    ('src/port/a.c', '#include "base/latch.h"', 'port may not include base/latch.h'),
    ('src/core/a.c', '#include "base/wake_group.h"', 'core may not include base/wake_group.h'),
    ('src/core/a.c', '#include "base/wait.h"', 'core may not include base/wait.h'),
    ('src/adapter/lmdb/a.c', '#include "adapter/uv/env.h"', 'adapter/lmdb may not include adapter/uv/env.h'),
    ('src/adapter/uv/a.c', '#include "core/lease/lane.h"', 'adapter/uv may not include core/lease/lane.h'),
    ('src/adapter/uv/a.c', '#include "engine/engine.h"', 'adapter/uv may not include engine/engine.h'),
    ('src/engine/read/a.c', '#include "engine/lanes/impl.h"',
     'engine/read may include only engine/lanes/lanes.h of that room'),
    ('src/engine/a.c', '#include "engine/lanes/impl.h"',
     'engine may include only engine/lanes/lanes.h of that room'),
    ('src/http/routes/a.c', '#include "http/hub/impl.h"', 'http/routes may include only http/hub/hub.h of that room'),
    ('src/engine/a.c', '#include "http/server.h"', 'engine may not include http/server.h'),
    ('src/http/a.c', '#include "adapter/uv/env.h"', 'http may not include adapter/uv/env.h'),
    ('src/http/a.c', '#include "engine/engine.h"', 'http may not include engine/engine.h'),
    ('src/http/a.c', '#include "cli/main.h"', 'http may not include cli/main.h'),
    ('src/cli/a.c', '#include "adapter/uv/env.h"', 'cli may not include adapter/uv/env.h'),
    ('src/cli/a.c', '#include "engine/engine.h"', 'cli may not include engine/engine.h'),
    ('src/cli/a.c', '#include "core/lease/lane.h"', 'cli may not include core/lease/lane.h'),
    ('src/cli/a.c', '#include "port/env.h"', 'cli may not include port/env.h'),
    ('src/cli/a.c', '#include "base/hash.h"', 'cli may not include base/hash.h'),
    ('src/cli/a.h', '#include "../base/hash.h"', 'cli may not include base/hash.h'),
    ('src/cli/a.c', '#include "http/server.h"', 'cli may not include http/server.h'),
    ('src/cli/words/a.c', '#include "cli/talk/session.h"', 'cli/words may not include cli/talk/session.h'),
    ('src/cli/talk/a.c', '#include "cli/data/ws.h"', 'cli/talk may not include cli/data/ws.h'),
    ('src/cli/views/a.c', '#include "cli/data/ws.h"', 'cli/views may not include cli/data/ws.h'),
    ('src/core/a.c', '#include <lmdb.h>', 'core may not include lmdb.h'),
    ('src/engine/a.c', '#include <lmdb.h>', 'engine may not include lmdb.h'),
    ('src/engine/a.c', '#include <uv.h>', 'engine may not include uv.h'),
    ('src/core/a.c', '#include <xxhash.h>', 'core may not include xxhash.h'),
    ('src/core/a.c', '#include <jansson.h>', 'core may not include jansson.h'),
    ('src/engine/engine2.c', '#include <jansson.h>', 'engine may not include jansson.h'),
    ('src/engine/a.c', '#include <microhttpd.h>', 'engine may not include microhttpd.h'),
    ('src/adapter/uv/a.c', '#include <librdkafka/rdkafka.h>', 'adapter/uv may not include librdkafka/rdkafka.h'),
    ('src/http/a.c', '#include <curl/curl.h>', 'http may not include curl/curl.h'),
    ('src/cli/a.c', '#include <cmocka.h>', 'cli may not include cmocka.h'),
    ('src/core/a.c', '#include <pthread.h>', 'core may not include pthread.h'),
    ('src/core/a.c', '#include <threads.h>', 'core may not include threads.h'),
    ('src/core/a.c', '#include <time.h>', 'core may not include time.h'),
    ('src/core/a.c', '#include <sys/time.h>', 'core may not include sys/time.h'),
    ('src/core/a.c', '#include <sys/socket.h>', 'core may not include sys/socket.h'),
    ('src/port/a.c', '#include <fcntl.h>', 'port may not include fcntl.h'),
    ('src/base/a.c', '#include <unistd.h>', 'base may not include unistd.h'),
    ('src/core/a.c', '#include HEADER', 'an #include must name its file'),
    ('src/helpers/a.c', '', 'lies in no room'),
    ('src/a.c', '', 'lies in no room'),
    ('src/adapter/a.c', '', 'lies in no room'),
    ('include/pawl/a.h', '#include "base/hash.h"', 'a public header may not include base/hash.h'),
    ('include/pawl/a.h', '#include <uv.h>', 'a public header may not include uv.h'),
]


def plant(folder, files, unnamed=()):
    """The files, and a map that names them all, but for those."""
    rows = [f'| `{room.removeprefix("src/")}/` | `{name}` | what it holds |' for room, name in
            (path.rsplit('/', 1) for path in files if path.startswith('src/') and path not in unnamed)]
    tap.tree(folder, {**files, 'docs/ARCHITECTURE.md': '| room | file | holds |\n' + '\n'.join(rows) + '\n'})


def a_clean_tree_passes(folder):
    plant(folder, CLEAN)
    assert tap.tool('check-layers', folder) == (0, '')


def breaks(path, line, words):
    def case(folder):
        plant(folder, {**CLEAN, path: '/* first line */\n' + line + '\n'})
        status, output = tap.tool('check-layers', folder)
        place = 1 if words == 'lies in no room' else 2
        assert status == 1, f'passed: {line}'
        assert output.startswith(f'{path}:{place}: {words}') and output.count('\n') == 1, output
    case.__name__ = f'{path} with {line or "nothing"} is refused'.replace('#', '')
    return case


def several_places_are_all_named(folder):
    plant(folder, {**CLEAN, 'src/core/a.c': '#include <time.h>\n\n#include <uv.h>\n'})
    status, output = tap.tool('check-layers', folder)
    assert status == 1 and 'src/core/a.c:1:' in output and 'src/core/a.c:3:' in output, output


def a_file_that_the_map_does_not_name_is_refused(folder):
    plant(folder, CLEAN, unnamed=['src/engine/json.c'])
    assert tap.tool('check-layers', folder) == (1, 'src/engine/json.c:1: docs/ARCHITECTURE.md does not name it\n')


def a_name_in_another_room_does_not_count(folder):
    plant(folder, CLEAN, unnamed=['src/adapter/lmdb/store.c'])
    with open(f'{folder}/docs/ARCHITECTURE.md', 'a', encoding='utf-8') as text:
        text.write('| `adapter/mem/` | `store` | a twin |\n')
    status, output = tap.tool('check-layers', folder)
    assert status == 1 and output.startswith('src/adapter/lmdb/store.c:1:'), output


def one_name_stands_for_a_source_its_header_and_its_insides(folder):
    insides = {'src/core/lease/queue.c': '', 'src/core/lease/queue.h': '', 'src/core/lease/queue_impl.h': ''}
    plant(folder, {**CLEAN, **insides}, unnamed=insides)
    with open(f'{folder}/docs/ARCHITECTURE.md', 'a', encoding='utf-8') as text:
        text.write('| `core/lease/` | `lane` | a lane |\n| | `lane.h`, `queue` | a queue |\n')
    assert tap.tool('check-layers', folder) == (0, '')


tap.main([a_clean_tree_passes, several_places_are_all_named, a_file_that_the_map_does_not_name_is_refused,
          a_name_in_another_room_does_not_count, one_name_stands_for_a_source_its_header_and_its_insides] + [breaks(*rule) for rule in BROKEN])
