/* SPDX-License-Identifier: MIT */
/*
 * The stacks by which stopped threads make system calls, walked as fathom stack does it. What is
 * known of a process (its map, its modules, the rows and names of its code) is kept from call to
 * call, until a call of its own changes where code is.
 */
#ifndef FATHOM_TRACE_SYSCALL_STACKS_H
#define FATHOM_TRACE_SYSCALL_STACKS_H

#include <sys/types.h>

#include "fathom/trace.h"
#include "host/syscalls/syscall_format.h"
#include "host/trace/syscall_set.h"

struct fathom_syscall_stacks;
struct fathom_traced;

/* Prepares to read stacks. @names_only: no lines, no inlined calls. NULL without memory. */
struct fathom_syscall_stacks *fathom_syscall_stacks_create(struct fathom *session, bool names_only);
/* Frees @s and the names of all frames, which events and posts point to. @s may be NULL. */
void fathom_syscall_stacks_destroy(struct fathom_syscall_stacks *s);

/*
 * Reads the stack of @tid, a stopped thread of @p. The result is from malloc(); its frames live as
 * long as @s. NULL if it cannot be read.
 */
struct fathom_trace_stack *fathom_syscall_stacks_read(struct fathom_syscall_stacks *s,
						      struct fathom_traced *p, pid_t tid);

/* Returns whether the caller of @call is not there any more when it has ended: exit, exec. */
bool fathom_syscall_stacks_is_last(const struct fathom_syscall_stacks *s,
				   const struct fathom_syscall_call *call);

/* Returns whether @call of @p may change where code is. */
bool fathom_syscall_stacks_moves_code(const struct fathom_syscall_stacks *s,
				      const struct fathom_traced *p,
				      const struct fathom_syscall_call *call);
/* Adds to @set the calls that may do so. */
void fathom_syscall_stacks_need(const struct fathom_syscall_stacks *s,
				struct fathom_syscall_set *set);
/* Notes that such a call of @p has ended. */
void fathom_syscall_stacks_renew(struct fathom_traced *p);
/* Forgets what is known of @p, which ends or has become another program. */
void fathom_syscall_stacks_forget(struct fathom_traced *p);

#endif
