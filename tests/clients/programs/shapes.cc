// SPDX-License-Identifier: MIT
// What C++ names can look like, inlined and not.
#include <cstdio>
#include <string>
#include <vector>

namespace geometry {
template <typename T> struct Box {
	T value;
	inline T get(int i) const { return value + (T)i; }
	__attribute__((noinline)) T sum(int n) const;
	static int count;
};

template <typename T> int Box<T>::count = 3;

template <typename T> T Box<T>::sum(int n) const
{
	volatile T all = get(n);

	for (int i = 0; i < n; i++)
		all = all + get(i);
	return all;
}

namespace {
int hidden[4] = { 1, 2, 3, 4 };
const char message[] = "geometry";
}

template <typename T> __attribute__((noinline)) int operator<<(const Box<T> &box, int i)
{
	return (int)box.get(i) + hidden[i & 3];
}
}

int table[10] = { 1, 2, 3 };
static double unused_before_use = 2.5;

template <typename F> __attribute__((noinline)) static int apply(F f, int n)
{
	return f(n) + f(n + 1);
}

__attribute__((noinline)) static int through_lambdas(int a, int b)
{
	auto twice = [&](int x) { return 2 * x + a; };
	auto nested = [&](int x) { return apply([=](int y) { return x * y + b; }, x); };

	return apply(twice, b) + apply(nested, a);
}

static inline int deepest(int x) { return x * table[x & 7]; }
static inline int deeper(int x) { return deepest(x) + deepest(x + 1); }
static inline int deep(int x) { return deeper(x) - 1; }

__attribute__((noinline)) int outermost(int x) { return deep(x) + deep(x + 2); }

__attribute__((noinline)) static std::string join(const std::vector<std::string> &parts)
{
	std::string all;

	for (const auto &part : parts)
		all += part;
	return all;
}

int main(int argc, char **argv)
{
	geometry::Box<unsigned long> box = { (unsigned long)argc };
	geometry::Box<double> other = { unused_before_use };
	std::vector<std::string> parts(argv, argv + argc);

	unused_before_use += box.sum(argc) + other.sum(argc) + geometry::Box<double>::count;
	std::printf("%s %s %d %d %d\n", geometry::message, join(parts).c_str(), box << argc,
		    through_lambdas(argc, 3), outermost(argc));
	return unused_before_use > 100;
}
