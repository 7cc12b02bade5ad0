/* SPDX-License-Identifier: MIT */
#include "host/stack/wait.h"

#include <elf.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "host/stack/descriptor.h"
#include "host/stack/file_lock.h"
#include "host/stack/futex.h"
#include "host/stack/task_files.h"
#include "host/stack/wait_time.h"
#include "host/syscalls/syscall_table.h"
#include "safe/base/limits.h"

struct fathom_wait_facts *fathom_wait_facts_create(void)
{
	return calloc(1, sizeof(struct fathom_wait_facts));
}

void fathom_wait_facts_destroy(struct fathom_wait_facts *facts)
{
	if (!facts)
		return;
	fathom_sockets_deinit(&facts->sockets);
	fathom_array_free(&facts->tids);
	free(facts);
}

/* Argument @i as the int that the system call takes. */
static int32_t int_argument(const struct fathom_waiter *w, unsigned i)
{
	return (int32_t)(uint32_t)fathom_waiter_arguments(w)[i];
}

static uint64_t argument(const struct fathom_waiter *w, unsigned i)
{
	return fathom_waiter_arguments(w)[i];
}

static void put(struct fathom_waiter *w, enum fathom_wait_kind kind, const char *text)
{
	w->ret->kind = (uint8_t)kind;
	fathom_text_cstr(&w->text, text);
}

/* Times */

/* Returns the milliseconds of argument @i; a negative number is no limit. */
static struct fathom_duration milliseconds(const struct fathom_waiter *w, unsigned i)
{
	const int32_t ms = int_argument(w, i);

	return ms < 0 ? (struct fathom_duration){ .known = false }
		      : (struct fathom_duration){ true, ms / 1000,
						  (uint32_t)(ms % 1000) * 1000000 };
}

static void describe_sleep(struct fathom_waiter *w, unsigned i)
{
	const struct fathom_duration d = fathom_duration_read(w, argument(w, i), 1);

	if (!d.known || w->from->has_no_times)
		return;
	put(w, FATHOM_WAIT_TIME, "");
	fathom_duration_put(w, d);
}

/* clock_nanosleep(): with a time of a clock as the end, or like nanosleep(). */
static void describe_clock_sleep(struct fathom_waiter *w, unsigned i)
{
	if (!(argument(w, 1) & TIMER_ABSTIME)) {
		describe_sleep(w, i);
		return;
	}
	if (fathom_wait_put_left(w, "", argument(w, i), int_argument(w, 0)))
		w->ret->kind = FATHOM_WAIT_TIME;
}

/* Descriptors */

static void describe_fd(struct fathom_waiter *w, int32_t fd, enum fathom_direction way)
{
	put(w, FATHOM_WAIT_DESCRIPTOR, "");
	if (fathom_descriptor_name(w, fd, 0, way)) {
		fathom_text_cstr(&w->text, " (fd ");
		fathom_wait_put_signed(w, fd);
		fathom_text_char(&w->text, ')');
	} else {
		fathom_text_cstr(&w->text, "fd ");
		fathom_wait_put_signed(w, fd);
	}
}

static void describe_input(struct fathom_waiter *w, unsigned i)
{
	describe_fd(w, int_argument(w, i), FATHOM_INWARDS);
}

static void describe_output(struct fathom_waiter *w, unsigned i)
{
	describe_fd(w, int_argument(w, i), FATHOM_OUTWARDS);
}

static void describe_either(struct fathom_waiter *w, unsigned i)
{
	describe_fd(w, int_argument(w, i), FATHOM_BOTH_WAYS);
}

/* mq_timedreceive(), mq_timedsend(): argument 4 is a time of CLOCK_REALTIME. */
static void describe_message_in(struct fathom_waiter *w, unsigned i)
{
	describe_fd(w, int_argument(w, i), FATHOM_INWARDS);
	(void)fathom_wait_put_left(w, ", ", argument(w, 4), CLOCK_REALTIME);
}

static void describe_message_out(struct fathom_waiter *w, unsigned i)
{
	describe_fd(w, int_argument(w, i), FATHOM_OUTWARDS);
	(void)fathom_wait_put_left(w, ", ", argument(w, 4), CLOCK_REALTIME);
}

/* socketcall() of i386: the number of the call, its arguments in memory (linux/net.h). */
static void describe_socketcall(struct fathom_waiter *w, unsigned i)
{
	const uint32_t outwards = 1u << 3 | 1u << 9 | 1u << 11 | 1u << 16 | 1u << 20;
	const uint32_t inwards = 1u << 5 | 1u << 10 | 1u << 12 | 1u << 17 | 1u << 18 | 1u << 19;
	const uint32_t bit = argument(w, 0) < 32 ? 1u << argument(w, 0) : 0;
	uint64_t fd;

	if ((bit & (inwards | outwards)) &&
	    fathom_reader_uint(w->from->memory, argument(w, i), 4, false, &fd))
		describe_fd(w, (int32_t)(uint32_t)fd,
			    bit & inwards ? FATHOM_INWARDS : FATHOM_OUTWARDS);
}

/* Appends a comma and the first few descriptors of @d by name. */
static void put_members(struct fathom_waiter *w, const struct fathom_descriptors *d)
{
	const uint32_t named = sizeof d->first / sizeof *d->first;

	for (uint32_t i = 0; i < d->n && i < named; i++) {
		fathom_text_cstr(&w->text, i ? ", fd " : ": fd ");
		fathom_wait_put_signed(w, d->first[i].fd);
		fathom_text_char(&w->text, ' ');
		if (!fathom_descriptor_name(w, d->first[i].fd, d->first[i].inode, FATHOM_BOTH_WAYS))
			w->text.len--;
	}
	if (d->n > named) {
		fathom_text_cstr(&w->text, " and ");
		fathom_text_dec(&w->text, d->n - named);
		fathom_text_cstr(&w->text, " more");
	}
}

/* Describes a wait for any of @d, at most for @limit. */
static void put_descriptors(struct fathom_waiter *w, const struct fathom_descriptors *d,
			    struct fathom_duration limit)
{
	put(w, FATHOM_WAIT_DESCRIPTORS, "");
	fathom_text_dec(&w->text, d->n);
	fathom_text_cstr(&w->text, d->n == 1 ? " descriptor" : " descriptors");
	if (limit.known && !w->from->has_no_times) {
		fathom_text_cstr(&w->text, " for ");
		fathom_duration_put(w, limit);
	}
	put_members(w, d);
}

/* Describes poll() or select() without descriptors, a sleep, or with some. */
static void put_polled(struct fathom_waiter *w, const struct fathom_descriptors *d,
		       struct fathom_duration limit)
{
	if (d->n) {
		put_descriptors(w, d, limit);
	} else if (limit.known) {
		put(w, FATHOM_WAIT_TIME, "");
		if (!w->from->has_no_times)
			fathom_duration_put(w, limit);
	} else {
		put(w, FATHOM_WAIT_SIGNAL, "a signal");
	}
}

/* Reads the descriptors of an array of struct pollfd; false if it cannot be read. */
static bool read_polled(const struct fathom_waiter *w, struct fathom_descriptors *ret)
{
	const uint64_t n = argument(w, 1);
	uint8_t bytes[8 * 128];
	uint64_t i = 0;

	if (n > FATHOM_MAX_WAIT_DESCRIPTORS)
		return false;
	while (i < n) {
		const size_t piece = n - i < 128 ? (size_t)(n - i) : 128;

		if (!fathom_reader_read(w->from->memory, argument(w, 0) + 8 * i, bytes, 8 * piece))
			return false;
		for (size_t k = 0; k < piece; k++) {
			const int32_t fd = (int32_t)load_u32(bytes + 8 * k, false);

			if (fd >= 0)
				fathom_descriptors_add(ret, fd, 0);
		}
		i += piece;
	}
	return true;
}

static void describe_poll(struct fathom_waiter *w, unsigned i)
{
	struct fathom_descriptors d = { .n = 0 };

	if (read_polled(w, &d))
		put_polled(w, &d, milliseconds(w, i));
}

static void describe_ppoll(struct fathom_waiter *w, unsigned i)
{
	struct fathom_descriptors d = { .n = 0 };

	if (read_polled(w, &d))
		put_polled(w, &d, fathom_duration_read(w, argument(w, i), 1));
}

/*
 * Reads the descriptors of the three sets of select(), in words of the program's size; false if
 * one cannot be read.
 */
static bool read_selected(const struct fathom_waiter *w, struct fathom_descriptors *ret)
{
	const uint32_t n = (uint32_t)argument(w, 0);
	const uint32_t bits = (uint32_t)w->word * 8;

	if (n > FATHOM_MAX_WAIT_DESCRIPTORS)
		return false;
	for (uint32_t fd = 0; fd < n; fd += bits) {
		uint64_t all = 0;

		for (unsigned set = 1; set <= 3; set++) {
			uint64_t word = 0;

			if (argument(w, set) &&
			    !fathom_reader_uint(w->from->memory, argument(w, set) + fd / 8, w->word,
						false, &word))
				return false;
			all |= word;
		}
		for (uint32_t i = 0; i < bits && fd + i < n; i++)
			if (all >> i & 1)
				fathom_descriptors_add(ret, (int32_t)(fd + i), 0);
	}
	return true;
}

/* select(); i386's oldest one has all arguments in memory, and is not described. */
static void describe_select(struct fathom_waiter *w, unsigned i)
{
	struct fathom_descriptors d = { .n = 0 };

	if ((w->from->machine != EM_386 || strcmp(w->ret->syscall, "select") != 0) &&
	    read_selected(w, &d))
		put_polled(w, &d, fathom_duration_read(w, argument(w, i), 1000));
}

static void describe_pselect(struct fathom_waiter *w, unsigned i)
{
	struct fathom_descriptors d = { .n = 0 };

	if (read_selected(w, &d))
		put_polled(w, &d, fathom_duration_read(w, argument(w, i), 1));
}

static void describe_epoll(struct fathom_waiter *w, unsigned i)
{
	struct fathom_descriptors d = { .n = 0 };

	if (!fathom_descriptors_read_epoll(w, int_argument(w, 0), &d))
		describe_input(w, 0);
	else if (strcmp(w->ret->syscall, "epoll_pwait2") == 0)
		put_descriptors(w, &d, fathom_duration_read(w, argument(w, i), 1));
	else
		put_descriptors(w, &d, milliseconds(w, i));
}

/* fcntl(): only its commands for locks wait, F_SETLKW, F_SETLKW64 and F_OFD_SETLKW. */
static void describe_fcntl(struct fathom_waiter *w, unsigned i)
{
	const uint64_t command = argument(w, 1);
	const bool waits = command == 7 || command == 38 || (w->word == 4 && command == 14);

	if (!waits)
		return;
	put(w, FATHOM_WAIT_DESCRIPTOR, "lock of ");
	describe_fd(w, int_argument(w, i), FATHOM_BOTH_WAYS);
	fathom_file_lock_describe(w, int_argument(w, i),
				  command == 38 ? FATHOM_LOCK_OFD : FATHOM_LOCK_POSIX);
}

static void describe_flock(struct fathom_waiter *w, unsigned i)
{
	put(w, FATHOM_WAIT_DESCRIPTOR, "lock of ");
	describe_fd(w, int_argument(w, i), FATHOM_BOTH_WAYS);
	fathom_file_lock_describe(w, int_argument(w, i), FATHOM_LOCK_FLOCK);
}

/* open(): of a FIFO whose other end is not open, or of a device or server that does not answer. */
static void describe_open(struct fathom_waiter *w, unsigned i)
{
	char path[sizeof w->ret->text];
	const size_t size =
		w->from->memory->read(w->from->memory->data, argument(w, i), path, sizeof path - 1);

	path[size] = '\0';
	if (!path[0])
		return;
	put(w, FATHOM_WAIT_FILE, "to open ");
	fathom_text_cstr(&w->text, path);
}

/* Processes and signals */

/* Describes a wait for the child that is @pid to the process. */
static void put_child(struct fathom_waiter *w, uint32_t pid)
{
	w->ret->owner = fathom_task_find_child(w, pid);
	put(w, FATHOM_WAIT_CHILD, "child ");
	fathom_text_dec(&w->text, w->ret->owner ? (uint32_t)w->ret->owner : pid);
	fathom_text_cstr(&w->text, w->ret->owner ? "" : " of its PID namespace");
}

static void put_group(struct fathom_waiter *w, uint32_t group)
{
	put(w, FATHOM_WAIT_CHILD, "any child of process group ");
	fathom_text_dec(&w->text, group);
}

/* wait4() and waitpid() */
static void describe_wait(struct fathom_waiter *w, unsigned i)
{
	const int32_t pid = int_argument(w, i);

	if (pid > 0)
		put_child(w, (uint32_t)pid);
	else if (pid == -1)
		put(w, FATHOM_WAIT_CHILD, "any child");
	else if (!pid)
		put(w, FATHOM_WAIT_CHILD, "any child of its process group");
	else
		put_group(w, 0 - (uint32_t)pid);
}

static void describe_waitid(struct fathom_waiter *w, unsigned i)
{
	const uint32_t id = (uint32_t)argument(w, i);

	switch (argument(w, 0)) {
	case P_ALL:
		put(w, FATHOM_WAIT_CHILD, "any child");
		break;
	case P_PID:
		put_child(w, id);
		break;
	case P_PGID:
		if (id)
			put_group(w, id);
		else
			put(w, FATHOM_WAIT_CHILD, "any child of its process group");
		break;
	case P_PIDFD:
		w->ret->owner = fathom_descriptor_pid(w, (int32_t)id);
		describe_fd(w, (int32_t)id, FATHOM_BOTH_WAYS);
		w->ret->kind = FATHOM_WAIT_CHILD;
		break;
	default:
		break;
	}
}

static void describe_vfork(struct fathom_waiter *w, unsigned i)
{
	(void)i;
	put(w, FATHOM_WAIT_CHILD, "child of vfork");
}

/* clone(): with CLONE_VFORK only does it wait. */
static void describe_clone(struct fathom_waiter *w, unsigned i)
{
	if (argument(w, i) & CLONE_VFORK)
		describe_vfork(w, i);
}

/* clone3(): the flags are the first member of a struct. */
static void describe_clone3(struct fathom_waiter *w, unsigned i)
{
	uint64_t flags;

	if (fathom_reader_uint(w->from->memory, argument(w, i), 8, false, &flags) &&
	    (flags & CLONE_VFORK))
		describe_vfork(w, i);
}

static void describe_signal(struct fathom_waiter *w, unsigned i)
{
	(void)i;
	put(w, FATHOM_WAIT_SIGNAL, "a signal");
}

/* rt_sigtimedwait(): the timeout is the third argument. */
static void describe_sigtimedwait(struct fathom_waiter *w, unsigned i)
{
	const struct fathom_duration limit = fathom_duration_read(w, argument(w, i), 1);

	put(w, FATHOM_WAIT_SIGNAL, "a signal");
	if (limit.known && !w->from->has_no_times) {
		fathom_text_cstr(&w->text, " for ");
		fathom_duration_put(w, limit);
	}
}

static void describe_continued(struct fathom_waiter *w, unsigned i)
{
	(void)i;
	put(w, FATHOM_WAIT_CONTINUED, "continued call");
}

static void describe_semaphores(struct fathom_waiter *w, unsigned i)
{
	put(w, FATHOM_WAIT_SYSTEM_V, "semaphore set ");
	fathom_wait_put_signed(w, int_argument(w, i));
}

static void describe_queue(struct fathom_waiter *w, unsigned i)
{
	put(w, FATHOM_WAIT_SYSTEM_V, "message queue ");
	fathom_wait_put_signed(w, int_argument(w, i));
}

static void describe_futex(struct fathom_waiter *w, unsigned i)
{
	(void)i;
	fathom_futex_describe(w);
}

/* futex_waitv(): the number of futexes is the second argument. */
static void describe_futexes(struct fathom_waiter *w, unsigned i)
{
	put(w, FATHOM_WAIT_FUTEX, "any of ");
	fathom_text_dec(&w->text, (uint32_t)argument(w, i));
	fathom_text_cstr(&w->text, " futexes");
	(void)fathom_wait_put_left(w, ", ", argument(w, 3), int_argument(w, 4));
}

/* The calls that wait, and the argument that tells what for. */
static const struct call {
	const char *name;
	void (*describe)(struct fathom_waiter *w, unsigned argument);
	uint8_t argument;
} calls[] = {
	{ "futex", describe_futex, 0 },
	{ "futex_time64", describe_futex, 0 },
	{ "futex_waitv", describe_futexes, 1 },
	{ "read", describe_input, 0 },
	{ "pread64", describe_input, 0 },
	{ "readv", describe_input, 0 },
	{ "preadv", describe_input, 0 },
	{ "preadv2", describe_input, 0 },
	{ "recvfrom", describe_input, 0 },
	{ "recvmsg", describe_input, 0 },
	{ "recvmmsg", describe_input, 0 },
	{ "recvmmsg_time64", describe_input, 0 },
	{ "accept", describe_input, 0 },
	{ "accept4", describe_input, 0 },
	{ "getdents", describe_input, 0 },
	{ "getdents64", describe_input, 0 },
	{ "mq_timedreceive", describe_message_in, 0 },
	{ "mq_timedreceive_time64", describe_message_in, 0 },
	{ "splice", describe_input, 0 },
	{ "tee", describe_input, 0 },
	{ "write", describe_output, 0 },
	{ "pwrite64", describe_output, 0 },
	{ "writev", describe_output, 0 },
	{ "pwritev", describe_output, 0 },
	{ "pwritev2", describe_output, 0 },
	{ "sendto", describe_output, 0 },
	{ "sendmsg", describe_output, 0 },
	{ "sendmmsg", describe_output, 0 },
	{ "connect", describe_output, 0 },
	{ "fsync", describe_output, 0 },
	{ "fdatasync", describe_output, 0 },
	{ "ftruncate", describe_output, 0 },
	{ "fallocate", describe_output, 0 },
	{ "vmsplice", describe_output, 0 },
	{ "mq_timedsend", describe_message_out, 0 },
	{ "mq_timedsend_time64", describe_message_out, 0 },
	{ "sendfile", describe_output, 0 },
	{ "sendfile64", describe_output, 0 },
	{ "close", describe_either, 0 },
	{ "ioctl", describe_either, 0 },
	{ "io_uring_enter", describe_either, 0 },
	{ "socketcall", describe_socketcall, 1 },
	{ "fcntl", describe_fcntl, 0 },
	{ "fcntl64", describe_fcntl, 0 },
	{ "flock", describe_flock, 0 },
	{ "open", describe_open, 0 },
	{ "openat", describe_open, 1 },
	{ "openat2", describe_open, 1 },
	{ "poll", describe_poll, 2 },
	{ "ppoll", describe_ppoll, 2 },
	{ "ppoll_time64", describe_ppoll, 2 },
	{ "select", describe_select, 4 },
	{ "_newselect", describe_select, 4 },
	{ "pselect6", describe_pselect, 4 },
	{ "pselect6_time64", describe_pselect, 4 },
	{ "epoll_wait", describe_epoll, 3 },
	{ "epoll_pwait", describe_epoll, 3 },
	{ "epoll_pwait2", describe_epoll, 3 },
	{ "wait4", describe_wait, 0 },
	{ "waitpid", describe_wait, 0 },
	{ "waitid", describe_waitid, 1 },
	{ "vfork", describe_vfork, 0 },
	{ "clone", describe_clone, 0 },
	{ "clone3", describe_clone3, 0 },
	{ "nanosleep", describe_sleep, 0 },
	{ "clock_nanosleep", describe_clock_sleep, 2 },
	{ "clock_nanosleep_time64", describe_clock_sleep, 2 },
	{ "pause", describe_signal, 0 },
	{ "sigsuspend", describe_signal, 0 },
	{ "rt_sigsuspend", describe_signal, 0 },
	{ "rt_sigtimedwait", describe_sigtimedwait, 2 },
	{ "rt_sigtimedwait_time64", describe_sigtimedwait, 2 },
	{ "restart_syscall", describe_continued, 0 },
	{ "semop", describe_semaphores, 0 },
	{ "semtimedop", describe_semaphores, 0 },
	{ "semtimedop_time64", describe_semaphores, 0 },
	{ "msgrcv", describe_queue, 0 },
	{ "msgsnd", describe_queue, 0 },
};

/* Ends the text; marks one that was cut. */
static void end_text(struct fathom_text *text)
{
	static const char mark[] = "...";

	fathom_text_end(text);
	if (text->len >= text->cap)
		memcpy(text->buf + text->cap - sizeof mark, mark, sizeof mark);
}

/* Describes the wait with the facts of @w. */
static void describe(struct fathom_waiter *w)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (strcmp(calls[i].name, w->ret->syscall) == 0)
			calls[i].describe(w, calls[i].argument);
	end_text(&w->text);
	if (w->ret->kind && !fathom_task_still_waits(w))
		*w->ret = (struct fathom_wait){ .syscall = w->ret->syscall };
}

bool fathom_wait_describe(const struct fathom_wait_source *from,
			  const struct fathom_thread_copy *thread, struct fathom_wait *ret)
{
	struct fathom_wait_facts *own = NULL;
	struct fathom_waiter w = {
		.from = from, .thread = thread, .facts = from->facts, .ret = ret
	};

	*ret = (struct fathom_wait){ .syscall = NULL };
	if (!thread->in_syscall)
		return false;
	ret->syscall = fathom_syscall_name(from->machine, thread->syscall);
	if (!ret->syscall)
		return false;
	if (!w.facts)
		w.facts = own = fathom_wait_facts_create();
	w.word = from->machine == EM_386 ? 4 : 8;
	w.text = text_init(ret->text, sizeof ret->text);
	if (w.facts)
		describe(&w);
	fathom_wait_facts_destroy(own);
	return ret->kind != FATHOM_WAIT_UNKNOWN;
}

/*
 * Functions of the kernel that wait for a page or block to be read or written: of the page cache,
 * of direct I/O, of buffers, of requests, of a journal. The scheduler's own functions,
 * io_schedule() among them, are left out of wchan.
 */
static const char *const disk_functions[] = {
	"folio_wait_bit_common",
	"folio_wait_bit",
	"wait_on_page_bit_common",
	"iomap_dio_rw",
	"__iomap_dio_rw",
	"__blockdev_direct_IO",
	"blkdev_direct_IO",
	"__blkdev_direct_IO_simple",
	"submit_bio_wait",
	"blk_wait_io",
	"__wait_on_buffer",
	"__sync_dirty_buffer",
	"rq_qos_wait",
	"blk_mq_get_tag",
	"jbd2_log_wait_commit",
};

bool fathom_wait_is_disk(int proc, int32_t tid)
{
	struct fathom_task task;
	char name[64];
	const bool is_known =
		fathom_task_open(&task, proc, tid) && fathom_task_wchan(&task, name, sizeof name);

	fathom_task_close(&task);
	for (size_t i = 0; is_known && i < sizeof disk_functions / sizeof *disk_functions; i++)
		if (strcmp(name, disk_functions[i]) == 0)
			return true;
	return false;
}
