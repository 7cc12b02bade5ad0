# SPDX-License-Identifier: MIT
"""What strace prints otherwise in some of its versions. The suites compare fathom's lines with those of the strace that is installed,
6.1 (Debian 12) or 6.13 (Debian 13). Each row of OURS makes of a line of fathom's exactly what that strace prints; each row of THEIRS
makes of a line of strace's what fathom prints, where strace knows less, or tells something that fathom does not. Of three things that
fathom does not tell (an alias of a sound driver, a terminal's other end, bytes of requests that nobody knows) the text is left out."""
import functools
import re
import subprocess

NEWER = (6, 13)  # the rows are known to hold for versions below it, or from it on


@functools.cache
def installed():
    """The version of strace: (6, 1)."""
    first = subprocess.run(["strace", "-V"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return tuple(map(int, re.search(r"version (\d+)\.(\d+)", first).groups()))


def without_names(flags, names, unknown):
    """@flags as a strace prints them that does not have @names ({name: value}); @unknown is what it says behind a lone number."""
    words = flags.split("|")
    rest = sum(names[word] for word in words if word in names)
    kept = [word for word in words if word not in names]
    if not rest:
        return flags
    numbers = [i for i, word in enumerate(kept) if re.fullmatch("0x[0-9a-f]+", word)]
    if numbers:
        kept[numbers[-1]] = hex(int(kept[numbers[-1]], 16) | rest)
    else:
        kept.append(hex(rest))
    return "|".join(kept) + (f" /* {unknown} */" if unknown and len(kept) == 1 else "")


def lacks(before, names, unknown):
    """A row: in the flags behind what the pattern @before matches, @names are not known."""
    pattern = rf"({before})((?:[\w<]+\|)*[\w<]+)(?![\w<|])"
    return pattern, lambda m: m[1] + without_names(m[2], names, unknown) if set(names) & set(m[2].split("|")) else m[0]


def old_atime(m):
    """MOUNT_ATTR__ATIME is a mask, of which the older strace has only two bits' names."""
    return m[1] + without_names(m[2].replace("MOUNT_ATTR__ATIME", "MOUNT_ATTR_NOATIME|MOUNT_ATTR_STRICTATIME|ATIME_REST"), {"ATIME_REST": 0x40}, "")


def old_perf(m):
    """The three bits and 29 more were bytes without a name."""
    value = sum(int(bit) << i for i, bit in enumerate(m.groups()[:3])) | int(m[4] or "0", 16) << 3
    return f" /* bytes 116..119: {value:#x} */" if value else ""


def old_epoll(m):
    value = int(m[2], 16)
    return f"{m[1]}, data={{u32={value & 0xffffffff}, u64={value}}}}}"


def on_registered_ring(m):
    """Of a ring that is registered, its number, and what is done, of which bit 31 says so."""
    fd = int(m[1]) - (1 << 32) if int(m[1]) >> 31 else int(m[1])
    return f"io_uring_register({fd}, {int(m[2], 16) | 1 << 31:#x} /* IORING_REGISTER_??? */"


NOT_FOR_OTHERS = {"MADV_DONTDUMP": 16, "MADV_DODUMP": 17, "MADV_WIPEONFORK": 18, "MADV_KEEPONFORK": 19, "MADV_MERGEABLE": 12,
                  "MADV_UNMERGEABLE": 13, "MADV_HUGEPAGE": 14, "MADV_NOHUGEPAGE": 15, "MADV_COLLAPSE": 25}
HEX = r'"(?:\\x[0-9a-f]{2})+"'

# (versions, pattern in fathom's line, what strace prints there): "old" is below 6.13, "new" from it on.
OURS = [
    ("old", *lacks(r"\bname_to_handle_at\(.*, ", {"AT_HANDLE_MNT_ID_UNIQUE": 1, "AT_HANDLE_FID": 0x200}, "AT_???")),
    ("old", *lacks(r"\bpidfd_send_signal\(.*, ", {"PIDFD_SIGNAL_THREAD": 1, "PIDFD_SIGNAL_THREAD_GROUP": 2, "PIDFD_SIGNAL_PROCESS_GROUP": 4}, "")),
    ("old", r"(\bpidfd_send_signal\(.*, 0x[0-9a-f]+) /\* PIDFD_SIGNAL_\?\?\? \*/", r"\1"),
    ("old", *lacks(r"\b(?:mmap2?|remap_file_pages)\(.*?(?:MAP_\w+|/\* MAP_\?\?\? \*/)\|", {"MAP_ABOVE4G": 0x80}, "")),
    ("old", *lacks(r"\bkexec_file_load\(.*, ", {"KEXEC_FILE_DEBUG": 8}, "KEXEC_FILE_???")),
    ("old", *lacks(r"\bfanotify_init\((?:0x[0-9a-f]+ /\* FAN_CLASS_\?\?\? \*/\|)?", {"FAN_REPORT_FD_ERROR": 0x2000}, "FAN_???")),
    ("old", *lacks(r"\bKVM_SET_USER_MEMORY_REGION, \{slot=\d+, flags=", {"KVM_MEM_GUEST_MEMFD": 4}, "KVM_MEM_???")),
    ("old", r"(\bfsmount\(.*, )((?:\w+\|)*MOUNT_ATTR__ATIME(?:\|\w+)*)", old_atime),
    ("old", *lacks(r"\bfsmount\(.*, ", {"MOUNT_ATTR_NOSYMFOLLOW": 0x200000}, "MOUNT_ATTR_???")),
    ("old", r"(\battr_(?:set|clr)=)((?:\w+\|)*MOUNT_ATTR__ATIME(?:\|\w+)*)", old_atime),
    ("old", *lacks(r"\bUFFDIO_REGISTER, .*, ioctls=", {"1<<_UFFDIO_MOVE": 1 << 5, "1<<_UFFDIO_POISON": 1 << 8}, "")),
    ("old", r"\|BPF_JCOND\b", "|0xe0 /* BPF_??? */"),
    ("old", r"(?<=\{events=)([^{}]*), data=(0x[0-9a-f]+|0)\}", old_epoll),
    ("old", rf"(cmsg_level=(?!SOL_SOCKET|0x1\b|1\b)[^{{}}]*?cmsg_type=(?!SCM_SECURITY|0x3\b)[^,{{}}]*), cmsg_data={HEX}", r"\1"),
    ("old", r", aux_start_paused=(\d), aux_pause=(\d), aux_resume=(\d)(?:, __reserved_3=(0x[0-9a-f]+) /\* Bits 931\.\.959 \*/)?", old_perf),
    ("old", r"(, sig_data=\w+), config3=\w+(?:, \.\.\.)?\}", r"\1, ...}"),
    # The newer one has no name for the newest size of this structure.
    ("new", "PERF_ATTR_SIZE_VER8", "0x88 /* PERF_ATTR_SIZE_??? */"),
    # The newer one shows no buffers where there are more than can be; ours are shown up to those that cannot be read.
    ("new", r"(\bwritev\(\d+, )\[.*\](?=, 18446744073709551615\))", r"\g<1>0x7fffffffffff"),
    # The newer one has the names of what was once allowed, or is thought to be, for another process's memory only.
    ("new", r"(?<=process_madvise\()(.*, )(MADV_\w+)", lambda m: m[1] + (f"{NOT_FOR_OTHERS[m[2]]:#x} /* MADV_??? */" if m[2] in NOT_FOR_OTHERS else m[2])),
]

# (versions, pattern in strace's line, what fathom prints there)
THEIRS = [
    # Numbers of a sound driver of long ago; the newer strace leaves them out where it sees that the descriptor is a terminal.
    ("all", r"\bSNDCTL_TMR_\w+ or (?=TCSETS)", ""),
    # The newer one asks which terminal is the other end.
    ("new", r"(<char 5:2) @[^>]*>", r"\1>"),
    # With -v the newer one shows the bytes that a request which it does not know moves, as its number says.
    ("new", r'(_IOC\(_IOC_[\w|]+, 0x[^)]*\), )"(?:[^"\\]|\\.)*"(?:\.\.\.)?(?: => "(?:[^"\\]|\\.)*"(?:\.\.\.)?)?(?=\) )', r"\g<1>0x7fffffffffff"),
    # Constants of Linux 6.13, of whose sources the tables are not.
    ("new", *lacks(r"\bname_to_handle_at\(.*, ", {"AT_HANDLE_CONNECTABLE": 2}, "AT_???")),
    ("new", *lacks(r"\bio_uring_enter\((?:[^,]*, ){3}", {"IORING_ENTER_EXT_ARG_REG": 64}, "IORING_ENTER_???")),
    ("new", r"\bio_uring_register\((\d+), (0x[0-9a-f]+) /\* IORING_REGISTER_\?\?\? \*/\|IORING_REGISTER_USE_REGISTERED_RING", on_registered_ring),
]


def apply(rows, line, version):
    age = "old" if version < NEWER else "new"
    for which, pattern, instead in rows:
        if which in ("all", age):
            line = re.sub(pattern, instead, line)
    return line


def as_strace(line, version=None):
    """A line of fathom's as the strace that is installed prints it, as far as it differs by version."""
    return apply(OURS, line, version or installed())


def as_fathom(line, version=None):
    """A line of strace's without what fathom does not tell."""
    return apply(THEIRS, line, version or installed())
