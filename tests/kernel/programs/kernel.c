/* SPDX-License-Identifier: MIT */
/* Something with the shape of a kernel: entry code, functions that are inlined, data, init code. */
#define NOINLINE __attribute__((noinline, noclone))
#define INIT     __attribute__((section(".init.text"), noinline, used))

int jiffies = 1;
int zeroed[64];
static const char banner[] __attribute__((used)) = "a kernel";
__attribute__((section(".data..percpu"), used)) int this_cpu = 3;

static inline __attribute__((always_inline)) int twice(int x)
{
	volatile int y = x;

	return y + y;
}

static inline __attribute__((always_inline)) int four_times(int x)
{
	return twice(twice(x));
}

static NOINLINE int helper(int x)
{
	return four_times(x) + jiffies;
}

NOINLINE int do_sys_open(int x)
{
	zeroed[x & 63] = helper(x);
	return helper(x + 1) + twice(x);
}

NOINLINE int vfs_read(int x)
{
	return do_sys_open(x) * banner[x & 7];
}

/* States an address, which KASLR moves. */
NOINLINE int *where(void)
{
	return zeroed;
}

int ksys_read(int) __attribute__((alias("vfs_read")));
int __ksys_read(int) __attribute__((alias("vfs_read")));
static int ksys(int) __attribute__((alias("vfs_read"), used));

INIT static int setup_once(int x)
{
	return four_times(x) - 1;
}

void start_kernel(void)
{
	for (;;)
		jiffies += vfs_read(jiffies) + setup_once(jiffies);
}
