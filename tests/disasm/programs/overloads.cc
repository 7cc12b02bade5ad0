// SPDX-License-Identifier: MIT
// Functions that are known by demangled names.
namespace shapes
{
__attribute__((noinline)) int area(int a) { return a * a; }
__attribute__((noinline)) int area(int a, int b) { return a * b; }
__attribute__((noinline)) int only(int a) { return area(a) + area(a, 2); }
}

int main(int argc, char **) { return shapes::only(argc); }
