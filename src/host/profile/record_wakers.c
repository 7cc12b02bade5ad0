/* SPDX-License-Identifier: MIT */
#include "host/profile/record_wakers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/proc_stat_read.h"
#include "host/file/kernel_text.h"
#include "host/profile/recording.h"

/* The inode of the first namespace of PIDs, whose numbers are the kernel's (linux/proc_ns.h). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* A record costs so much, in ns: the thread that wakes, and the recorder. */
#define RECORD_NS 600

/*
 * Records take one part of so many of the time at most, and ns besides; more begin when so many ns
 * are left for them: each time, all events are switched on.
 */
#define SHARE   200
#define FREE    10000000
#define AT_ONCE 1000000

/* Names of threads are good for so long, in ns: another one may have the number by then. */
#define GOOD_NS 100000000

/* Reads where @field is in records of the tracepoint, of its @format (ftrace.rst, "format"). */
static bool find_field(const char *format, const char *field, uint32_t *ret)
{
	const char *at = strstr(format, field);

	at = at ? strstr(at, "offset:") : NULL;
	return at && sscanf(at, "offset:%u;", ret) == 1;
}

bool fathom_perf_find_wakings(struct fathom_perf_tracepoint *ret)
{
	static const char *const folders[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	struct stat space;

	if (stat("/proc/self/ns/pid", &space) || space.st_ino != FIRST_PID_NAMESPACE)
		return false;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char path[128];
		char text[4096];

		(void)snprintf(path, sizeof path, "%s/events/sched/sched_waking/id", folders[i]);
		text[fathom_text_read_short(path, text, sizeof text - 1)] = '\0';
		ret->id = strtoull(text, NULL, 10);
		(void)snprintf(path, sizeof path, "%s/events/sched/sched_waking/format",
			       folders[i]);
		text[fathom_text_read_short(path, text, sizeof text - 1)] = '\0';
		if (ret->id && find_field(text, " common_flags;", &ret->flags_at) &&
		    find_field(text, " pid;", &ret->tid_at))
			return true;
	}
	return false;
}

fathom_err fathom_record_wakers_open(struct fathom_record_wakers *w, struct fathom_perf_ring *rings,
				     size_t n, size_t ring_size, struct fathom_perf_setup *setup)
{
	struct fathom_perf_setup of_wakings = *setup;
	fathom_err err = FATHOM_OK;

	if (!fathom_perf_find_wakings(&w->tracepoint))
		return FATHOM_OK;
	of_wakings.is_of_wakings = true;
	of_wakings.wakings = &w->tracepoint;
	for (size_t i = 0; i < n && !err; i++) {
		struct fathom_perf_event event;
		uint32_t *number;

		if (rings[i].fd < 0)
			continue;
		err = fathom_perf_open(&of_wakings, &rings[i], ring_size, -1, &event, NULL);
		if (err)
			break;
		number = fathom_key_map_at(&w->ids, event.id);
		if (!number || !fathom_array_push(&w->events, event)) {
			close(event.fd);
			return FATHOM_E_MEMORY;
		}
		*number = 1;
	}
	/* Without some processors, who wakes is not known: none is better than a part. */
	if (err) {
		fathom_record_wakers_deinit(w);
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	}
	setup->wakings = &w->tracepoint;
	setup->waking_ids = &w->ids;
	return FATHOM_OK;
}

void fathom_record_wakers_go_on(struct fathom_recording *r, struct fathom_record_wakers *w,
				uint64_t ns, bool is_over)
{
	const uint64_t most = fathom_recording_since(r, ns) / SHARE + FREE;
	const bool is_on = !is_over && w->spent + (w->is_on ? 0 : AT_ONCE) < most;

	for (size_t i = 0; is_on != w->is_on && i < w->events.n; i++) {
		if (is_on)
			fathom_perf_enable(&w->events.items[i]);
		else
			fathom_perf_disable(&w->events.items[i]);
	}
	w->is_on = is_on;
}

/* Reads what @other, of which the numbers are known, is now; false if it has ended. */
static bool look(struct fathom_record_other *other, struct fathom_profile_thread *ret)
{
	struct fathom_proc_stat stat;
	const uint64_t before = other->start_ticks;
	const bool is_known = other->looked != 0;
	bool is_same;

	other->looked = (uint64_t)fathom_now_ns();
	if (!fathom_proc_stat_of(other->tid, &stat))
		return is_known;
	is_same = is_known && stat.start_ticks == before && !strncmp(stat.name, other->name, 15);
	(void)snprintf(other->name, sizeof other->name, "%.15s", stat.name);
	other->start_ticks = stat.start_ticks;
	ret->name = other->name;
	ret->parent = stat.parent;
	if (!is_same)
		other->number = UINT32_MAX;
	return true;
}

/* Finds the number of a thread that is not recorded; FATHOM_TABLE_NONE: it is not known. */
static fathom_err find_other(struct fathom_recording *r, struct fathom_record_wakers *w,
			     const struct fathom_perf_record *record, uint32_t *ret)
{
	struct fathom_profile_thread t = { .pid = record->pid,
					   .tid = record->tid,
					   .ns = fathom_recording_since(r, record->ns) };
	uint32_t *number = fathom_key_map_at(&w->by_tid, (uint32_t)record->tid);
	const uint64_t now = (uint64_t)fathom_now_ns();
	struct fathom_record_other *other;

	*ret = FATHOM_TABLE_NONE;
	if (!number)
		return FATHOM_E_MEMORY;
	if (*number == FATHOM_KEY_NEW) {
		const struct fathom_record_other made = { .tid = record->tid,
							  .number = UINT32_MAX };

		if (!fathom_array_push(&w->others, made))
			return FATHOM_E_MEMORY;
		*number = (uint32_t)w->others.n - 1;
	}
	other = &w->others.items[*number];
	if (other->pid != record->pid)
		other->looked = 0;
	other->pid = record->pid;
	if (now - other->looked > GOOD_NS) {
		if (!look(other, &t))
			other->looked = 0;
		w->spent += (uint64_t)fathom_now_ns() - now;
	}
	if (other->looked && other->number == UINT32_MAX && t.name)
		other->number = fathom_profile_write_thread(&r->writer, &t, UINT32_MAX);
	*ret = other->looked ? other->number : FATHOM_TABLE_NONE;
	return FATHOM_OK;
}

fathom_err fathom_record_wakers_take(struct fathom_recording *r, struct fathom_record_wakers *w,
				     const struct fathom_perf_record *record)
{
	struct fathom_record_thread *thread =
		fathom_record_thread_known(&r->threads, record->waking.tid);
	struct fathom_record_thread *waker;
	uint32_t number;

	w->spent += RECORD_NS;
	/* One that is woken before it has left its processor does not wait. */
	if (!thread || !fathom_record_wait_is_open(thread, record->ns))
		return FATHOM_OK;
	if (record->waking.is_interrupt) {
		fathom_record_wait_woken(thread, record->ns, FATHOM_PROFILE_INTERRUPT);
		return FATHOM_OK;
	}
	waker = fathom_record_thread_find(&r->threads, record->pid, record->tid);
	if (waker && !waker->ended)
		number = fathom_recording_number(r, waker, record->ns);
	else
		FATHOM_TRY(find_other(r, w, record, &number));
	fathom_record_wait_woken(thread, record->ns, number == FATHOM_TABLE_NONE ? 0 : number + 1);
	return FATHOM_OK;
}

void fathom_record_wakers_deinit(struct fathom_record_wakers *w)
{
	for (size_t i = 0; i < w->events.n; i++)
		close(w->events.items[i].fd);
	fathom_array_free(&w->events);
	fathom_array_free(&w->others);
	fathom_key_map_deinit(&w->ids);
	fathom_key_map_deinit(&w->by_tid);
	*w = (struct fathom_record_wakers){ .is_on = false };
}
