"""What a loss of power may leave of a directory, from the record that test/crash/recorder.c has made of a program.

A disk has files and names. Each write is lost or kept by itself, sector by sector, until its file is synced; each change
of a name, until its directory is. Only changes of one name keep their order. Nothing else is promised by a file
system, and nothing else is assumed here.

An image is a directory as it may be found after the power has gone. A file in it stands for the one that was recorded,
whose inode and birth it cannot have: the recorder tells the program so."""
import os
import stat

PAGE = 4096
SECTOR = 512


class File:
    """Durable pages that are not zeros, the length, and what was written since the last sync."""

    def __init__(self, inode, pages=None, length=0):
        self.inode, self.pages, self.length, self.pending, self.birth = inode, pages or {}, length, [], 0

    def apply(self, change, keep=lambda: True):
        """One change: (where, bytes), (where, number of zeros), or (None, length)."""
        where, what = change
        if where is None:
            if keep():
                self.cut(what)
            return
        size = what if isinstance(what, int) else len(what)
        kept = False
        for page in range(where // PAGE, (where + size + PAGE - 1) // PAGE):
            if isinstance(what, int) and page not in self.pages:
                kept = True  # zeros over zeros
                continue
            now = bytearray(self.pages.get(page, bytes(PAGE)))
            for sector in range(page * PAGE, page * PAGE + PAGE, SECTOR):
                begin, end = max(sector, where), min(sector + SECTOR, where + size)
                if begin < end and keep():
                    kept = True
                    part = bytes(end - begin) if isinstance(what, int) else what[begin - where:end - where]
                    now[begin - page * PAGE:end - page * PAGE] = part
            self.pages[page] = bytes(now)
        if kept:
            self.length = max(self.length, where + size)

    def cut(self, length):
        if length < self.length:
            for page in [page for page in self.pages if page * PAGE >= length]:
                del self.pages[page]
            if length % PAGE and length // PAGE in self.pages:
                self.pages[length // PAGE] = self.pages[length // PAGE][:length % PAGE].ljust(PAGE, b'\0')
        self.length = length

    def sync(self):
        for change in self.pending:
            self.apply(change)
        self.pending = []

    def left(self, keep):
        """The file as it may be found."""
        found = File(self.inode, dict(self.pages), self.length)
        for change in self.pending:
            found.apply(change, keep)
        return found

    def write(self, path):
        with open(path, 'wb') as file:
            for page, contents in self.pages.items():
                file.seek(page * PAGE)
                file.write(contents)
            file.truncate(self.length)


class Folder:
    """Its names: as they are now, and as they are durable."""

    def __init__(self, inode):
        self.inode, self.now, self.durable = inode, {}, {}


class Disk:
    """Everything below a directory, as it was found, and as a record goes on from there."""

    def __init__(self, root):
        self.root, self.names, self.by_inode = root, [], {}
        self.top = self.take(root)

    def take(self, path):
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            node = Folder(status.st_ino)
            for name in os.listdir(path):
                node.now[name] = node.durable[name] = self.take(os.path.join(path, name))
        else:
            with open(path, 'rb') as file:
                contents = file.read()
            pages = {at // PAGE: contents[at:at + PAGE].ljust(PAGE, b'\0') for at in range(0, len(contents), PAGE)}
            node = File(status.st_ino, {page: bytes_ for page, bytes_ in pages.items() if any(bytes_)}, len(contents))
        self.by_inode[node.inode] = node
        return node

    def place(self, path):
        """(folder, name) of a path."""
        parts = os.path.relpath(path, self.root).split('/')
        folder = self.top
        for part in parts[:-1]:
            folder = folder.now[part]
        return folder, parts[-1]

    def rename(self, *changes):
        """Names that change in one step: (folder, name, node or None)."""
        for folder, name, node in changes:
            folder.now[name] = node
        self.names.append(changes)

    def sync_folder(self, folder):
        """Its names, and what came before them of the same names elsewhere."""
        wanted = set()
        kept = []
        for changes in reversed(self.names):
            touched = {(id(f), name) for f, name, _ in changes}
            if any(f is folder for f, _, _ in changes) or touched & wanted:
                wanted |= touched
            else:
                kept.append(changes)
        left = {id(changes) for changes in kept}
        for changes in self.names:
            if id(changes) not in left:
                for f, name, node in changes:
                    f.durable[name] = node
        self.names = kept[::-1]

    def step(self, op):
        """The next effect of the record."""
        kind = op[0]
        if kind in ('create', 'mkdir'):
            node = (File if kind == 'create' else Folder)(op[1])
            self.by_inode[op[1]] = node
            folder, name = self.place(op[2])
            self.rename((folder, name, node))
        elif kind in ('write', 'zeros'):
            file = self.by_inode[op[1]]
            change = (op[3], op[4])
            if op[2]:
                file.apply(change)
            else:
                file.pending.append(change)
        elif kind == 'length':
            self.by_inode[op[1]].pending.append((None, op[2]))
        elif kind == 'sync':
            node = self.by_inode[op[1]]
            if isinstance(node, File):
                node.sync()
            else:
                self.sync_folder(node)
        elif kind == 'born':
            if op[1] in self.by_inode:
                self.by_inode[op[1]].birth = op[2]
        elif kind == 'remove':
            self.rename((*self.place(op[1]), None))
        elif kind in ('rename', 'exchange'):
            (a, old), (b, new) = self.place(op[1]), self.place(op[2])
            self.rename((a, old, b.now[new] if kind == 'exchange' else None), (b, new, a.now[old]))

    def image(self, to, keep):
        """Make one. Returns the lines for PAWL_CUT_FILES."""
        lost, entries = set(), {}
        for changes in self.names:
            touched = {(id(folder), name) for folder, name, _ in changes}
            if touched & lost or not keep():
                lost |= touched
                continue
            for folder, name, node in changes:
                entries.setdefault(id(folder), dict(folder.durable))[name] = node
        stand_ins = []

        def make(folder, path):
            os.mkdir(path)
            for name, node in entries.get(id(folder), folder.durable).items():
                inner = os.path.join(path, name)
                if isinstance(node, Folder):
                    make(node, inner)
                elif node is not None:
                    node.left(keep).write(inner)
                    stand_ins.append(f'{os.stat(inner).st_ino} {node.inode} {node.birth}\n')
        make(self.top, to)
        return stand_ins


EFFECTS = ('create', 'mkdir', 'write', 'zeros', 'length', 'sync', 'remove', 'rename', 'exchange')


def read_record(path):
    """The effects, in order; with what was born and what was said among them."""
    ops = []
    with open(path, 'rb') as file:
        while line := file.readline():
            kind, rest = line.decode().rstrip('\n').split(' ', 1)
            if kind in ('create', 'mkdir'):
                inode, name = rest.split(' ', 1)
                ops.append((kind, int(inode), name))
            elif kind in ('rename', 'exchange'):
                ops.append((kind, *rest.split('\t')))
            elif kind == 'remove':
                ops.append((kind, rest))
            elif kind in ('write', 'zeros'):
                inode, synced, where, size = map(int, rest.split())
                ops.append((kind, inode, synced, where, file.read(size) if kind == 'write' else size))
            elif kind == 'said':
                ops.append((kind, file.read(int(rest)).decode()))
            elif kind in ('length', 'born'):
                ops.append((kind, *map(int, rest.split())))
            elif kind == 'sync':
                ops.append((kind, int(rest)))
            else:
                raise ValueError(line)
    return ops
