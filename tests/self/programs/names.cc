// SPDX-License-Identifier: MIT
// C++ functions, and what they are called.
namespace shapes {

struct Square {
	explicit Square(int side) : side_(side) {}
	__attribute__((noinline)) int area(int scale) const { return side_ * side_ * scale; }
	int side_;
};

__attribute__((noinline)) int overloaded(int x) { return x + 1; }
__attribute__((noinline)) int overloaded(double x) { return static_cast<int>(x) + 2; }
template <typename T, int N> __attribute__((noinline)) T scaled(T x) { return x * N; }

namespace {
__attribute__((noinline, used)) int hidden(int x) { return x * 7; }
}

}  // namespace shapes

static __attribute__((noinline, used)) int local(const char *text) { return text[0]; }

// A member function has no address of its own that standard C++ would give: its symbol has.
extern "C" int square_area(const shapes::Square *, int) __asm__("_ZNK6shapes6Square4areaEi");
int use_square(int x) { return shapes::Square(x).area(x) + shapes::hidden(x); }

extern "C" {
extern void *const cxx_functions[];
extern const char *const cxx_names[];

void *const cxx_functions[] = {
	reinterpret_cast<void *>(static_cast<int (*)(int)>(shapes::overloaded)),
	reinterpret_cast<void *>(static_cast<int (*)(double)>(shapes::overloaded)),
	reinterpret_cast<void *>(shapes::scaled<long, 3>),
	reinterpret_cast<void *>(shapes::hidden),
	reinterpret_cast<void *>(local),
	reinterpret_cast<void *>(square_area),
};
const char *const cxx_names[] = {
	"shapes::overloaded(int)",
	"shapes::overloaded(double)",
	"long shapes::scaled<long, 3>(long)",
	"shapes::(anonymous namespace)::hidden(int)",
	"local(char const*)",
	"shapes::Square::area(int) const",
	nullptr,
};
}
