/* SPDX-License-Identifier: MIT */
/*
 * Dies of C++ exceptions, as its first argument says. With a second one, the handler of SIGABRT
 * waits for ever. The C++ library says on stderr what the exception is; where it does not, the test
 * knows.
 */
#include <fstream>
#include <functional>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <typeinfo>
#include <vector>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

struct Plain {
	int value = 7;
};

namespace space
{
template <typename T> struct Inherits : std::runtime_error {
	using std::runtime_error::runtime_error;
	T extra{};
};

struct Overrides : std::runtime_error {
	using std::runtime_error::runtime_error;
	const char *what() const noexcept override
	{
		return "said by the program itself";
	}
};

/* Tells where it is. */
struct Told : std::runtime_error {
	explicit Told(const char *text) : std::runtime_error(text)
	{
		std::printf("object %p\ntype %p\ntext %p\n", static_cast<void *>(this),
			    static_cast<const void *>(&typeid(Told)),
			    static_cast<const void *>(what()));
		std::fflush(stdout);
	}
};

struct First {
	virtual ~First() = default;
	long first = 1;
};

struct Second : First, std::logic_error {
	using std::logic_error::logic_error;
};

struct Virtual : virtual std::runtime_error {
	explicit Virtual(const char *text) : std::runtime_error(text)
	{
	}
};
} // namespace space

static void wait_for_ever(int)
{
	if (write(1, "waits\n", 6))
		for (;;)
			pause();
}

static void throw_inside() noexcept
{
	throw std::out_of_range("out of a function that may not throw");
}

[[noreturn]] static void rethrow()
{
	std::exception_ptr kept;

	try {
		throw std::range_error("kept and thrown again");
	} catch (...) {
		kept = std::current_exception();
	}
	std::rethrow_exception(kept);
}

/* Waits in a handler of an exception. */
static void wait_in_handler(int ready)
{
	try {
		throw std::overflow_error("of the other thread");
	} catch (std::exception &e) {
		if (write(ready, "x", 1))
			for (;;)
				pause();
	}
}

static void die_beside_another()
{
	int ready[2];
	char byte;

	if (pipe(ready))
		return;
	std::thread other(wait_in_handler, ready[1]);
	if (read(ready[0], &byte, 1) == 1)
		std::abort();
	other.join();
}

static void die(const std::string &way)
{
	if (way == "runtime_error")
		throw std::runtime_error("a text of its own");
	if (way == "empty")
		throw std::runtime_error("");
	if (way == "odd")
		throw std::runtime_error("red \033[31m, \"quoted\", \xc3\xa4 and \xff\n");
	if (way == "long")
		throw std::runtime_error(std::string(100000, 'l'));
	if (way == "at")
		(void)std::vector<int>(3).at(7);
	if (way == "stoi")
		(void)std::stoi("no number");
	if (way == "system_error")
		throw std::system_error(2, std::generic_category(), "while opening");
	if (way == "failure") {
		std::ifstream file;
		file.exceptions(std::ios::failbit);
		file.open("/does/not/exist");
	}
	if (way == "future_error") {
		std::promise<int> promise;
		(void)promise.get_future();
		(void)promise.get_future();
	}
	if (way == "told")
		throw space::Told("told where it is");
	if (way == "bad_alloc")
		throw std::bad_alloc();
	if (way == "int")
		throw 42;
	if (way == "text")
		throw "only a pointer";
	if (way == "plain")
		throw Plain();
	if (way == "inherits")
		throw space::Inherits<std::vector<long>>("inherited");
	if (way == "overrides")
		throw space::Overrides("never shown");
	if (way == "second")
		throw space::Second("of the second base");
	if (way == "virtual")
		throw space::Virtual("of a virtual base");
	if (way == "noexcept")
		throw_inside();
	if (way == "rethrown")
		rethrow();
	if (way == "thread")
		std::thread([] { throw std::domain_error("in a thread"); }).join();
	if (way == "beside")
		die_beside_another();
	if (way == "nested")
		try {
			throw std::runtime_error("the first");
		} catch (std::exception &) {
			throw std::logic_error("the second");
		}
	if (way == "again")
		try {
			throw std::length_error("thrown again");
		} catch (std::exception &) {
			throw;
		}
	if (way == "own-terminate") {
		std::set_terminate([] { std::abort(); });
		throw std::runtime_error("for a function of its own");
	}
	if (way == "terminate-in-handler")
		try {
			throw std::runtime_error("taken");
		} catch (std::exception &) {
			std::terminate();
		}
	if (way == "handler")
		try {
			throw std::underflow_error("being handled");
		} catch (std::exception &) {
			std::abort();
		}
	if (way == "handler-fault")
		try {
			throw std::underflow_error("being handled");
		} catch (std::exception &) {
			*(volatile int *)nullptr = 1;
		}
	if (way == "after") {
		try {
			throw std::underflow_error("over");
		} catch (std::exception &) {
		}
		std::abort();
	}
	if (way == "terminate")
		std::terminate();
}

#ifdef AS_LIBRARY
extern "C" int deaths(int argc, char **argv)
#else
int main(int argc, char **argv)
#endif
{
	if (argc > 2)
		std::signal(SIGABRT, wait_for_ever);
	if (argc > 1)
		die(argv[1]);
	return 0;
}
