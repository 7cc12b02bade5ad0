/* SPDX-License-Identifier: MIT */
/*
 * Waits of threads: how long they had no processor, and where they waited and for what. How long is
 * said by the method of sampling; the stack of a wait is read from outside while it goes on, once,
 * without a stop.
 */
#ifndef FATHOM_PROFILE_RECORD_WAITS_H
#define FATHOM_PROFILE_RECORD_WAITS_H

#include "host/profile/record_threads.h"

struct fathom_recording;

/* A wait whose stack is to be read. */
struct fathom_record_sleeper {
	int32_t pid;
	int32_t tid;
	uint64_t began;
};

struct fathom_record_waits {
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_sleeper);
	} queue;
	uint64_t spent;   /* ns that stacks have taken, in all */
	uint64_t sampled; /* of them, those of samples */
	uint64_t told;    /* when waits that go on were written */
};

/* A thread, as it was seen from outside. */
struct fathom_record_sight {
	struct fathom_record_stack stack;
	uint32_t reason; /* its innermost frame, a location; FATHOM_TABLE_NONE: it does not wait */
	uint32_t bare;   /* the node of the stack without it */
	bool has_stack;
	uint64_t ns;   /* when it was copied; monotonic */
	char name[16]; /* of the thread; "" if unknown */
};

/* How a thread is looked at. */
struct fathom_record_look {
	bool may_stop;   /* for a moment, else as it sleeps */
	bool is_disk;    /* it is known to wait for a disk */
	bool is_watched; /* as in struct fathom_record_copies */
};

/*
 * Looks at thread @tid of @space. The innermost frame of one that sleeps is what it waits for.
 * FATHOM_E_MEMORY; what else fails leaves it without a stack.
 */
fathom_err fathom_record_look(struct fathom_record_space *space, int32_t tid,
			      struct fathom_record_look look, struct fathom_stack_table *table,
			      struct fathom_record_sight *ret);

/* Returns whether the kernel says that @thread sleeps, or is stopped. */
bool fathom_record_is_asleep(const struct fathom_record_thread *thread);

/* Finds the location whose name @text says what a thread waits for. FATHOM_E_MEMORY. */
fathom_err fathom_record_reason(struct fathom_stack_table *table, const char *text, uint32_t *ret);

/*
 * Returns whether there is time to sample switches at @ns; where that was not so before, for more
 * than a few.
 */
bool fathom_record_waits_may_sample(const struct fathom_recording *r, uint64_t ns,
				    bool was_sampling);

/* Counts @ns that samples of switches have taken. */
void fathom_record_waits_have_sampled(struct fathom_recording *r, uint64_t ns);

/*
 * Begins a wait of @thread at monotonic @ns, where the thread's leave says if it was sampled just
 * before; FATHOM_E_MEMORY.
 */
fathom_err fathom_record_wait_begin(struct fathom_recording *r, struct fathom_record_thread *thread,
				    uint64_t ns, enum fathom_profile_part part);

/* Returns whether @thread has waited for something at monotonic @ns, and nobody has woken it. */
bool fathom_record_wait_is_open(const struct fathom_record_thread *thread, uint64_t ns);

/*
 * Notes that @thread, whose wait is open, was woken at monotonic @ns: from then on it waits for a
 * processor. @waker: as in samples.
 */
void fathom_record_wait_woken(struct fathom_record_thread *thread, uint64_t ns, uint32_t waker);

/* Returns how often waits that go on are written, in ns: oftener where somebody looks on. */
uint64_t fathom_record_waits_tell_ns(const struct fathom_recording *r);

/* Ends the wait of @thread, if there is one. */
fathom_err fathom_record_wait_end(struct fathom_recording *r, struct fathom_record_thread *thread,
				  uint64_t ns);

/* Ends the wait of @thread, and writes all that it has waited: it has ended. */
fathom_err fathom_record_wait_last(struct fathom_recording *r, struct fathom_record_thread *thread,
				   uint64_t ns);

/* Writes that @thread has waited so long until @ns; @stack: NULL: nothing was seen of it. */
fathom_err fathom_record_wait_put(struct fathom_recording *r, struct fathom_record_thread *thread,
				  uint64_t ns, enum fathom_profile_part part, uint64_t weight,
				  const struct fathom_record_stack *stack);

/* Returns in how many ms, at most @most, a wait takes long enough to be read. */
int fathom_record_waits_due_ms(const struct fathom_recording *r, int most);

/*
 * Reads the stacks of waits that have taken a while at @ns, until when all is known of all threads,
 * and writes those that take long. FATHOM_E_MEMORY.
 */
fathom_err fathom_record_waits_keep_up(struct fathom_recording *r, uint64_t ns);

/* Ends the waits of all threads. */
fathom_err fathom_record_waits_finish(struct fathom_recording *r, uint64_t ns);

void fathom_record_waits_deinit(struct fathom_record_waits *w);

#endif
