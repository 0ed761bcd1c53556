"""What a process of tools may reach with `python: { sandbox: on }`, held by the kernel (Landlock).

It reads the interpreter, the system's programs and libraries, and the workspace but for `.toolcrib/`; it writes in a
temporary folder of its own; it makes no TCP connection and listens on no port. Programs that it starts are held to the
same, and nothing gives it back. The calls are made by ctypes: the interpreter has no words for them.

A kernel before Linux 6.7 knows of files alone. There nothing is run, unless `sandbox: files` says that this will do.
"""

import ctypes
import os
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE
_LOOK = _EXECUTE | _READ | _LIST
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store")
# No secrets stand there, and much does not start without them.
_ETC = ("ssl", "ca-certificates", "localtime", "timezone", "hosts", "resolv.conf", "nsswitch.conf", "ld.so.cache",
        "ld.so.conf", "ld.so.conf.d", "mime.types", "services", "protocols", "alternatives", "python3")  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full")


class NoSandbox(Exception):
    """The kernel does not do it."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scope", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def restrict(workspace, temporary, network=True):
    """Takes everything away but what is allowed, for good. `temporary` is a folder that may be written. Without
    `network`, connections are taken away only where the kernel knows how."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    everything, rules, size = _rights(version, network)
    ruleset = libc.syscall(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        raise NoSandbox(f"the kernel refuses: {os.strerror(ctypes.get_errno())}")
    for path in _readable(workspace):
        _allow(libc, ruleset, path, _LOOK)
    for path in _DEVICES:
        _allow(libc, ruleset, path, _READ | _WRITE)
    _allow(libc, ruleset, temporary, everything)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or libc.syscall(_RESTRICT, ruleset, ctypes.c_uint32(0)) != 0:
        raise NoSandbox(f"the kernel refuses: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)


def _rights(version, network):
    """All rights to files, what is taken away, and how much of that a kernel of this version reads."""
    if version < 1:
        raise NoSandbox("this kernel has no Landlock, or it is switched off")
    if network and version < 4:
        raise NoSandbox(
            "this kernel cannot keep tools from the network (Linux 6.7 can): "
            "`python: { sandbox: files }` shuts in their files alone"
        )
    everything = (1 << 13) - 1
    for since, right in ((2, 13), (3, 14), (5, 15)):
        everything |= (1 << right) if version >= since else 0
    rules = _Ruleset(everything, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    return everything, rules, 24 if version >= 6 else 16 if version >= 4 else 8


def _readable(workspace):
    yield from _SYSTEM
    yield from (os.path.join("/etc", name) for name in _ETC)
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__))
    yield from (path for path in sys.path if path)
    yield os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # What we keep of other calls and of events is not for tools.
    with os.scandir(workspace) as entries:
        yield from (entry.path for entry in entries if entry.name != ".toolcrib")


def _allow(libc, ruleset, path, access):
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            access &= _OF_FILES
        rule = _Beneath(access, folder)
        if libc.syscall(_ADD, ruleset, ctypes.c_uint32(1), ctypes.byref(rule), ctypes.c_uint32(0)) != 0:
            raise NoSandbox(f"the kernel refuses {path}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(folder)
