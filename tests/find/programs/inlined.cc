// SPDX-License-Identifier: MIT
// Names that are mangled, and functions that are inlined.
#include <cstdio>

namespace jit {
class Runtime {
public:
	static Runtime *get();
	static Runtime *get(int number);
	int value(const char *text, unsigned long size) const;
	template <class T> T convert(T x);
	int operator()(int x) const;
	bool operator<(const Runtime &other) const;

private:
	int number_ = 3;
};

Runtime *Runtime::get()
{
	static Runtime runtime;
	return &runtime;
}

Runtime *Runtime::get(int number)
{
	Runtime *r = get();
	r->number_ = number;
	return r;
}

static inline __attribute__((always_inline)) int twice(int x)
{
	return x * 2 + 1; // line 34
}

static inline __attribute__((always_inline)) int four_times(int x)
{
	return twice(twice(x)); // line 39
}

int Runtime::value(const char *text, unsigned long size) const
{
	return number_ + text[0] + (int)size;
}

template <class T> T Runtime::convert(T x)
{
	return (T)(x + number_);
}

int Runtime::operator()(int x) const
{
	return four_times(x) + number_; // line 54
}

bool Runtime::operator<(const Runtime &other) const
{
	return number_ < other.number_;
}

template int Runtime::convert<int>(int);
template double Runtime::convert<double>(double);
} // namespace jit

namespace {
__attribute__((noinline)) int anonymous_code(int x)
{
	return jit::twice(x) - 5; // line 69
}
} // namespace

int alone(int x)
{
	return x - 1;
}

int main(int argc, char **argv)
{
	jit::Runtime *r = jit::Runtime::get(argc);

	return (*r)(argc) + anonymous_code(argc) + r->value(argv[0], 3) + (*r < *r) + alone(argc);
}
