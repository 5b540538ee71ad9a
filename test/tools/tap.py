"""The little that a test of a tool needs: cases named as sentences, reported as TAP."""
import os
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tree(folder, files):
    """Write {path: text} below the folder."""
    for path, text in files.items():
        file = os.path.join(folder, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, 'w', encoding='utf-8') as output:
            output.write(text)


def tool(name, *arguments):
    """(exit status, output) of tools/NAME."""
    done = subprocess.run([os.path.join(ROOT, 'tools', name), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


children = []  # processes that a case has started; none outlives it


def end_children():
    for process in children:
        if process.poll() is None:
            process.kill()
            process.wait()
    children.clear()


class Skip(Exception):
    """Raised by a case that this machine does not allow, with the reason."""


def main(cases):
    """Run the cases, each a function of an empty folder, and exit."""
    print(f'1..{len(cases)}')
    failed = 0
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(folder)
                print(f'ok {number} - {case.__name__}')
            except Skip as reason:
                print(f'ok {number} - {case.__name__} # SKIP {reason}')
            except Exception:
                failed += 1
                print(f'not ok {number} - {case.__name__}')
                traceback.print_exc()
            finally:
                end_children()
    sys.exit(1 if failed else 0)
