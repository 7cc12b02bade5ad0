/* SPDX-License-Identifier: MIT */
/* The alternate signal stacks of threads, each freed when its thread ends. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "fathom/crash.h"
#include "host/base/page.h"
#include "safe/base/error.h"
#include "safe/crash/state.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51 /* what the kernel's signal frame needs on this processor */
#endif

/*
 * Room for handlers of the program: with SA_ONSTACK they run here, and would have had the thread's
 * whole stack. The crash handler needs less, as it makes its report on another stack. Pages that
 * nobody touches cost no memory.
 */
#define ROOM (128 << 10)

/* Bytes of a stack: whole pages. */
static size_t stack_size(void)
{
	const size_t least = getauxval(AT_MINSIGSTKSZ);
	const size_t frame = least ? least : (size_t)MINSIGSTKSZ;

	return (frame + ROOM + fathom_page_size() - 1) & ~(fathom_page_size() - 1);
}

/* Frees the stack that is mapped at @base, if the thread does not run on it. */
static void free_stack(void *base)
{
	const stack_t none = { .ss_flags = SS_DISABLE };
	stack_t now;

	if (sigaltstack(NULL, &now) || now.ss_flags & SS_ONSTACK)
		return;
	if (now.ss_sp == (char *)base + fathom_page_size() && sigaltstack(&none, NULL))
		return;
	(void)munmap(base, fathom_page_size() + stack_size());
}

/* Returns the key whose value is a thread's stack; false if none is left. */
static bool find_key(pthread_key_t *ret)
{
	uint32_t now = atomic_load(&fathom_crash_state.key);
	pthread_key_t key;

	if (!now) {
		if (pthread_key_create(&key, free_stack))
			return false;
		if (atomic_compare_exchange_strong(&fathom_crash_state.key, &now, key + 1))
			now = key + 1;
		else
			(void)pthread_key_delete(key);
	}
	*ret = now - 1;
	return true;
}

fathom_err fathom_crash_thread_stack(struct fathom_errinfo *reterr)
{
	stack_t stack;
	pthread_key_t key;
	char *base;

	if (sigaltstack(NULL, &stack))
		return fathom_fail(reterr, FATHOM_E_OS, NULL, 0, "sigaltstack() is refused");
	if (!(stack.ss_flags & SS_DISABLE))
		return FATHOM_OK;
	if (!find_key(&key))
		return fathom_fail_memory(reterr);
	fathom_crash_thread_stack_free();
	base = mmap(NULL, fathom_page_size() + stack_size(), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return fathom_fail_memory(reterr);
	stack = (stack_t){ .ss_sp = base + fathom_page_size(), .ss_size = stack_size() };
	if (mprotect(base, fathom_page_size(), PROT_NONE) || pthread_setspecific(key, base) ||
	    sigaltstack(&stack, NULL)) {
		(void)pthread_setspecific(key, NULL);
		(void)munmap(base, fathom_page_size() + stack_size());
		return fathom_fail_memory(reterr);
	}
	return FATHOM_OK;
}

void fathom_crash_thread_stack_free(void)
{
	const uint32_t key = atomic_load(&fathom_crash_state.key);
	void *base = key ? pthread_getspecific(key - 1) : NULL;

	if (!base)
		return;
	(void)pthread_setspecific(key - 1, NULL);
	free_stack(base);
}
