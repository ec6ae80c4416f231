"""Moves blocks between two processes with NIXL or with Mooncake, for `just bench kv`.

    movers.py nixl|mooncake source BLOCK_BYTES BLOCKS
    movers.py nixl|mooncake reader BLOCK_BYTES BLOCKS ADDRESS

The source fills its blocks, prints its address and ends with its standard input. The reader is told `ORDER TIMES` a line, reads the blocks of the source
so often, checks what came, and prints the seconds that each time took. Orders are `contiguous`, and `scattered`: no two neighbours of the source are
neighbours here. Both have all their memory before they begin.
"""

import base64
import ctypes
import mmap
import os
import sys
import time

STEP = 5  # As in src/bench/kv/ours.rs.


class Region:
    """Blocks in memory that the system has given; each begins with its number."""

    def __init__(self, block_bytes, blocks, filled):
        self.block_bytes, self.blocks = block_bytes, blocks
        self.bytes = block_bytes * blocks
        self.memory = mmap.mmap(-1, max(self.bytes, mmap.PAGESIZE))
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        ctypes.memset(self.base, 1, self.bytes)
        for block in range(blocks if filled else 0):
            self.write(block, block + 1)

    def at(self, block):
        return self.base + block * self.block_bytes

    def write(self, block, number):
        ctypes.c_uint64.from_address(self.at(block)).value = number

    def into(self, order):
        """Where the blocks of the source go, in order."""
        if order == "contiguous":
            return list(range(self.blocks))
        return [(i * STEP) % self.blocks for i in range(self.blocks)]

    def clear(self):
        for block in range(self.blocks):
            self.write(block, 0)

    def check(self, into):
        for number, block in enumerate(into, 1):
            found = ctypes.c_uint64.from_address(self.at(block)).value
            if found != number:
                raise RuntimeError(f"block {block} begins with {found}, must be {number}")


class Nixl:
    """Its agents with the backend UCX, each with its own progress thread, which is the default. The reader prepares the lists of all blocks once, and a
    transfer each time, as engines do; where blocks are contiguous they are one descriptor."""

    def __init__(self, role):
        from nixl_cu12._api import nixl_agent, nixl_agent_config

        self.agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))

    def register(self, region):
        self.region = region
        self.agent.register_memory([(region.base, region.bytes, 0, "")], "DRAM")

    def address(self):
        return f"{base64.b64encode(self.agent.get_agent_metadata()).decode()},{self.region.base}"

    def connect(self, address):
        metadata, base = address.split(",")
        self.base = int(base)
        self.source = self.agent.add_remote_agent(base64.b64decode(metadata))
        if isinstance(self.source, bytes):
            self.source = self.source.decode()
        self.whole = [self.lists(self.region.bytes, 1), [0], [0]]
        each = self.lists(self.region.block_bytes, self.region.blocks)
        self.blocks = [each, self.region.into("scattered"), list(range(self.region.blocks))]

    def lists(self, size, count):
        def prepare(name, base):
            return self.agent.prep_xfer_dlist(name, [(base + i * size, size, 0) for i in range(count)], "DRAM")

        return prepare("", self.region.base), prepare(self.source, self.base)

    def read(self, order):
        (own, theirs), into, source = self.whole if order == "contiguous" else self.blocks
        handle = self.agent.make_prepped_xfer("READ", own, into, theirs, source)
        state = self.agent.transfer(handle)
        while state == "PROC":
            state = self.agent.check_xfer_state(handle)
        self.agent.release_xfer_handle(handle)
        if state != "DONE":
            raise RuntimeError(f"a transfer ended as {state}")


class Mooncake:
    """Its transfer engine over tcp, peer to peer without a metadata server; a read is a batch, or several one after the other: of many more its queue
    refuses some."""

    BATCH = 1024

    def __init__(self, role):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        if self.engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", ""):
            raise RuntimeError("it does not start")

    def register(self, region):
        self.region = region
        if self.engine.register_memory(region.base, region.bytes):
            raise RuntimeError("it does not register memory")

    def address(self):
        return f"127.0.0.1:{self.engine.get_rpc_port()},{self.region.base}"

    def connect(self, address):
        self.source, base = address.split(",")
        own, base = self.region, int(base)
        self.whole = [own.base], [base], [own.bytes]
        into = [own.at(block) for block in own.into("scattered")]
        self.blocks = into, [base + i * own.block_bytes for i in range(own.blocks)], [own.block_bytes] * own.blocks

    def read(self, order):
        lists = self.whole if order == "contiguous" else self.blocks
        for first in range(0, len(lists[0]), self.BATCH):
            batch = [each[first : first + self.BATCH] for each in lists]
            status = self.engine.batch_transfer_sync_read(self.source, *batch)
            if status:
                raise RuntimeError(f"a read ended as {status}")


def main():
    kind, role, block_bytes, blocks, *address = sys.argv[1:]
    # What libraries print must not come between.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    region = Region(int(block_bytes), int(blocks), role == "source")
    mover = {"nixl": Nixl, "mooncake": Mooncake}[kind](role)
    mover.register(region)
    if role == "source":
        print(mover.address(), file=told, flush=True)
        sys.stdin.read()
        return
    mover.connect(address[0])
    for line in sys.stdin:
        order, times = line.split()
        region.clear()
        seconds = []
        for _ in range(int(times)):
            started = time.perf_counter()
            mover.read(order)
            seconds.append(time.perf_counter() - started)
        region.check(region.into(order))
        print(*seconds, file=told, flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Their threads and destructors are not what is measured.
    os._exit(0)
