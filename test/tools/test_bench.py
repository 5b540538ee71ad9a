#!/usr/bin/env python3
"""tools/bench builds benches with the peers that are installed by now, runs them, and keeps their answers."""
import os
import shutil
import subprocess

import tap

NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >>"$PAWL_TEST_NOTES"\n'
BENCH = NOTE + 'while [ "$1" != --json ]; do shift; done\nif [ -n "$PAWL_TEST_FAIL" ]; then exit 1; fi\necho answers >"$2"\n'


def bench(folder, *words, **environment):
    """(exit status, what was called) of a copy whose tools only note that they were called."""
    tap.tree(folder, {'tools/configure': NOTE, 'tools/build': NOTE, 'bin/meson': NOTE, 'bench/log.c': '', 'bench/store.c': '',
                      'build/gcc/bench/bench_log': BENCH, 'build/gcc/bench/bench_store': BENCH, 'notes': ''})
    shutil.copy(f'{tap.ROOT}/tools/bench', f'{folder}/tools/bench')
    for program in ('tools/configure', 'tools/build', 'bin/meson', 'build/gcc/bench/bench_log', 'build/gcc/bench/bench_store'):
        os.chmod(f'{folder}/{program}', 0o755)
    done = subprocess.run([f'{folder}/tools/bench', *words], stdout=subprocess.DEVNULL, check=False,
                          env={**os.environ, 'PATH': f"{folder}/bin:{os.environ['PATH']}", 'PAWL_TEST_NOTES': f'{folder}/notes',
                               **environment})
    with open(f'{folder}/notes', encoding='utf-8') as text:
        return done.returncode, text.read().replace(folder, '').splitlines()


def peers_that_were_installed_since_are_found_before_it_builds(folder):
    status, notes = bench(folder, 'log', '--build')
    assert status == 0, notes
    assert notes == ['configure gcc', 'meson setup --reconfigure /build/gcc ', 'build gcc bench_log'], notes


def without_names_all_benches_are_run_with_the_options(folder):
    status, notes = bench(folder, '--quick')
    assert status == 0, notes
    assert notes[2:] == ['build gcc bench_log bench_store', 'bench_log --quick --json /build/bench/log.json',
                         'bench_store --quick --json /build/bench/store.json'], notes


def a_bench_that_fails_leaves_no_answers_of_an_earlier_run(folder):
    assert bench(folder, 'log', '--json', f'{folder}/kept')[0] == 0 and os.path.exists(f'{folder}/kept/log.json')
    status, notes = bench(folder, 'log', '--json', f'{folder}/kept', PAWL_TEST_FAIL='yes')
    assert status == 1 and not os.path.exists(f'{folder}/kept/log.json'), notes


if __name__ == '__main__':
    tap.main([peers_that_were_installed_since_are_found_before_it_builds, without_names_all_benches_are_run_with_the_options,
              a_bench_that_fails_leaves_no_answers_of_an_earlier_run])
