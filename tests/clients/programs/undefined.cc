// SPDX-License-Identifier: MIT
// Overflows and shifts too far, in inlined functions, and goes on.
struct Number {
	int value;
	inline int next() const { return value + 1; }
	inline int shifted(int by) const { return value << by; }
};

__attribute__((noinline)) int step(const Number &number, int by)
{
	return number.next() ^ number.shifted(by);
}

int main(int argc, char **)
{
	const Number number = { 0x7ffffffe + argc };

	return step(number, argc + 31) == 1;
}
