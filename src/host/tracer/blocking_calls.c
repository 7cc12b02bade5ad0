/* SPDX-License-Identifier: MIT */
#include "host/tracer/blocking_calls.h"

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Where a call has its timeout. */
enum timeout {
	NO_TIMEOUT,
	MILLISECONDS, /* in an argument; negative: none */
	POINTER,      /* in an argument, to a time; NULL: none */
	TO_RECEIVE,   /* of the socket that the first argument may be */
	TO_SEND,
	OF_MESSAGES, /* as POINTER, then as TO_RECEIVE */
	OF_EVENTS,   /* io_getevents(): as POINTER, and a minimum in the second argument */
	OF_RING,     /* io_uring_enter() */
	OF_IPC,      /* i386's ipc() */
	OF_SOCKETS   /* i386's socketcall() */
};

/* A call that may end with EINTR. Numbers that a machine lacks are -1. */
struct blocking_call {
	int16_t x86_64;
	int16_t i386;
	int16_t aarch64;
	uint8_t timeout;  /* enum timeout */
	uint8_t argument; /* index of the one with the timeout */
};

/* By arch/x86/entry/syscalls/syscall_{64,32}.tbl and include/uapi/asm-generic/unistd.h. */
static const struct blocking_call calls[] = {
	{ 232, 256, -1, MILLISECONDS, 3 }, /* epoll_wait */
	{ 281, 319, 22, MILLISECONDS, 3 }, /* epoll_pwait */
	{ 441, 441, 441, POINTER, 3 },     /* epoll_pwait2 */
	{ 65, -1, 193, NO_TIMEOUT, 0 },    /* semop */
	{ 220, -1, 192, POINTER, 3 },      /* semtimedop */
	{ -1, 420, -1, POINTER, 3 },       /* semtimedop_time64 */
	{ -1, 117, -1, OF_IPC, 0 },        /* ipc */
	{ 128, 177, 137, POINTER, 2 },     /* rt_sigtimedwait */
	{ -1, 421, -1, POINTER, 2 },       /* rt_sigtimedwait_time64 */
	{ 208, 247, 4, OF_EVENTS, 4 },     /* io_getevents */
	{ 426, 426, 426, OF_RING, 0 },     /* io_uring_enter */
	{ 0, 3, 63, TO_RECEIVE, 0 },       /* read */
	{ 19, 145, 65, TO_RECEIVE, 0 },    /* readv */
	{ 43, -1, 202, TO_RECEIVE, 0 },    /* accept */
	{ 288, 364, 242, TO_RECEIVE, 0 },  /* accept4 */
	{ 45, 371, 207, TO_RECEIVE, 0 },   /* recvfrom */
	{ 47, 372, 212, TO_RECEIVE, 0 },   /* recvmsg */
	{ 299, 337, 243, OF_MESSAGES, 4 }, /* recvmmsg */
	{ -1, 417, -1, OF_MESSAGES, 4 },   /* recvmmsg_time64 */
	{ 1, 4, 64, TO_SEND, 0 },          /* write */
	{ 20, 146, 66, TO_SEND, 0 },       /* writev */
	{ 40, 187, 71, TO_SEND, 0 },       /* sendfile */
	{ -1, 239, -1, TO_SEND, 0 },       /* sendfile64 */
	{ 42, 362, 203, TO_SEND, 0 },      /* connect */
	{ 44, 369, 206, TO_SEND, 0 },      /* sendto */
	{ 46, 370, 211, TO_SEND, 0 },      /* sendmsg */
	{ 307, 345, 269, TO_SEND, 0 },     /* sendmmsg */
	{ -1, 102, -1, OF_SOCKETS, 0 },    /* socketcall */
};

static int64_t number_on(const struct blocking_call *b, uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return b->x86_64;
	case EM_386:
		return b->i386;
	default:
		return machine == EM_AARCH64 ? b->aarch64 : -1;
	}
}

static const struct blocking_call *find_call(const struct fathom_blocking_call *c)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls && c->number >= 0; i++)
		if (number_on(&calls[i], c->machine) == c->number)
			return &calls[i];
	return NULL;
}

/* Returns whether the socket @fd of ours has the timeout @option; true if that is unknown. */
static bool has_timeout(int fd, int option)
{
	struct timeval t = { 0 };
	socklen_t size = sizeof t;

	return getsockopt(fd, SOL_SOCKET, option, &t, &size) || t.tv_sec || t.tv_usec;
}

/*
 * Returns the inode number of the socket that is the thread's descriptor @number; 0: it is none, or
 * is closed. The link tells it without a question to the file's file system, which may be gone.
 */
static uint64_t socket_at(int task, uint64_t number)
{
	static const char prefix[] = "socket:[";
	char path[32];
	char link[64];
	ssize_t length;

	(void)snprintf(path, sizeof path, "fd/%u", (unsigned)number);
	length = readlinkat(task, path, link, sizeof link - 1);
	if (length < 0)
		return 0;
	link[length] = '\0';
	return strncmp(link, prefix, sizeof prefix - 1)
		       ? 0
		       : strtoull(link + sizeof prefix - 1, NULL, 10);
}

/*
 * Returns what a stop does to a call that waits for the thread's descriptor @number. A socket with
 * a timeout ends it with EINTR; the timeout is read from a copy of the descriptor (pidfd_getfd(2)).
 * The copy is of the first thread's table, so the socket must be the same.
 */
static enum fathom_stop_effect effect_on(const struct fathom_blocking_call *c, uint64_t number,
					 int option)
{
	const uint64_t inode = socket_at(c->task, number);
	struct stat ours;
	bool ends;
	int fd;

	if (!inode)
		return FATHOM_STOP_RESTARTS;
	fd = c->process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, c->process, (int)number, 0);
	if (fd < 0)
		return FATHOM_STOP_ENDS;
	ends = fstat(fd, &ours) || ours.st_ino != inode || has_timeout(fd, option);
	close(fd);
	return ends ? FATHOM_STOP_ENDS : FATHOM_STOP_RESTARTS;
}

static enum fathom_stop_effect effect_if(bool ends)
{
	return ends ? FATHOM_STOP_ENDS : FATHOM_STOP_EINTR;
}

/*
 * The flags of io_uring_enter(), and the size of struct io_uring_getevents_arg
 * (<linux/io_uring.h>).
 */
#define RING_GETEVENTS  1u
#define RING_EXT_ARG    8u
#define RING_REGISTERED (1u << 6)
#define RING_ARG_SIZE   24

/*
 * Returns what a stop does to io_uring_enter(fd, to_submit, min_complete, flags, arg). It returns
 * how many requests it submitted, if any, or 0 if some but too few are complete; so those cannot be
 * started anew.
 */
static enum fathom_stop_effect effect_on_ring(const struct fathom_blocking_call *c)
{
	const uint32_t flags = (uint32_t)c->arguments[3];
	uint8_t arg[RING_ARG_SIZE];

	if ((uint32_t)c->arguments[1] || (uint32_t)c->arguments[2] > 1 || flags & RING_REGISTERED ||
	    !(flags & RING_GETEVENTS))
		return FATHOM_STOP_ENDS;
	if (!(flags & RING_EXT_ARG) || !c->arguments[4])
		return FATHOM_STOP_EINTR;
	/* sigmask, sigmask_sz, min_wait_usec, ts */
	return effect_if(!fathom_reader_read(c->memory, c->arguments[4], arg, sizeof arg) ||
			 load_u32(arg + 12, false) || load_u64(arg + 16, false));
}

/* The calls of ipc() and socketcall() (<linux/ipc.h>, <linux/net.h>). */
#define IPC_SEMOP        1
#define IPC_SEMTIMEDOP   4
#define CALLS_TO_RECEIVE (1u << 5 | 1u << 10 | 1u << 12 | 1u << 17 | 1u << 18 | 1u << 19)
#define CALLS_TO_SEND    (1u << 3 | 1u << 9 | 1u << 11 | 1u << 16 | 1u << 20)

static enum fathom_stop_effect effect_on_ipc(const struct fathom_blocking_call *c)
{
	const uint64_t call = c->arguments[0] & 0xffff;

	if (call != IPC_SEMOP && call != IPC_SEMTIMEDOP)
		return FATHOM_STOP_RESTARTS;
	return effect_if(call == IPC_SEMTIMEDOP && c->arguments[5]);
}

/* Returns what a stop does to socketcall(call, arguments), whose descriptor lies in memory. */
static enum fathom_stop_effect effect_on_sockets(const struct fathom_blocking_call *c)
{
	const uint32_t call = c->arguments[0] < 32 ? 1u << c->arguments[0] : 0;
	uint64_t fd;

	if (!(call & (CALLS_TO_RECEIVE | CALLS_TO_SEND)))
		return FATHOM_STOP_RESTARTS;
	if (!fathom_reader_uint(c->memory, c->arguments[1], 4, false, &fd))
		return FATHOM_STOP_ENDS;
	return effect_on(c, fd, call & CALLS_TO_SEND ? SO_SNDTIMEO : SO_RCVTIMEO);
}

enum fathom_stop_effect fathom_blocking_call_effect(const struct fathom_blocking_call *c)
{
	const struct blocking_call *b = find_call(c);
	const uint64_t *a = c->arguments;

	if (!b)
		return FATHOM_STOP_RESTARTS;
	switch ((enum timeout)b->timeout) {
	case NO_TIMEOUT:
		return FATHOM_STOP_EINTR;
	case MILLISECONDS:
		return effect_if((int32_t)a[b->argument] >= 0);
	case POINTER:
		return effect_if(a[b->argument] != 0);
	case OF_MESSAGES:
		return a[b->argument] ? FATHOM_STOP_ENDS : effect_on(c, a[0], SO_RCVTIMEO);
	case TO_RECEIVE:
		return effect_on(c, a[0], SO_RCVTIMEO);
	case TO_SEND:
		return effect_on(c, a[0], SO_SNDTIMEO);
	case OF_EVENTS:
		return effect_if(a[b->argument] || a[1] > 1);
	case OF_RING:
		return effect_on_ring(c);
	case OF_IPC:
		return effect_on_ipc(c);
	case OF_SOCKETS:
		return effect_on_sockets(c);
	}
	return FATHOM_STOP_RESTARTS;
}
