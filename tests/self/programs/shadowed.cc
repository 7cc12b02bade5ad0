// SPDX-License-Identifier: MIT
// The work of the program "shadow", compiled with -finstrument-functions: recursion, callbacks of
// the C library, alloca, aligned stacks, exceptions, pointers
// to functions.
#include "shadow.h"

#include <alloca.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned sink;

SHADOWED static unsigned leaf(unsigned x)
{
	return x * 2654435761u + sink;
}

SHADOWED static unsigned recurse(unsigned n)
{
	return n ? recurse(n - 1) + leaf(n) : leaf(sink);
}

SHADOWED static unsigned with_alloca(unsigned n)
{
	char *p = static_cast<char *>(alloca(n + 1));

	memset(p, static_cast<int>(n), n + 1);
	return recurse(n % 7) + static_cast<unsigned char>(p[n / 2]);
}

SHADOWED static unsigned with_alignment(unsigned n)
{
	alignas(64) volatile unsigned char room[128];

	room[n % sizeof room] = static_cast<unsigned char>(n);
	sink = reinterpret_cast<size_t>(room) % 64 ? 1u << 31 : sink;
	return with_alloca(n % 300) + room[n % sizeof room];
}

SHADOWED static int compare(const void *a, const void *b)
{
	const unsigned x = *static_cast<const unsigned *>(a);
	const unsigned y = *static_cast<const unsigned *>(b);

	sink = leaf(x ^ y);
	return x < y ? -1 : x > y;
}

SHADOWED static unsigned with_qsort(unsigned n)
{
	unsigned values[24];

	for (unsigned i = 0; i < 24; i++)
		values[i] = leaf(n + i);
	qsort(values, 24, sizeof *values, compare);
	return values[n % 24];
}

// An exception without memory of its own for text.
struct Thrown {
	unsigned n;
};

SHADOWED static unsigned thrower(unsigned n)
{
	if (n % 3 == 0)
		throw Thrown{ n };
	return leaf(n);
}

SHADOWED static unsigned between(unsigned n)
{
	return n > 4 ? between(n - 4) + 1 : thrower(n * 3) + leaf(n);
}

SHADOWED static unsigned catcher(unsigned n)
{
	try {
		return between(n % 17);
	} catch (const Thrown &t) {
		return recurse(t.n % 5);
	}
}

// Many arguments: they are pushed, and sp moves between calls.
SHADOWED static unsigned many(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,
			      unsigned h, unsigned i)
{
	return leaf(a + b + c + d + e) + (f ^ g ^ h ^ i);
}

SHADOWED static unsigned with_many(unsigned n)
{
	return many(n, leaf(n), 3, 4, leaf(5), n, leaf(n + 1), 8, n) + many(1, 2, 3, 4, 5, 6, n, n, leaf(n));
}

SHADOWED static unsigned with_large_frame(unsigned n)
{
	volatile unsigned char room[20000];

	room[n % sizeof room] = 1;
	return with_many(n) + room[n % sizeof room];
}

static unsigned (*const volatile functions[])(unsigned) = { leaf,       recurse,   with_alloca, with_alignment,
							    with_qsort, catcher,   with_many,   with_large_frame };

extern "C" SHADOWED void do_work(unsigned round)
{
	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
		sink = functions[i](functions[i] == recurse ? round % 40 : round * 31 + i);
}

extern "C" SHADOWED void do_nested(unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		sink = with_alignment(i) + with_qsort(i) + catcher(i) + recurse(i);
}
