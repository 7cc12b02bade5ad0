// SPDX-License-Identifier: MIT
// Decides by memory that nobody has written.
#include <cstdio>
#include <cstdlib>

struct Record {
	int filled;
	int forgotten;
};

static inline Record *make()
{
	auto *record = static_cast<Record *>(std::malloc(sizeof(Record)));

	record->filled = 1;
	return record;
}

__attribute__((noinline)) int decide(const Record *record)
{
	if (record->forgotten)
		std::puts("remembered");
	return record->filled;
}

int main()
{
	return decide(make()) == 9;
}
