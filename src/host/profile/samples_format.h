/* SPDX-License-Identifier: MIT */
/*
 * The format of profile files: docs/profile-format.md describes it.
 *
 * Eight bytes of magic, then records up to the end: a tag, the size of what follows, and that.
 * Numbers are LEB128 (DWARF 5, section 7.6) without sign; zigzag(x) is 2x, or -2x - 1 if x is
 * negative. A text is its size and its bytes.
 *
 * ABOUT: key, text
 * THREAD: pid, tid, parent, ns, name, cgroup of the process + 1 or 0
 * MODULE: kind, path, size of the build-id, build-id, size and time of change of a file without
 *	one, of a script the module that executes it + 1 or 0
 * SYMBOL: source, name, linkage name or "", file or "", line, symbol that it is inlined into + 1 or
 *	0, column
 * LOCATION: module + 1 or 0, address, kind of pc, trust | SIGNAL_RETURN, symbol + 1 or 0
 * NODE: caller, location
 * SAMPLE: part | stop << 4, zigzag of the ns since the last sample, thread, node, weight, how a
 *	wait ended (FATHOM_PROFILE_WAKER_*)
 * LOST: ns, samples
 * THROTTLED: ns
 * END: ns; nothing follows
 * CGROUP: path
 *
 * Threads, modules, symbols, locations and cgroups are numbered from 0 in their order, nodes
 * from 1. A record refers only to records before it. The ns of the first sample count from 0.
 *
 * A record with a tag that is not known is passed over; so are bytes after what is known of one.
 */
#ifndef FATHOM_PROFILE_SAMPLES_FORMAT_H
#define FATHOM_PROFILE_SAMPLES_FORMAT_H

#include <stdint.h>

#define FATHOM_PROFILE_MAGIC \
	"\x7f"               \
	"fprof1\n"
#define FATHOM_PROFILE_MAGIC_SIZE 8

enum {
	FATHOM_RECORD_ABOUT = 1,
	FATHOM_RECORD_THREAD = 2,
	FATHOM_RECORD_MODULE = 3,
	FATHOM_RECORD_SYMBOL = 4,
	FATHOM_RECORD_LOCATION = 5,
	FATHOM_RECORD_NODE = 6,
	FATHOM_RECORD_SAMPLE = 7,
	FATHOM_RECORD_LOST = 8,
	FATHOM_RECORD_THROTTLED = 9,
	FATHOM_RECORD_END = 10,
	FATHOM_RECORD_CGROUP = 11,
	FATHOM_RECORD_TAGS = 12 /* tags that are known are below it */
};

/* A bit beside a trust. */
#define FATHOM_PROFILE_SIGNAL_RETURN 0x80u

/* How a wait ended: it goes on; by an interrupt; from this number on by a thread, whose number. */
#define FATHOM_PROFILE_WAKER_GOES_ON   1u
#define FATHOM_PROFILE_WAKER_INTERRUPT 2u
#define FATHOM_PROFILE_WAKER_THREAD    3u

/* The path of the module whose symbols are what threads wait for. */
#define FATHOM_PROFILE_WAITS "[waits]"

/* The path of a module of JIT code; the PID and "]" follow. */
#define FATHOM_PROFILE_JIT "[jit of "

/* Room for such a symbol, with its NUL. */
#define FATHOM_PROFILE_REASON 320

/* The longest text. */
#define FATHOM_PROFILE_TEXT ((size_t)1 << 16)

/* Keys of ABOUT; numbers are decimal texts. */
#define FATHOM_ABOUT_COMMAND   "command"
#define FATHOM_ABOUT_EVENT     "event"
#define FATHOM_ABOUT_UNIT      "unit"
#define FATHOM_ABOUT_METHOD    "method"
#define FATHOM_ABOUT_MACHINE   "machine"
#define FATHOM_ABOUT_KERNEL    "kernel"
#define FATHOM_ABOUT_HOST      "host"
#define FATHOM_ABOUT_FREQUENCY "frequency"
#define FATHOM_ABOUT_STARTED   "started"       /* nanoseconds since 1970 */
#define FATHOM_ABOUT_BEGAN     "began"         /* the same moment by the monotonic clock */
#define FATHOM_ABOUT_HIDDEN    "kernel-hidden" /* "1": the kernel's stacks were not permitted */
#define FATHOM_ABOUT_ENDS      "ends-unknown"  /* "1": nothing says which stacks are whole */

#endif
