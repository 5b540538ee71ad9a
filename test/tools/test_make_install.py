#!/usr/bin/env python3
"""make install puts things below PREFIX and DESTDIR, whatever the build was configured with before.

The project is a small one that installs one file; the Makefile and meson are the real ones.
"""
import os
import shutil
import subprocess

import tap

PROJECT = {
    'meson.build': "project('small')\ninstall_data('note', install_dir: get_option('datadir'))\n",
    'note': 'installed\n',
    'tools/install': '#!/bin/sh\n',
    'tools/configure': '#!/bin/sh\n[ -f build/$1/build.ninja ] || meson setup -Dprefix=/usr build/$1\n',
    'tools/build': '#!/bin/sh\nninja -C build/$1\n',
}


def make_install(folder, **where):
    done = subprocess.run(['make', '-C', folder, 'install', *(f'{name}={path}' for name, path in where.items())],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def plant(folder):
    tap.tree(folder, PROJECT)
    for tool in ('install', 'configure', 'build'):
        os.chmod(os.path.join(folder, 'tools', tool), 0o755)
    shutil.copy(os.path.join(tap.ROOT, 'Makefile'), folder)


def a_prefix_counts_at_the_first_install_and_so_does_another(folder):
    plant(folder)
    for prefix in ('first', 'second'):
        make_install(folder, PREFIX=f'{folder}/{prefix}')
        assert os.path.exists(f'{folder}/{prefix}/share/note'), prefix


def destdir_stands_before_the_prefix(folder):
    plant(folder)
    make_install(folder, PREFIX='/opt/pawl', DESTDIR=f'{folder}/root')
    assert os.path.exists(f'{folder}/root/opt/pawl/share/note')


tap.main([a_prefix_counts_at_the_first_install_and_so_does_another, destdir_stands_before_the_prefix])
