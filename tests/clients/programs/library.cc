// SPDX-License-Identifier: MIT
// A shared library that frees twice, for caller.cc.
#include <cstdlib>

namespace library {
struct Owner {
	char *volatile memory;
	inline void give_back() { std::free(memory); }
};

static inline void give_back_twice(Owner &owner)
{
	owner.give_back();
	owner.give_back();
}

void enter(int size)
{
	Owner owner = { static_cast<char *>(std::malloc((std::size_t)size)) };

	give_back_twice(owner);
}
}
