// SPDX-License-Identifier: MIT
// Templates, lambdas, virtual functions, functions without a linkage name, static members.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace space {
int counter = 3;
static int hidden;

struct Shape {
	static int members;
	virtual ~Shape() {}
	virtual int area(int x) const;
};
int Shape::members = 7;

int Shape::area(int x) const
{
	static int calls = 5;

	calls += x;
	return calls + hidden++;
}

namespace {
struct Square : Shape {
	~Square() override { members--; }
	int area(int x) const override { return x * x; }
};
} // namespace
} // namespace space

template <class T> static inline T twice(T x)
{
	return x + x;
}

extern "C" inline int inlined_c(int x)
{
	return x * 3 + space::counter;
}

extern "C" int plain_c(int x)
{
	if (x > 3 && x < 10)
		return inlined_c(x) + twice(x);
	return inlined_c(x + 1);
}

int main(int argc, char **argv)
{
	std::vector<int> v;

	for (int i = 0; argv[i]; i++)
		v.push_back(twice(i));
	auto less = [&](int a, int b) { return a * space::counter < b; };
	std::sort(v.begin(), v.end(), less);
	std::string s = "x";
	for (int i : v)
		s += std::to_string(i);
	space::Square square;
	const space::Shape &shape = square;
	std::printf("%s %d %d\n", s.c_str(), shape.area(argc), plain_c(argc));
	return v.empty() ? -1 : v[0];
}
