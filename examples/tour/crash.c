/* SPDX-License-Identifier: MIT */
/* Crashes in a function that is inlined: README.md begins with it. */
#include <stddef.h>

struct order {
	const char *name;
	int price;
	int n;
};

static int price_of(const struct order *order)
{
	return order->price * order->n;
}

__attribute__((noinline)) int sum(const struct order *const *orders, size_t n)
{
	int total = 0;

	for (size_t i = 0; i < n; i++)
		total += price_of(orders[i]);
	return total;
}

int main(void)
{
	static const struct order tea = { "tea", 3, 2 };
	const struct order *orders[] = { &tea, NULL };

	return sum(orders, 2);
}
