/* SPDX-License-Identifier: MIT */
/* The program's own record of its calls: functions, and lines of their calls; inlined ones, too. */
struct call {
	const char *function;
	int line;
};

extern struct call calls[64];
extern int depth;

#define CALL(f) (calls[depth++] = (struct call){ __func__, __LINE__ }, (f), depth--)

/* Calls by @f @name, whose fault is in line @at. */
#define CALL_FAULT(f, name, at) \
	(calls[depth++] = (struct call){ __func__, __LINE__ }, calls[depth++] = (struct call){ name, at }, \
	 (f), depth -= 2)

void lib_run(const char *how);
void tell(void);
