/* SPDX-License-Identifier: MIT */
/*
 * What functions of twig are copied from. Each stencil does one thing and jumps to CONTINUE: gcc
 * makes jumps of last calls, so the stack is the same at each beginning. Names in capitals are
 * holes that twig.cc fills; large objects have 64 bits. frame: this call's slots; a: the newest
 * value.
 */
extern long CONTINUE(long *, long), TARGET(long *, long), CALLEE(long *, long);
extern char SLOT[1], VALUE[1 << 17], HOST[1 << 17];
#define AT_SLOT ((long *)((char *)frame + (unsigned long)SLOT))
#define LEFT    (*AT_SLOT)

/* gcc must not know what it calls: a direct call reaches 2 GiB. */
static inline long call_host(long *arguments)
{
	char *host = HOST;
	__asm__("" : "+r"(host));
	return ((long (*)(long *))host)(arguments);
}

#define STENCIL(name, next, ...)       \
	long name(long *frame, long a) \
	{                              \
		FRAME;                 \
		__VA_ARGS__;           \
		return next(frame, a); \
	}
/* HOST throws. That it is likely makes gcc put the jump to CONTINUE last, where none is needed. */
#define STOP_IF(condition)                    \
	if (__builtin_expect(condition, 1)) { \
		call_host(frame);             \
		__builtin_unreachable();      \
	}
#define VALUE_OF(frame, a)       ((void)(frame), (a))
#define WRAPPED(left, op, right) ((long)((unsigned long)(left)op(unsigned long)(right)))
#define DIVIDED(op)              a == -1 ? WRAPPED(0, -, LEFT op 1) : LEFT op a
#ifdef SHIM
/* Makes the frame that all stencils of a function share. */
STENCIL(shim, VALUE_OF, a = CALLEE(frame, a))
#else
STENCIL(enter, CONTINUE, STOP_IF((char *)frame > VALUE))
STENCIL(number, CONTINUE, a = (long)VALUE)
STENCIL(load, CONTINUE, a = LEFT)
STENCIL(store, CONTINUE, LEFT = a)
STENCIL(add, CONTINUE, a = WRAPPED(LEFT, +, a))
STENCIL(subtract, CONTINUE, a = WRAPPED(LEFT, -, a))
STENCIL(multiply, CONTINUE, a = WRAPPED(LEFT, *, a))
STENCIL(divide, CONTINUE, STOP_IF(!a) a = DIVIDED(/))
STENCIL(remainder, CONTINUE, STOP_IF(!a) a = DIVIDED(%))
STENCIL(equal, CONTINUE, a = LEFT == a)
STENCIL(unequal, CONTINUE, a = LEFT != a)
STENCIL(less, CONTINUE, a = LEFT < a)
STENCIL(less_equal, CONTINUE, a = LEFT <= a)
STENCIL(greater, CONTINUE, a = LEFT > a)
STENCIL(greater_equal, CONTINUE, a = LEFT >= a)
STENCIL(call, CONTINUE, a = CALLEE(AT_SLOT, a))
STENCIL(host, CONTINUE, a = call_host(AT_SLOT))
STENCIL(jump, TARGET, (void)0)
STENCIL(unless, CONTINUE, if (__builtin_expect(!a, 1)) return TARGET(frame, a))
STENCIL(leave, VALUE_OF, (void)0)
#endif
