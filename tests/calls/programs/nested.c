/* SPDX-License-Identifier: MIT */
/* A tree of calls that chance makes, with arguments on the stack and frames of any size; says of each call how deep it was. */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT  __attribute__((noinline))
#define PLAIN __attribute__((noinline, patchable_function_entry(0, 0)))

enum { MOST = 1 << 16 };

static struct {
	char name;
	int depth;
} told[MOST];
static int n_told, depth;
static unsigned seed = 1;

/* These have no site, but nothing that has one is called within. */
PLAIN static unsigned chance(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

PLAIN static void enter(char name)
{
	if (n_told < MOST) {
		told[n_told].name = name;
		told[n_told++].depth = depth;
	}
	depth++;
}

PLAIN static void leave(void)
{
	depth--;
}

PLAIN static void use(volatile char *room, size_t n)
{
	room[0] = room[n - 1] = 1;
}

KEPT int a(int left);
KEPT int b(int left, int p, int q, int r, int s, int t, int u);
KEPT int c(int left, long p, long q, long r, long s, long t, long u, long v, long w, long x, long y);
KEPT int d(int left);
KEPT int e(int left);

/* Calls up to three of them, one after the other. */
static inline __attribute__((always_inline)) int some(int left)
{
	int sum = 0;

	for (unsigned n = left ? chance(4) : 0; n; n--) {
		switch (chance(5)) {
		case 0:
			sum += a(left - 1);
			break;
		case 1:
			sum += b(left - 1, 1, 2, 3, 4, 5, 6);
			break;
		case 2:
			sum += c(left - 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
			break;
		case 3:
			sum += d(left - 1);
			break;
		default:
			sum += e(left - 1);
		}
	}
	return sum;
}

#define BODY(name, ...)                     \
	{                                   \
		int sum;                    \
		enter(name);                \
		__VA_ARGS__ sum = some(left); \
		leave();                    \
		return sum + 1;             \
	}

KEPT int a(int left) BODY('a', )
KEPT int b(int left, int p, int q, int r, int s, int t, int u) BODY('b', left += p + q + r + s + t + u - 21;)
KEPT int c(int left, long p, long q, long r, long s, long t, long u, long v, long w, long x, long y)
	BODY('c', left += (int)(p + q + r + s + t + u + v + w + x + y - 55);)
/* Its frame grows each time before it calls. */
KEPT int d(int left) BODY('d', for (int i = 0; i < 3; i++) {
	const size_t n = 16 + 64 * chance(8);
	use(alloca(n), n);
	some(left);
})
KEPT int e(int left) BODY('e', char room[600]; use(room, sizeof room);)

int main(void)
{
	depth = 1;
	while (n_told < 20000)
		some(6);
	printf("main 0\n");
	for (int i = 0; i < n_told; i++)
		printf("%c %d\n", told[i].name, told[i].depth);
	return 0;
}
