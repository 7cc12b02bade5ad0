// SPDX-License-Identifier: MIT
// Exceptions that leave several frames at once, some of which have something to clean up.

#define NOINLINE __attribute__((noinline))

static volatile int sink;

struct cleaned {
	int n;
	~cleaned()
	{
		sink += n;
	}
};

NOINLINE static int thrower(int n)
{
	if (n < 100)
		throw n;
	return n;
}

NOINLINE static int with_cleanup(int n)
{
	const cleaned c = { n };

	return thrower(n) + c.n;
}

NOINLINE static int aligned(int n)
{
	alignas(64) volatile char room[128] = { (char)n };

	return with_cleanup(n + room[0]) + room[1];
}

NOINLINE static int catcher(int n)
{
	try {
		return aligned(n) + 1;
	} catch (int thrown) {
		return thrown * 2;
	}
}

int main()
{
	return catcher(3) + catcher(4) == 28 ? 0 : 1;
}
