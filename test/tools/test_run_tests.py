#!/usr/bin/env python3
"""tools/run-tests counts cases, and a program that fails without a failed case."""
import importlib.machinery
import importlib.util
import os

import tap

loader = importlib.machinery.SourceFileLoader('run_tests', os.path.join(tap.ROOT, 'tools/run-tests'))
run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader('run_tests', loader))
loader.exec_module(run_tests)


def counts(name, expected, result, stdout):
    def case(_):
        got = run_tests.count({'result': result, 'stdout': stdout})
        assert got == expected, f'{got}, not {expected}'
    case.__name__ = name
    return case


TWO = '1..2\nok 1 - a\nok 2 - b\n# ok - tests\n'

tap.main([
    counts('every_case_counts', (2, 0), 'OK', TWO),
    counts('a_failed_case_counts', (1, 1), 'FAIL', '1..2\nok 1 - a\n# why\nnot ok 2 - b\n'),
    counts('a_skipped_case_does_not_count', (1, 0), 'OK', '1..2\nok 1 # SKIP a\nok 2 - b\n'),
    counts('a_crash_after_good_cases_is_a_failure', (2, 1), 'FAIL', TWO),
    counts('a_timeout_is_a_failure', (1, 1), 'TIMEOUT', '1..2\nok 1 - a\n'),
    counts('a_broken_plan_is_a_failure', (1, 1), 'ERROR', '1..2\nok 1 - a\n'),
    counts('a_program_without_cases_is_one', (1, 0), 'OK', ''),
    counts('a_failed_program_without_cases_is_one', (0, 1), 'FAIL', 'words\n'),
    counts('a_skipped_program_does_not_count', (0, 0), 'SKIP', ''),
])
