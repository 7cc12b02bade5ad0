/* SPDX-License-Identifier: MIT */
/* The layout of records: perf_event_open(2), "Overflow handling", and linux/perf_event.h. */
#include "host/profile/perf_event.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/profile/perf_registers.h"
#include "safe/base/cursor.h"

/*
 * Bytes of what stands at the end of each record but a sample (sample_id_all): the thread, the time
 * and the event's id. NS_END: bytes from the time on.
 */
#define TRAILER 24
#define NS_END  16

/* Bytes in the ring that the reader is woken for. */
#define LATEST ((size_t)1 << 18)

/* The longest record: its size has 16 bits. */
#define MAX_RECORD ((size_t)1 << 16)

/* Makes @a an event of switches: the other event of the ring has all records but samples. */
static void sample_switches(struct perf_event_attr *a)
{
	a->type = PERF_TYPE_SOFTWARE;
	a->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	a->freq = 0;
	a->sample_period = 1;
	a->inherit_stat = 0;
	a->mmap = a->mmap2 = a->build_id = 0;
	a->comm = a->comm_exec = 0;
	a->task = 0;
	a->context_switch = 0;
}

/* Makes @a an event of wakings: all of a processor, as who wakes may be any thread. */
static void record_wakings(struct perf_event_attr *a, const struct fathom_perf_tracepoint *t)
{
	sample_switches(a);
	a->type = PERF_TYPE_TRACEPOINT;
	a->config = t->id;
	a->sample_type =
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
	a->sample_regs_user = 0;
	a->sample_stack_user = 0;
	a->exclude_kernel = 0;
	a->exclude_callchain_user = 0;
	a->exclude_hv = 0;
	a->inherit = 0;
	a->enable_on_exec = 0;
}

/* Makes @a an event of all threads. A clock of tasks would count while there are none. */
static void sample_all(struct perf_event_attr *a, bool is_cycles)
{
	a->config = is_cycles ? a->config : PERF_COUNT_SW_CPU_CLOCK;
	/* Hardware of ARM refuses it; idle samples have no thread. */
	a->exclude_idle = !is_cycles;
	a->inherit = 0;
	a->inherit_stat = 0;
}

static struct perf_event_attr make_attr(const struct fathom_perf_setup *s)
{
	struct perf_event_attr a = { .size = sizeof a };

	a.type = s->is_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
	a.config = s->is_cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_TASK_CLOCK;
	a.freq = 1;
	a.sample_freq = s->frequency;
	/* All events of a ring have one layout: the id comes first, and tells them apart. */
	a.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	a.sample_type |= s->has_counts ? PERF_SAMPLE_READ : 0;
	a.sample_type |= s->is_kernel_hidden ? 0 : PERF_SAMPLE_CALLCHAIN;
	a.sample_regs_user = fathom_perf_registers();
	a.sample_stack_user = s->stack_size;
	a.exclude_kernel = s->is_kernel_hidden;
	a.exclude_callchain_user = 1;
	a.exclude_hv = 1;
	a.disabled = 1;
	a.enable_on_exec = s->is_on_exec;
	a.inherit = 1;
	/* Else counts of threads that take turns are mixed up, and none is told at the end. */
	a.inherit_stat = 1;
	a.mmap = 1;
	a.mmap2 = 1;
	a.build_id = s->has_build_ids;
	a.comm = 1;
	a.comm_exec = 1;
	a.task = 1;
	a.context_switch = s->has_switches;
	a.sample_id_all = 1;
	a.use_clockid = 1;
	a.clockid = CLOCK_MONOTONIC;
	a.watermark = 1;
	if (s->is_all)
		sample_all(&a, s->is_cycles);
	if (s->is_of_switches)
		sample_switches(&a);
	if (s->is_of_wakings)
		record_wakings(&a, s->wakings);
	return a;
}

static fathom_err fail_open(struct fathom_errinfo *reterr)
{
	const int number = errno;
	fathom_err err = FATHOM_E_OS;

	if (number == ESRCH)
		err = FATHOM_E_NOT_FOUND;
	else if (number == EMFILE || number == ENFILE)
		err = FATHOM_E_LIMIT;
	else if (number == ENOENT || number == EOPNOTSUPP || number == ENODEV || number == ENOSYS ||
		 number == EINVAL)
		err = FATHOM_E_UNSUPPORTED;
	(void)fathom_fail(reterr, err, "", 0,
			  err == FATHOM_E_LIMIT
				  ? "too many files are open for its events (ulimit -n)"
				  : "perf events (perf_event_open)");
	if (reterr)
		reterr->os_errno = number;
	return err;
}

/* Maps a ring for @fd, of @size bytes. */
static bool map_ring(struct fathom_perf_ring *r, int fd, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *base = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return false;
	r->straight = malloc(MAX_RECORD);
	if (!r->straight) {
		munmap(base, page + size);
		errno = ENOMEM;
		return false;
	}
	r->base = base;
	r->size = size;
	r->fd = fd;
	return true;
}

fathom_err fathom_perf_open(const struct fathom_perf_setup *setup, struct fathom_perf_ring *ring,
			    size_t ring_size, int32_t tid, struct fathom_perf_event *ret,
			    struct fathom_errinfo *reterr)
{
	struct perf_event_attr a = make_attr(setup);
	bool is_open;
	int fd;

	/* The reader is woken where a quarter of the ring is full, or sooner. */
	a.wakeup_watermark = (uint32_t)(ring_size / 4 < LATEST ? ring_size / 4 : LATEST);
	fd = (int)syscall(SYS_perf_event_open, &a, tid, ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fail_open(reterr);
	*ret = (struct fathom_perf_event){ .fd = fd, .tid = tid };
	/* Of some C libraries ioctl() takes an int, which has no room for the number. */
	is_open = syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &ret->id) == 0;
	if (is_open && ring->base)
		is_open = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) == 0;
	else if (is_open)
		is_open = map_ring(ring, fd, ring_size);
	if (!is_open) {
		const int number = errno;

		close(fd);
		(void)fathom_fail(reterr, FATHOM_E_LIMIT, "", 0,
				  "no memory for samples is permitted to this user (ulimit -l, "
				  "kernel.perf_event_mlock_kb)");
		if (reterr)
			reterr->os_errno = number;
		return FATHOM_E_LIMIT;
	}
	return FATHOM_OK;
}

void fathom_perf_ring_init(struct fathom_perf_ring *r, int cpu)
{
	*r = (struct fathom_perf_ring){ .cpu = cpu, .fd = -1 };
}

void fathom_perf_ring_deinit(struct fathom_perf_ring *r)
{
	if (r->base)
		munmap(r->base, (size_t)sysconf(_SC_PAGESIZE) + r->size);
	free(r->straight);
	fathom_perf_ring_init(r, r->cpu);
}

void fathom_perf_ring_look(struct fathom_perf_ring *r)
{
	const struct perf_event_mmap_page *page = (const void *)r->base;

	if (page)
		r->head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* Copies @n bytes of the ring at @at to @to. */
static void copy_out(const struct fathom_perf_ring *r, uint64_t at, void *to, size_t n)
{
	const uint8_t *data = r->base + sysconf(_SC_PAGESIZE);
	const size_t from = (size_t)(at & (r->size - 1));
	const size_t first = n < r->size - from ? n : r->size - from;

	memcpy(to, data + from, first);
	memcpy((uint8_t *)to + first, data, n - first);
}

/* Returns the size of the record at the tail; 0: there is none. */
static size_t size_at_tail(const struct fathom_perf_ring *r)
{
	struct perf_event_header h;

	if (r->head - r->tail < sizeof h)
		return 0;
	copy_out(r, r->tail, &h, sizeof h);
	/* The program cannot write here; but a kernel that does not keep its word must not harm. */
	return h.size >= sizeof h && h.size <= r->head - r->tail ? h.size
								 : (size_t)(r->head - r->tail);
}

bool fathom_perf_ring_peek(struct fathom_perf_ring *r, const struct fathom_perf_setup *setup,
			   struct fathom_perf_record *ret)
{
	const size_t size = size_at_tail(r);
	const size_t from = r->size ? (size_t)(r->tail & (r->size - 1)) : 0;
	const uint8_t *bytes;

	if (!size)
		return false;
	bytes = r->base + sysconf(_SC_PAGESIZE) + from;
	if (size > r->size - from && size <= MAX_RECORD) {
		copy_out(r, r->tail, r->straight, size);
		bytes = r->straight;
	}
	if (size > MAX_RECORD)
		*ret = (struct fathom_perf_record){ 0 };
	else
		fathom_perf_record_parse(bytes, size, setup, ret);
	return true;
}

void fathom_perf_ring_pass(struct fathom_perf_ring *r)
{
	struct perf_event_mmap_page *page = (void *)r->base;

	r->tail += size_at_tail(r);
	__atomic_store_n(&page->data_tail, r->tail, __ATOMIC_RELEASE);
}

/* Parses what follows the id of a record of a waking. */
static void parse_waking(struct fathom_cursor *c, const struct fathom_perf_tracepoint *t,
			 struct fathom_perf_record *ret)
{
	/* TRACE_FLAG_HARDIRQ, SOFTIRQ, NMI of linux/trace_events.h. */
	static const uint8_t interrupt = 0x08 | 0x10 | 0x40;
	struct fathom_cursor data;
	struct fathom_cursor flags;

	ret->type = FATHOM_PERF_WAKING;
	ret->pid = (int32_t)cur_u32(c);
	ret->tid = (int32_t)cur_u32(c);
	ret->ns = cur_u64(c);
	data = cur_sub(c, cur_u32(c));
	flags = data;
	cur_skip(&flags, t->flags_at);
	cur_skip(&data, t->tid_at);
	/* The number 0 is that of no thread: the processor was idle. */
	ret->waking.is_interrupt = (cur_u8(&flags) & interrupt) || !ret->tid;
	ret->waking.tid = (int32_t)cur_u32(&data);
	if (!cur_ok(&flags) || !cur_ok(&data))
		cur_fail(c);
}

static void parse_sample(struct fathom_cursor *c, const struct fathom_perf_setup *setup,
			 struct fathom_perf_record *ret)
{
	uint64_t size;
	uint64_t used;

	ret->sample.id = cur_u64(c);
	if (setup->waking_ids &&
	    fathom_key_map_find(setup->waking_ids, ret->sample.id) != FATHOM_KEY_NEW) {
		parse_waking(c, setup->wakings, ret);
		return;
	}
	ret->pid = (int32_t)cur_u32(c);
	ret->tid = (int32_t)cur_u32(c);
	ret->ns = cur_u64(c);
	ret->sample.period = cur_u64(c);
	if (setup->has_counts)
		ret->sample.count = cur_u64(c);
	if (!setup->is_kernel_hidden) {
		ret->sample.n_kernel = cur_u64(c);
		ret->sample.kernel = ret->sample.n_kernel <= cur_left(c) / 8
					     ? cur_take(c, ret->sample.n_kernel * 8)
					     : cur_take(c, UINT64_MAX);
	}
	ret->sample.abi = cur_u64(c);
	if (ret->sample.abi)
		ret->sample.registers =
			cur_take(c, 8 * (uint64_t)__builtin_popcountll(fathom_perf_registers()));
	size = cur_u64(c);
	if (!size)
		return;
	ret->sample.stack.data = cur_take(c, size);
	used = cur_u64(c);
	ret->sample.stack.size = used <= size ? (size_t)used : 0;
}

/* Reads a text that ends with a NUL and stands before the trailer; NULL: there is none. */
static const char *take_name(struct fathom_cursor *c, size_t trailer)
{
	const uint64_t left = cur_left(c);
	const char *name;

	if (left < trailer)
		cur_fail(c);
	name = (const char *)cur_take(c, left - trailer);
	if (!name || !memchr(name, 0, (size_t)(left - trailer)))
		cur_fail(c);
	return cur_ok(c) ? name : NULL;
}

static void parse_task(struct fathom_cursor *c, struct fathom_perf_record *ret)
{
	ret->pid = (int32_t)cur_u32(c);
	ret->task.parent_pid = (int32_t)cur_u32(c);
	ret->tid = (int32_t)cur_u32(c);
	ret->task.parent_tid = (int32_t)cur_u32(c);
}

static void parse_map(struct fathom_cursor *c, size_t trailer, struct fathom_perf_record *ret)
{
	const uint8_t *id = NULL;

	ret->pid = (int32_t)cur_u32(c);
	ret->tid = (int32_t)cur_u32(c);
	ret->map.start = cur_u64(c);
	ret->map.size = cur_u64(c);
	ret->map.offset = cur_u64(c);
	/* Device and inode, or in their place a build-id: its size, 3 bytes of nothing, it. */
	if (ret->type == PERF_RECORD_MMAP2) {
		id = cur_take(c, 24);
		cur_skip(c, 8);
	}
	ret->map.path = take_name(c, trailer);
	if (id && ret->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && id[0] <= 20)
		ret->map.build_id = (struct fathom_bytes){ id + 4, id[0] };
}

void fathom_perf_body_parse(struct fathom_cursor *c, size_t trailer, struct fathom_perf_record *ret)
{
	switch (ret->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		parse_map(c, trailer, ret);
		break;
	case PERF_RECORD_COMM:
		ret->pid = (int32_t)cur_u32(c);
		ret->tid = (int32_t)cur_u32(c);
		ret->comm.name = take_name(c, trailer);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		parse_task(c, ret);
		break;
	case PERF_RECORD_LOST:
		cur_skip(c, 8);
		ret->lost = cur_u64(c);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		ret->lost = cur_u64(c);
		break;
	default:
		break;
	}
}

static void parse_read(struct fathom_cursor *c, struct fathom_perf_record *ret)
{
	ret->pid = (int32_t)cur_u32(c);
	ret->tid = (int32_t)cur_u32(c);
	ret->count = cur_u64(c);
}

static void parse_switch(struct fathom_cursor *c, struct fathom_perf_record *ret)
{
	ret->type = PERF_RECORD_SWITCH;
	ret->pid = (int32_t)cur_u32(c);
	ret->tid = (int32_t)cur_u32(c);
}

void fathom_perf_record_parse(const uint8_t *bytes, size_t size,
			      const struct fathom_perf_setup *setup, struct fathom_perf_record *ret)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ bytes, size }, false);
	struct fathom_cursor trailer =
		cur_init((struct fathom_bytes){ bytes + size - (size < NS_END ? size : NS_END),
						size < NS_END ? size : NS_END },
			 false);

	*ret = (struct fathom_perf_record){ .type = cur_u32(&c) };
	ret->misc = cur_u16(&c);
	cur_skip(&c, 2);
	if (ret->type != PERF_RECORD_SAMPLE)
		ret->ns = size >= 8 + TRAILER ? cur_u64(&trailer) : 0;
	switch (ret->type) {
	case PERF_RECORD_SAMPLE:
		parse_sample(&c, setup, ret);
		break;
	case PERF_RECORD_READ:
		parse_read(&c, ret);
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		/* The other thread of the switch comes first. */
		cur_skip(&c, 8);
		parse_switch(&c, ret);
		break;
	case PERF_RECORD_SWITCH:
		parse_switch(&c, ret);
		break;
	default:
		fathom_perf_body_parse(&c, TRAILER, ret);
		break;
	}
	if (!cur_ok(&c))
		*ret = (struct fathom_perf_record){ 0 };
}

bool fathom_perf_read(const struct fathom_perf_event *e, uint64_t *ret)
{
	uint64_t value;

	if (read(e->fd, &value, sizeof value) != sizeof value)
		return false;
	*ret = value;
	return true;
}

void fathom_perf_enable(const struct fathom_perf_event *e)
{
	(void)ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0);
}

void fathom_perf_disable(const struct fathom_perf_event *e)
{
	(void)ioctl(e->fd, PERF_EVENT_IOC_DISABLE, 0);
}
