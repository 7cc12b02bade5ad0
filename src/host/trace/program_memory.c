/* SPDX-License-Identifier: MIT */
#include "host/trace/program_memory.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/base/page.h"

void fathom_liveness_init(struct fathom_liveness *l)
{
	/* As struct robust_list_head: <linux/futex.h>. */
	l->first.next = &l->first;
	l->futex_offset = (long)(fathom_page_size() + offsetof(struct fathom_trace_head, reader));
	l->pending = NULL;
	pthread_mutex_init(&l->lock, NULL);
	(void)syscall(SYS_set_robust_list, l, sizeof(struct robust_list_head));
}

void fathom_liveness_deinit(struct fathom_liveness *l)
{
	pthread_mutex_destroy(&l->lock);
}

/* Returns the list's entry of @pr: the page before what is shared, which the program cannot see. */
static struct fathom_robust *robust_of(const struct fathom_program *pr)
{
	return (struct fathom_robust *)(void *)((char *)pr->head - fathom_page_size());
}

void fathom_program_hold(struct fathom_program *pr, struct fathom_liveness *l)
{
	struct fathom_robust *robust = robust_of(pr);

	pthread_mutex_lock(&l->lock);
	robust->next = l->first.next;
	l->first.next = robust;
	pr->liveness = l;
	pthread_mutex_unlock(&l->lock);
	atomic_store(&pr->head->reader, (uint32_t)gettid());
}

void fathom_program_unwatch(struct fathom_program *pr)
{
	struct fathom_liveness *l = pr->liveness;

	pr->liveness = NULL;
	if (!l)
		return;
	atomic_store(&pr->head->reader, 0);
	pthread_mutex_lock(&l->lock);
	for (struct fathom_robust *r = &l->first; r->next != &l->first; r = r->next) {
		if (r->next != robust_of(pr))
			continue;
		r->next = r->next->next;
		break;
	}
	pthread_mutex_unlock(&l->lock);
}

void fathom_program_unmap_ours(void *ours, uint64_t size)
{
	munmap((char *)ours - fathom_page_size(), size + fathom_page_size());
}

struct fathom_trace_record *fathom_program_records(const struct fathom_program *pr, uint64_t number)
{
	return (struct fathom_trace_record *)(void *)((char *)pr->head + pr->rings_off) +
	       number * FATHOM_TRACE_RECORDS;
}

struct fathom_program *fathom_program_acquire(struct fathom_program *program)
{
	__atomic_fetch_add(&program->references, 1, __ATOMIC_RELAXED);
	return program;
}

void fathom_program_release(struct fathom_program *program)
{
	if (!program || __atomic_fetch_sub(&program->references, 1, __ATOMIC_ACQ_REL) > 1)
		return;
	if (program->head) {
		fathom_program_unwatch(program);
		fathom_program_unmap_ours(program->head, program->size);
	}
	free(program);
}
