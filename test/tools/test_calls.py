#!/usr/bin/env python3
"""tools/check-calls finds banned calls in code, and only there."""
import tap


def quiet_code_passes(folder):
    tap.tree(folder, {
        'src/core/a.c': '/* strcpy( in words,\n * sleep(1) */\nint x = my_strcpy(env->random(e)); // gets(\n',
        'src/cli/a.c': 'void f(void)\n{\n    printf("sprintf(%s)", s);\n    sleep(1);\n}\n',
        'src/core/stream/applier.c': 'void f(void)\n{\n    pawl_store_abort(store);\n}\n',
        'test/unit/a.c': 'void f(void)\n{\n    snprintf(t, n, "\\"sleep(");\n}\n'})
    assert tap.tool('check-calls', folder) == (0, '')


def refuses(path, call):
    def case(folder):
        tap.tree(folder, {path: f'/* one\n * two */\nvoid f(void) {{ x = {call}; }}\n'})
        status, output = tap.tool('check-calls', folder)
        assert status == 1 and output.startswith(f'{path}:3: {call.split("(")[0].strip()} is not used'), output
    case.__name__ = f'{path} may not call {call}'
    return case


tap.main([quiet_code_passes] + [refuses(*rule) for rule in (
    ('src/cli/a.c', 'strcpy(a, b)'), ('src/cli/a.c', 'strcat (a, b)'), ('include/pawl/a.h', 'sprintf(a, b)'),
    ('bench/a.c', 'atoi(a)'), ('src/http/a.c', 'alloca(n)'), ('src/http/a.c', 'strtok(a, b)'),
    ('test/unit/a.c', 'rand()'), ('test/unit/a.c', 'sleep(1)'), ('test/unit/a.c', 'usleep(1)'),
    ('src/core/a.c', 'printf("x")'), ('src/base/a.c', 'getenv("x")'),
    ('src/core/command/a.c', 'pawl_store_commit(s)'), ('src/engine/lanes/a.c', 'pawl_store_abort(s)'))])
