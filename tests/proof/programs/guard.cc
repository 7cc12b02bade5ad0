/* SPDX-License-Identifier: MIT */
/*
 * A function of C++ that twig calls: guard(FUNCTION, VALUE) calls the function, as try() does, with values in registers that
 * belong to callers. Returns what was thrown, or 0 if one of the values is another one after that.
 */
typedef long code_fn(long *frame, long a);
extern "C" code_fn *twig_entry(unsigned long number, unsigned long n_arguments);

static inline long hidden(long value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

extern "C" long twig_guard(long *arguments)
{
	code_fn *const code = twig_entry((unsigned long)arguments[0], 1);
	const long a = hidden(11), b = hidden(22), c = hidden(33), d = hidden(44), e = hidden(55);
	long thrown = 0;

	try {
		code(arguments + 1, 0);
	} catch (long value) {
		thrown = value;
	}
	return hidden(a) == 11 && hidden(b) == 22 && hidden(c) == 33 && hidden(d) == 44 && hidden(e) == 55 ? thrown : 0;
}
