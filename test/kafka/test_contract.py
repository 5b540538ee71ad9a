"""Programs of test/engine, unchanged, with the logs of their engines on brokers (test/lib/beds.h).

    test_contract.py DIRECTORY NAME...
"""
import os
import subprocess
import sys

from brokers import main


def case(folder, name):
    """A test that such a program passes."""
    def body(_):
        done = subprocess.run([os.path.join(folder, 'test_' + name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=1800,
                              env={**os.environ, 'PAWL_BEDS': os.environ['PAWL_KAFKA']})
        sys.stdout.write(''.join('# ' + line + '\n' for line in done.stdout.splitlines()))
        assert done.returncode == 0, f'exit code {done.returncode}'
    body.__name__ = f'{name}_holds_on_kafka'
    return body


if __name__ == '__main__':
    main([case(sys.argv[1], name) for name in sys.argv[2:]])
